# arrows: reads C files given by their paths from the root and prints each include that a room may not
# have, and each circle of headers. Exit status 1 if there is one.
BEGIN {
    may["harness/base/"] = "harness/base/"
    may["harness/device/msl/"] = "harness/base/ harness/device/msl/ harness/device/shim/"
    may["harness/device/shim/"] = "harness/device/shim/ harness/device/msl/limits.h harness/device/soft/abi.h harness/device/cuda/abi.h"
    split("soft metal cuda", kinds, " ") # none knows another
    for (i in kinds) {
        room = "harness/device/" kinds[i] "/"
        may[room] = "harness/base/ harness/device/msl/ harness/device/[a-z_]*.h$ " room
    }
    may["harness/device/"] = "harness/base/ harness/device/"
    may["harness/agx/"] = "harness/base/ harness/device/[a-z_]*.h$ harness/device/msl/ harness/agx/"
    may["harness/agx/shim/"] = "harness/agx/shim/ harness/device/shim/"
    may["harness/check/"] = may["harness/device/"] " harness/agx/agx.h harness/check/"
    may["harness/measure/"] = "harness/"
    may["reference/"] = "reference/ harness/base/ harness/device/elem.h harness/check/weight_format.h"
    may["kernels/"] = "kernels/ reference/ harness/"
    may["project/"] = "project/ kernels/ harness/"
    may["include/"] = "project/abi.h kernels/ reference/ harness/"
    may["runner/"] = "runner/ kernels/ reference/ harness/"
    may["experiments/"] = "experiments/ " may["runner/"]
    may["report/"] = "report/ harness/"
    may["cli/"] = "cli/ report/ project/ " may["experiments/"]
    for (room in may)
        top[substr(room, 1, index(room, "/"))] = 1
}

function find_room(path, room, longest) {
    longest = ""
    for (room in may)
        if (index(path, room) == 1 && length(room) > length(longest))
            longest = room
    return longest
}

# An include names a file from the root, or else from the folder of the file that includes it.
function resolve(from, name, folder) {
    if (index(name, "/") && substr(name, 1, index(name, "/")) in top)
        return name
    folder = from
    sub(/[^\/]*$/, "", folder)
    while (sub(/^\.\.\//, "", name))
        sub(/[^\/]*\/$/, "", folder)
    return folder name
}

/^[ \t]*#[ \t]*(include|import)[ \t]*"/ {
    split($0, parts, "\"")
    to = resolve(FILENAME, parts[2])
    room = find_room(FILENAME)
    count = split(may[room], allowed, " ")
    ok = 0
    for (i = 1; i <= count; i++)
        ok = ok || to ~ "^" allowed[i]
    if (!ok) {
        printf "%s:%d: %s may not include %s\n", FILENAME, FNR, room == "" ? "no room" : room, to
        wrong = 1
    }
    if (FILENAME ~ /\.h$/)
        includes[FILENAME] = includes[FILENAME] " " to
}

function visit(header, path, list, count, i) {
    if (header in state) {
        if (state[header] == "open") {
            printf "circle:%s %s\n", path, header
            wrong = 1
        }
        return
    }
    state[header] = "open"
    count = split(includes[header], list, " ")
    for (i = 1; i <= count; i++)
        visit(list[i], path " " header)
    state[header] = "closed"
}

END {
    for (header in includes)
        visit(header, "")
    exit wrong
}
