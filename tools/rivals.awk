# rivals: one row for each model and test from what tools/rivals.sh has measured, read by csv.awk. Given: folder, with
# greedy.csv, waiting.csv, llama.csv (which may be missing) and origins.csv, which says what the rows of greedy.csv are made of.

# Keeps the rates of one program; the order is that of the first file.
function read_rates(name, program,    model, test) {
    if (!open_file(name))
        return
    while (read_row()) {
        model = get("model_filename")
        sub(/.*\//, "", model)
        sub(/\.gguf$/, "", model)
        test = (get("n_prompt") + 0 > 0 ? "pp" get("n_prompt") : "tg" get("n_gen")) \
            (get("n_depth") + 0 > 0 ? "@d" get("n_depth") : "")
        if (!((model, test) in known)) {
            known[model, test] = 1
            models[++rows_known] = model
            tests[rows_known] = test
            bytes[rows_known] = get("model_size")
        }
        rate[program, model, test] = get("avg_ts")
        if (program == "llama")
            rival = "llama.cpp " get("build_commit") ", cache " get("type_k") ", " get("backends")
    }
}

function read_origins(    i) {
    if (!open_file("origins.csv"))
        return
    while (read_row())
        if (get("variant") == tests[++i])
            made_of[i] = get("made_of")
}

function divide(a, b) {
    return a > 0 && b > 0 ? sprintf("%.4f", a / b) : ""
}

BEGIN {
    read_rates("greedy.csv", "greedy")
    read_rates("waiting.csv", "waiting")
    read_rates("llama.csv", "llama")
    read_origins()
    for (i = 1; i <= rows_known; i++) {
        waiting = rate["waiting", models[i], tests[i]]
        greedy = tests[i] ~ /^tg/ ? rate["greedy", models[i], tests[i]] : ""
        llama = rate["llama", models[i], tests[i]]
        ratio = divide(waiting, llama)
        rows = rows sprintf("%s,%s,%s,%s,%s,%s,%s,%s,%s\n", models[i], bytes[i], tests[i], llama, waiting, greedy, ratio, \
            divide(greedy, llama), made_of[i])
        if (ratio == "")
            continue
        compared++
        faster += ratio >= 1
        if (compared == 1 || ratio + 0 < least) {
            least = ratio + 0
            worst = models[i] " " tests[i]
        }
        if (compared == 1 || ratio + 0 > most) {
            most = ratio + 0
            best = models[i] " " tests[i]
        }
    }
    if (compared)
        printf "# rival: %s\n# conclusion: At least as fast as llama.cpp in %d of %d tests, both waiting for each " \
            "token: from %.2f (%s) to %.2f times (%s)\n", rival, faster, compared, least, worst, most, best
    else
        print "# conclusion: llama-bench ran none of the models"
    print "model,model_bytes,test,llama_tok_s,assay_tok_s,greedy_tok_s,ratio,greedy_ratio,made_of"
    printf "%s", rows
}
