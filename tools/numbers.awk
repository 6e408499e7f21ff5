# numbers: a table of Markdown from the CSV files of a folder of results, read by csv.awk. Given: folder, and what:
#   models          whole models
#   rivals          the same models beside llama.cpp (tools/rivals.sh)
#   stack           the steps of the experiment optimisation_stack, of each model
#   token           the longest ops of the experiment op_breakdown, of each model
#   bench REGEX     the fastest kernel of each format and shape, among the rows of bench.csv whose case matches
#   against         rows of against.csv: kernels of others beside ours
#   checks          what check and validate found
#   smith           random programs: in which ways they agree, and which planted bugs are found
#   agx             what Mesa's compiler for Apple GPUs makes of kernels
#   found NAME...   the conclusions of experiments
function say_origin(commit, date) {
    sub(/-dirty$/, " with uncommitted changes", commit)
    printf "\n*%s, %s, commit %s.*\n", head["device"] == "" ? device : head["device"], substr(date, 1, 10), commit
}

function nothing(name) {
    printf "*Not measured yet: there is no %s.*\n", name
}

function has_file(name) {
    if (open_file(name))
        return 1
    nothing(name)
    return 0
}

function short(us) {
    return us < 10 ? sprintf("%.2f", us) : us < 100 ? sprintf("%.1f", us) : sprintf("%.0f", us)
}

function add_rate(model, test, value) {
    sub(/@d/, " at depth ", test)
    if (!(model in known)) {
        known[model] = 1
        models[++model_count] = model
    }
    if (!(test in is_test)) {
        is_test[test] = 1
        tests[++test_count] = test
    }
    rate[model, test] = value
}

function name_model(name) {
    if (sub(/^random weights in the shape of /, "", name))
        sub(/, seed .*/, "", name)
    return name
}

