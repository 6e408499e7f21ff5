# docs_commands: prints the commands of Markdown files, those of shell blocks, of lines that begin with `$ `, and of
# spans such as `assay list`. One line each: file and line, tab, how it is written (block or span), tab, "assay" and the
# rest of the command, "make" and one target or variable of it, or "sh" and another command of a block.
BEGIN {
    # What stands for something of the reader's; another <word> is printed as it is, and the shell refuses it.
    stands["<device>"] = "nvidia-h200"
    stands["<where the tarball will be>"] = "x"
    stands["N"] = stands["V"] = "1"
    stands["VERB"] = "bench"
    stands["<op>"] = stands["KERNEL"] = stands["FILTER"] = "buffer_copy"
}
function fill(command,    name, words, count, i, text) {
    for (name in stands)
        while (name ~ /^</ && (i = index(command, name)))
            command = substr(command, 1, i - 1) stands[name] substr(command, i + length(name))
    count = split(command, words, " ")
    for (i = 1; i <= count; i++)
        text = text (i > 1 ? " " : "") (words[i] in stands ? stands[words[i]] : words[i])
    return text
}
function put_make(kind, command,    words, count, i) {
    gsub(/"[^"]*"/, "x", command)
    count = split(command, words, " ")
    for (i = 2; i <= count; i++)
        if (words[i] !~ /^(-.*|[0-9]+)$/)
            print place "\t" kind "\tmake\t" words[i]
}
function put(kind, line,    parts, count, i, command) {
    sub(/(^|[ \t]+)# .*$/, "", line)
    gsub(/ && |; /, "\n", line)
    count = split(line, parts, "\n")
    for (i = 1; i <= count; i++) {
        command = parts[i]
        sub(/^ *(do )?/, "", command)
        while (command ~ /^[A-Z_]+=[^ ]* /)
            sub(/^[A-Z_]+=[^ ]* /, "", command)
        sub(/^\.\//, "", command)
        if (command ~ /^make( |$)/)
            put_make(kind, fill(command))
        else if (command ~ /^assay( |$)/)
            print place "\t" kind "\tassay\t" fill(substr(command, 7))
        else if (kind == "block" && command ~ /^[a-z.]/ && command !~ /^(for|do|done)( |$)/)
            print place "\t" kind "\tsh\t" fill(command)
    }
}
function put_spans(    parts, count, i) {
    count = split(prose, parts, "`")
    for (i = 2; i < count; i += 2)
        put("span", parts[i])
    prose = ""
}
FNR == 1 {
    put_spans()
    is_fenced = is_shell = 0
    name = FILENAME
    sub(/.*\/docs\//, "docs/", name)
}
{ place = name ":" FNR }
/^ *```/ {
    put_spans()
    is_fenced = !is_fenced
    is_shell = is_fenced && /```sh/
    next
}
is_shell || (is_fenced && (/^\$ / || held)) {
    sub(/^\$ /, "")
    held = held $0
    if (sub(/\\$/, "", held))
        next
    put("block", held)
    held = ""
    next
}
is_fenced { next }
/^[|]|^$|^#/ { put_spans() }
{ prose = prose " " $0 }
/^[|]/ { put_spans() }
END { put_spans() }
