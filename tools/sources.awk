# sources: what results are made of besides kernels (harness/measure/freshness.h), for the sums of tools/sources.sh.
# Writes the files of each part, without comments and white space, to FOLDER/PART, with % for each slash.
function strip(line,    out, code, found) {
    while (line != "") {
        if (!match(line, in_comment ? "[*]/" : "\"([^\"\\\\]|\\\\.)*\"|'([^'\\\\]|\\\\.)*'|//.*|/[*]"))
            RSTART = length(line) + 1
        code = in_comment ? "" : substr(line, 1, RSTART - 1)
        found = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + length(found))
        gsub(/[ \t\r]+/, "", code)
        in_comment = in_comment ? found == "" : found == "/*"
        out = out code (found ~ /^["']/ ? found : "")
    }
    return out
}

FNR == 1 { in_comment = 0; paths[++files] = FILENAME }
!in_comment && /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    includes[FILENAME] = includes[FILENAME] " " quoted[2]
}
{ texts[FILENAME] = texts[FILENAME] strip($0) }

# A file and, if a room is given, what it includes of that, and NAME.c of each NAME.h; but not the lists of all ops.
function add(path, room,    names, n, i, beside) {
    if (path in seen || !(path in texts) || index(path, room) != 1 || path ~ /^kernels\/(kernels|ops)\.h$/)
        return
    seen[path] = 1
    printf "%s\n%s\n", path, texts[path] > file
    if (room == "")
        return
    beside = path
    sub(/[^\/]*$/, "", beside)
    n = split(includes[path], names, " ")
    for (i = 1; i <= n; i++) {
        add(beside names[i], room)
        add(names[i], room)
    }
    if (sub(/\.h$/, ".c", path))
        add(path, room)
}

# What a file needs of its room, and all whose paths match.
function part(name, places, first, room,    i) {
    split("", seen)
    gsub(/\//, "%", name)
    file = folder "/" name
    add(first, room)
    for (i = 1; i <= files; i++)
        if (paths[i] ~ places)
            add(paths[i], "")
    close(file)
}

function each_file(kind, room, places,    i) {
    for (i = 1; i <= files; i++)
        if (index(paths[i], room) == 1 && paths[i] ~ /\.c$/)
            part(kind substr(paths[i], length(room) + 1, length(paths[i]) - length(room) - 2), places, paths[i], room)
    part(kind "*", "^" room)
}

END {
    each_file("description:", "kernels/", "^$")
    each_file("experiment:", "experiments/", "^experiments/(lab|sheet)")
    part("runner:model", "^runner/(model|llama|rwkv7|choice)/")
    part("device:soft", "^harness/device/((soft|msl|shim)/|[^/]*$)")
    part("device:metal", "^harness/device/((metal|msl|shim)/|[^/]*$)")
    part("device:cuda", "^harness/device/((cuda|msl|shim)/|[^/]*$)")
}