# A row's time is that of the whole test: tg32@d1900 is 32 tokens.
function read_models(    test) {
    if (!open_file("model_bench.csv"))
        return 0
    while (read_row()) {
        test = get("variant")
        if (get("gpu_ns") + 0 > 0)
            add_rate(name_model(get("model")) " " get("format") (get("case") ~ /-kv-f16\// ? ", cache in F16" : ""), test, substr(test, 3) / get("gpu_ns") * 1e9)
        commit = get("commit")
        date = get("date")
        device = get("device")
    }
    return 1
}

function print_models(    i, k) {
    if (!read_models())
        return nothing("model_bench.csv")
    printf "| tokens per second |"
    for (k = 1; k <= test_count; k++)
        printf " %s |", tests[k]
    printf "\n|---|"
    for (k = 1; k <= test_count; k++)
        printf "--:|"
    printf "\n"
    for (i = 1; i <= model_count; i++) {
        printf "| %s |", models[i]
        for (k = 1; k <= test_count; k++)
            printf " %s |", (models[i], tests[k]) in rate ? sprintf("%.0f", rate[models[i], tests[k]]) : ""
        printf "\n"
    }
    split("", head)
    say_origin(commit, date)
}

function show_ratio(ratio) {
    return ratio == "" ? "" : sprintf("%.2f", ratio)
}

function print_rivals() {
    if (!has_file("rivals.csv"))
        return
    print "| model | test | llama.cpp | Assay, waiting | ratio | Assay, greedy | ratio |\n|---|---|--:|--:|--:|--:|--:|"
    while (read_row())
        printf "| %s | %s | %s | %.0f | %s | %s | %s |\n", get("model"), get("test"), \
            get("llama_tok_s") == "" ? "" : sprintf("%.0f", get("llama_tok_s")), get("assay_tok_s"), show_ratio(get("ratio")), \
            get("greedy_tok_s") == "" ? "" : sprintf("%.0f", get("greedy_tok_s")), show_ratio(get("greedy_ratio"))
    printf "\n%s (%s)\n", conclusion, head["rival"]
    say_origin(head["commit"], head["date"])
}

# The files of an experiment with one model are in `folder`, those with larger ones in folders beside it.
function open_next(name,    base, opened) {
    base = folder
    while (!opened && sizes_tried < 3) {
        folder = base (sizes_tried == 0 ? "" : sizes_tried == 1 ? "-1b" : "-7b")
        sizes_tried++
        opened = open_file(name)
    }
    folder = base
    if (opened) {
        size = head["model"]
        sub(/\.gguf$/, "", size)
        commit = head["commit"]
        date = head["date"]
        device = head["device"]
    }
    return opened
}

function print_stack(    rows, r, text) {
    while (open_next("optimisation_stack.csv")) {
        line_of[0] = line_of[0] " " size " | gain |"
        line_of[-1] = line_of[-1] "--:|--:|"
        for (r = 1; read_row(); r++) {
            idea[r] = get("idea")
            text = get("step_gain_pct") == "" ? "" : sprintf("%+.1f %%%s", get("step_gain_pct"), get("step_verdict") == "same" ? " (none)" : "")
            line_of[r] = line_of[r] sprintf(" %.0f | %s |", get("tok_s"), text)
        }
        rows = r - 1
    }
    if (!rows)
        return nothing("optimisation_stack.csv")
    printf "| tokens per second, with |%s\n|---|%s\n", line_of[0], line_of[-1]
    for (r = 1; r <= rows; r++)
        printf "| %s%s |%s\n", (r > 1 ? "+ " : ""), idea[r], line_of[r]
    say_origin(commit, date)
}

# Rows are in the order of the token; rank 1 is the longest op.
function print_token(    any, most, r) {
    while (open_next("op_breakdown.csv")) {
        if (!any++)
            print "| model | op | µs of a token | of the token | TB/s |\n|---|---|--:|--:|--:|"
        split("", longest)
        for (most = 0; read_row();)
            if (get("rank") + 0 > 0 && get("rank") + 0 <= 6) {
                longest[get("rank")] = sprintf("| %s | %s | %s | %.1f %% | %s |", size, get("op"), short(get("part_ns") / 1000), get("share_pct"), \
                    get("bytes") + 0 > 0 ? sprintf("%.2f", get("bytes") / get("part_ns") / 1000) : "")
                most = most > get("rank") + 0 ? most : get("rank") + 0
            }
        for (r = 1; r <= most; r++)
            print longest[r]
    }
    if (any)
        say_origin(commit, date)
    else
        nothing("op_breakdown.csv")
}

# Accumulating twins are left out: they read the same weights.
function print_bench(pattern,    commit, date, key, keys, best, row, i) {
    if (!has_file("bench.csv"))
        return
    while (read_row()) {
        if (get("case") !~ pattern || get("kernel") ~ /_accumulate/ || get("n") + 0 == 0)
            continue
        key = get("format") " " get("shape")
        if (!(key in best))
            order[++keys] = key
        else if (best[key] <= get("gpu_ns") + 0)
            continue
        best[key] = get("gpu_ns") + 0
        row[key] = sprintf("| %s | %s | `%s` | %s | %.0f | %.1f %% |", get("format"), get("shape"), get("kernel"), \
            short(get("gpu_ns") / 1000), get("gb_s"), get("pct_roof"))
        commit = get("commit")
        date = get("date")
    }
    if (!keys)
        return nothing("row of these cases in bench.csv")
    print "| weights | shape | fastest kernel | µs | GB/s | of the roof |\n|---|---|---|--:|--:|--:|"
    for (i = 1; i <= keys; i++)
        print row[order[i]]
    say_origin(commit, date)
}

function print_against(    theirs, commit, date) {
    if (!has_file("against.csv"))
        return
    print "| kernel | shape | µs |\n|---|---|--:|"
    while (read_row())
        if (get("n") + 0 > 0) {
            printf "| `%s` | %s | %s |\n", get("kernel"), get("shape"), short(get("gpu_ns") / 1000)
            commit = get("commit")
            date = get("date")
        }
    say_origin(commit, date)
}

function print_checks(    passed, failed, skipped) {
    if (has_file("check.csv")) {
        while (read_row()) {
            passed += get("verdict") == "pass"
            skipped += get("verdict") == "skip"
            failed += get("verdict") != "pass" && get("verdict") != "skip"
        }
        printf "`assay check`: %d passed, %d failed, %d skipped.\n", passed, failed, skipped
        say_origin(head["commit"], head["date"])
    }
    if (open_file("validate.csv")) {
        printf "\n`assay validate`: %d passed, %d failed, %d skipped; canaries: %s.\n", head["passed"], head["failed"], \
            head["skipped"], head["canaries"]
        say_origin(head["commit"], head["date"])
    }
}

# Kernels that models choose on Metal: the third column of choices.csv, which may name several.
function read_choices(    line, cells, names, i) {
    while ((getline line < "tests/golden/choices.csv") > 0) {
        split(line, cells, ",")
        for (i = split(cells[3], names, " "); i > 0; i--)
            is_chosen[names[i]] = 1
    }
}

# A row for each chosen kernel; of all others only which use scratch memory.
function print_agx(    refused, count, others, compiled, alone, spilling) {
    if (!has_file("agx.csv"))
        return
    read_choices()
    print "| kernel | instructions | registers | threads | scratch | spills | fills |\n|---|---|---|---|---|---|---|"
    while (read_row()) {
        if (get("refused") != "") {
            if (get("kernel") in is_chosen)
                refused = refused (count++ ? ", " : "") "`" get("kernel") "`"
            continue
        }
        if (get("kernel") in is_chosen) {
            printf "| `%s` | %d | %d | %d | %d | %d | %d |\n", get("kernel"), get("instructions"), get("half_registers"), \
                get("threads"), get("scratch_bytes"), get("spills"), get("fills")
            continue
        }
        compiled++
        if (get("scratch_bytes") > 0 && get("kernel") ~ /_per_thread$/)
            alone++
        else if (get("scratch_bytes") > 0)
            others = others (spilling++ ? ", " : "") "`" get("kernel") "` (" get("scratch_bytes") ")"
    }
    printf "\n*%s.*", head["agx compiler"]
    printf count ? " Not compiled (simdgroup matrices): %s.\n" : "\n", refused
    if (spilling)
        printf "\nOf %d other kernels %d `per_thread` variants use scratch memory, and %d more (bytes per thread): %s.\n", compiled, \
            alone, spilling, others
}

# Rows of the same device, machine and name are added.
function print_smith(    i, key, n, keys, sums) {
    if (!open_file("../../tests/smith.csv"))
        return nothing("tests/smith.csv")
    while (read_row()) {
        key = get("kind") "|" get("name") "|" get("device") " on " get("machine")
        if (!(key in sums))
            keys[++n] = key
        sums[key] += get("programs")
        wrong[key] += get("wrong")
        alarms[key] += get("alarms")
    }
    print "| way | device | programs | disagreements | false alarms |\n|---|---|--:|--:|--:|"
    for (i = 1; i <= n; i++)
        if (sub(/^way\|/, "", keys[i])) {
            key = "way|" keys[i]
            sub(/\|/, " | ", keys[i])
            printf "| %s | %d | %d | %d |\n", keys[i], sums[key], wrong[key], alarms[key]
        }
    print "\n| planted | programs | found | at the line |\n|---|--:|--:|--:|"
    for (i = 1; i <= n; i++)
        if (keys[i] ~ /^plant\|/) {
            split(keys[i], parts, "|")
            key = keys[i]
            printf "| %s | %d | %d | %d |\n", parts[2], sums[key], wrong[key], alarms[key]
        }
}

BEGIN {
    n = split(what, words, " ")
    if (words[1] == "models")
        print_models()
    else if (words[1] == "rivals")
        print_rivals()
    else if (words[1] == "stack")
        print_stack()
    else if (words[1] == "token")
        print_token()
    else if (words[1] == "bench")
        print_bench(words[2])
    else if (words[1] == "against")
        print_against()
    else if (words[1] == "checks")
        print_checks()
    else if (words[1] == "smith")
        print_smith()
    else if (words[1] == "agx")
        print_agx()
    else if (words[1] == "found") {
        for (w = 2; w <= n; w++) {
            text = open_file(words[w] ".csv") ? conclusion : "not measured."
            sub(/take 1 times as long/, "take just as long", text)
            printf "- `%s`: %s\n", words[w], text
        }
        say_origin(head["commit"], head["date"])
    } else {
        printf "numbers: there is no table '%s'\n", what > "/dev/stderr"
        exit 2
    }
}
