#!/bin/sh
# shipped.sh: does validation find bugs that shipped in Metal kernels of other projects?
#
# Usage: tools/shipped.sh [--clones DIR] [--recipes DIR] [--program PATH] [--keep DIR] [--doc FILE] [NAME...]
#        tools/shipped.sh --parse [--recipes DIR] [NAME...]
#        tools/shipped.sh --export DIR [--clones DIR] [NAME...]
#        tools/shipped.sh --sanitizer OUT.csv --texts DIR [--seconds N] [NAME...]
#
# A recipe of tests/shipped (its README.md says how they are written) names a bug by project, commit, kernel
# and launch. The text of the kernel is not part of this repository: it is taken from a clone of the project in
# DIR (default: ASSAY_CLONES), once as it was with the bug and once with the fix, and both are run. A bug is
# found if a finding has the class and the line that the recipe says; a fixed text must have no findings.
# --doc writes the table of docs/shipped-bugs.md; --keep leaves the texts and the output of each run in a
# folder; --parse only reads the recipes. Exit status: 1 if a result is not the one that its recipe expects.
#
# What NVIDIA's compute-sanitizer says of the same texts is asked on a machine with a GPU, which needs no
# clones: --export writes the texts with the bugs into a folder, and --sanitizer launches them from there, once
# under each of the four tools and for at most N seconds in all (default 230). The CSV belongs into
# tests/shipped/sanitizer.csv, where --doc finds it.
set -u
here=$(cd "$(dirname "$0")/.." && pwd -P) || exit 2
clones=${ASSAY_CLONES:-} recipes=$here/tests/shipped program=$here/assay keep='' doc='' parse=no
export='' csv='' texts='' seconds=230 end='' device=soft tool=''

fail() {
    printf 'shipped.sh: %s\n' "$1" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --parse) parse=yes ;;
        --clones | --recipes | --program | --keep | --doc | --export | --sanitizer | --texts | --seconds | --watch)
            [ $# -ge 2 ] || fail "$1 needs a value"
            case $1 in
                --clones) clones=$2 ;;
                --recipes) recipes=$2 ;;
                --program) program=$2 ;;
                --keep) keep=$2 ;;
                --doc) doc=$2 ;;
                --export) export=$2 ;;
                --sanitizer) csv=$2 ;;
                --texts) texts=$2 ;;
                --seconds) seconds=$2 ;;
                --watch) end=$2 ;; # --sanitizer starts itself with it: NAME and TOOL follow
            esac
            shift
            ;;
        -*) fail "unknown option $1; the head of this file lists them" ;;
        *) break ;;
    esac
    shift
done

# The values of a key, one per line.
get() { # KEY
    awk -v key="$1" '$1 == key { sub(/^[^ \t]+[ \t]*/, ""); print }' "$recipe"
}

# Says what is wrong with the recipe, one line per mistake.
mistakes() {
    awk '
        BEGIN {
            n = split("project fix kernel bug", must)
            split("project fix link buggy fixed kernel bug math language found line shows missed also", once)
            split("file tree include cut sed before after launch buggy-launch fixed-launch op", many)
            for (i in once) known[once[i]] = 1
            for (i in many) known[many[i]] = 2
        }
        /^[ \t]*(#|$)/ { next }
        !known[$1] { printf "line %d: unknown key %s\n", NR, $1; next }
        NF == 1 && $1 != "before" && $1 != "after" { printf "line %d: %s has no value\n", NR, $1 }
        seen[$1]++ && known[$1] == 1 { printf "line %d: a second %s\n", NR, $1 }
        END {
            for (i = 1; i <= n; i++)
                if (!seen[must[i]]) printf "no line %s\n", must[i]
            if (!seen["file"]) print "no line file"
            if (!seen["launch"] && !seen["op"] && !seen["missed"]) print "no line launch or op"
            if (!seen["found"] && !seen["shows"] && !seen["op"] && !seen["missed"])
                print "no line found or shows"
            if (seen["found"] && !seen["line"]) print "found needs a line"
        }' "$recipe"
}

# The git directory of a clone of the project: DIR/NAME, DIR/NAME.git or DIR/OWNER+NAME.
clone_of() { # PROJECT
    for c in "$clones/$1" "$clones/$1.git" "$clones"/*+"$1"; do
        for d in "$c/.git" "$c/repo" "$c"; do
            git --git-dir="$d" rev-parse --git-dir > /dev/null 2>&1 && printf '%s\n' "$d" && return 0
        done
    done
    return 1
}

# Takes the files of the recipe from a commit into a folder. The first file is the one that is launched.
take() { # COMMIT FOLDER
    mkdir -p "$2" || return 1
    get file | while read -r path; do
        mkdir -p "$2/$(dirname "$path")"
        git --git-dir="$git" show "$1:$path" > "$2/$path" || exit 1
    done || return 1
    get tree | while read -r path; do
        git --git-dir="$git" archive "$1" "$path" | tar -xf - -C "$2" || exit 1
    done || return 1
    main=$2/$(get file | head -n 1)
    cut=$(get cut)
    if [ -n "$cut" ]; then # the lines between two others: kernels in strings of other languages
        awk -v cut="$cut" 'BEGIN { split(cut, mark, / *\| */) }
            from && $0 ~ mark[2] { exit }
            from { print }
            $0 ~ mark[1] { from = 1 }' "$main" > "$2/cut" || return 1
        mv "$2/cut" "$main"
    fi
    get sed > "$2/edits"
    { get before && sed -f "$2/edits" "$main" && get after; } > "$2/kernel.metal"
}

# Runs the text of a side in a folder; its output goes to SIDE.out, its exit status to SIDE.status.
run() { # SIDE [FOLDER]
    side=$work/$1 text=${2:-$work/$1}
    mkdir -p "$side"
    { get launch && get "$1-launch"; } | sed "$([ $device = soft ] || echo 's/--trace-nan//')" > "$side/args"
    set -- --device "$device"
    [ -z "$(get math)" ] || set -- "$@" --math "$(get math)"
    folders=$(for d in "$(dirname "$(get file | head -n 1)")" $(get include); do printf '%s\n' "$text/$d"; done)
    status=0 ASSAY_LANGUAGE=$(get language)
    export ASSAY_LANGUAGE
    if [ -n "$(get op)" ]; then
        mkdir -p "$side/project"
        printf 'include = %s\n' "$(echo $folders)" > "$side/project/assay.project"
        cp "$text/kernel.metal" "$side/project/"
        get op > "$side/project/shipped.op"
        # checked mode names the line that stored a wrong element
        MTL_SHADER_VALIDATION=$([ $device = soft ] && echo 1 || echo 0) \
            bounded "$program" check -C "$side/project" "$@" < /dev/null > "$side.out" 2>&1 || status=$?
    else
        case " $(tr '\n' ' ' < "$side/args")" in
            *' --validate '*) ;;
            *) [ -n "$(get shows)" ] && [ -z "$tool" ] || set -- "$@" --validate ;;
        esac
        for d in $folders; do
            set -- "$@" -I "$d"
        done
        bounded "$program" launch "$text/kernel.metal" "$(get kernel)" "$@" --max-findings 1000 \
            --args "$side/args" < /dev/null > "$side.out" 2>&1 || status=$?
    fi
    echo $status > "$side.status"
}

# Under a tool a command has a minute, and no more than is left of all the time.
bounded() {
    [ -n "$tool" ] || { "$@"; return; }
    left=$((end - $(date +%s)))
    [ $left -lt 60 ] || left=60
    [ $left -gt 0 ] || return 124
    ASSAY_SANITIZER=$tool ASSAY_REPORTS=$side/reports timeout -k 5 $left "$@"
}

# The findings of a side: class, tab, text of the line.
findings() { # SIDE [FOLDER]
    awk -v folder="${2:-$work/$1}" -v first="$(get file | head -n 1)" '
        /^finding  +where/ { table = 1; next }
        /^[0-9]+ findings?$|^  +element [0-9]+: |^  +the kernel is in / { table = 0 }
        table && /^[^ ]/ {
            split($0, column, /  +/)
            line = file = column[2]
            sub(/.*:/, "", line)
            sub(/:[^:]*$/, "", file)
            if (!((file, line) in text)) {
                cmd = "find \"" folder "\" -path \"*/" file "\" -type f | head -n 1"
                cmd | getline path
                close(cmd)
                for (n = 1; (getline t < path) > 0; n++)
                    text[file, n] = t
                close(path)
            }
            print column[1] "\t" text[file, line]
        }' "$work/$1.out"
}

# What a side shows: "clean", "found", or in words what else.
verdict() { # SIDE
    status=$(cat "$work/$1.status")
    shows=$(get shows)
    [ -z "$(get op)" ] || [ -n "$(get found)" ] || shows=${shows:-element .* is .*, expected}
    if [ -n "$shows" ] && [ "$status" -le 1 ] && grep -Eq -e "$shows" "$work/$1.out"; then
        echo found
    elif [ "$status" = 0 ] || { [ "$status" = 1 ] && [ -n "$(get also)" ] &&
        ! findings "$1" | grep -Evq -e "^($(get also))	"; }; then
        echo clean
    elif findings "$1" | grep -E -e "^($(get found))	" | cut -f 2- | grep -Eq -e "$(get line)"; then
        echo found
    else
        findings "$1" | sed 's/	 */ at /' | grep . || grep -m 1 -E 'error:|^assay:' "$work/$1.out" || tail -n 1 "$work/$1.out"
    fi
}

# One bug: both sides, one line on stdout, one row for the document.
try() { # NAME
    recipe=$recipes/$1 work=$scratch/$1
    if [ -z "$(get launch)$(get op)" ]; then # known, but it cannot be run
        printf '%-32s missed\n' "$1"
        echo missed >> "$scratch/tally"
        row missed >> "$scratch/missed"
        return
    fi
    mkdir -p "$work"
    git=$(clone_of "$(get project)") || {
        printf '%-32s skipped: no clone of %s\n' "$1" "$(get project)"
        echo skipped >> "$scratch/tally"
        return
    }
    buggy=$(get buggy) fixed=$(get fixed)
    take "${buggy:-$(get fix)^}" "$work/buggy" || fail "$1: no text at ${buggy:-$(get fix)^}"
    run buggy
    was=$(verdict buggy | head -n 1) now=clean
    if [ "$fixed" != none ]; then
        take "${fixed:-$(get fix)}" "$work/fixed" || fail "$1: no text at ${fixed:-$(get fix)}"
        run fixed
        now=$(verdict fixed | head -n 1)
    fi
    missed=$(get missed) result=found
    [ "$was" = found ] || result=missed
    expected=found
    [ -z "$missed" ] || expected=missed
    if [ $result = $expected ] && [ "$now" = clean ]; then
        printf '%-32s %s\n' "$1" "$result"
    else
        printf '%-32s WRONG: with the bug %s; fixed: %s\n' "$1" "$was" "$now"
        result=wrong
    fi
    echo $result >> "$scratch/tally"
    [ "$result" = wrong ] || row "$result" >> "$scratch/$result"
}

# The texts with the bugs, without what no kernel includes.
export_texts() {
    for name in "$@"; do
        recipe=$recipes/$name
        [ -n "$(get launch)$(get op)" ] || continue
        git=$(clone_of "$(get project)") || fail "no clone of $(get project)"
        buggy=$(get buggy)
        rm -rf "$export/$name"
        take "${buggy:-$(get fix)^}" "$export/$name" || fail "$name: no text at ${buggy:-$(get fix)^}"
        find "$export/$name" -type f ! -name '*.h' ! -name '*.metal' ! -name '*.hpp' -exec rm -f {} +
    done
    du -sh "$export"
}

# One text under one tool: a row of the CSV. Reports at the line that the recipe names are the bug; others
# are named.
watch() { # NAME TOOL
    recipe=$recipes/$1 tool=$2 device=cuda work=$scratch/$1/$2
    mkdir -p "$work/buggy/reports"
    run buggy "$texts/$1"
    status=$(cat "$work/buggy.status") says=nothing
    all=$(findings buggy "$texts/$1")
    [ -z "$(get op)" ] || all=$(sed -n -e '/ERROR SUMMARY: 0/d' \
        -e 's/^========= \(Invalid\|Uninit\|Error: Race\|Barrier\)/&/p' "$work"/buggy/reports/*.log)
    line=$(get line)
    at=$(printf '%s\n' "$all" | awk -F '\t' -v line="${line:-^$}" '$2 ~ line { print $1; exit }')
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        says='no answer in time'
    elif [ -n "$line" ] && [ -n "$at" ]; then
        says="found: $at"
    elif [ -n "$all" ]; then
        says="elsewhere: $(printf '%s\n' "$all" | cut -f 1 | sort -u | tr '\n' ';' | sed 's/;$//')"
    elif [ "$status" -gt 1 ] || grep -q '^assay: ' "$work/buggy.out"; then
        says="failed: $(grep -m 1 -E '^assay: |error:' "$work/buggy.out" | tr -d '",' | cut -c 1-100)"
    fi
    printf '%s,%s,%s\n' "$1" "$2" "$says" > "$scratch/$1.$2.row"
}

sanitize() {
    end=$(($(date +%s) + seconds))
    for tool in memcheck racecheck initcheck synccheck; do
        for name in "$@"; do
            [ ! -d "$texts/$name" ] || printf '%s %s\n' "$name" $tool
        done
    done | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 2 sh "$0" --recipes "$recipes" --program "$program" \
        --texts "$texts" --keep "$scratch" --watch $end
    {
        echo "# $(cat "$scratch"/*/*/buggy.out | sed -n 's/^# device: \(.*\) (cuda.*/\1/p' | head -n 1)"
        echo 'recipe,tool,says'
        cat "$scratch"/*.row
    } > "$csv"
}

# What compute-sanitizer says of a recipe, one cell: of its tools those that found it, else what they say.
said() { # NAME
    grep -s "^$1," "$said_csv" | awk -F , '
        { says = substr($0, length($1) + length($2) + 3) }
        sub(/^found: /, "", says) { found = found (found ? "; " : "") says " (" $2 ")" }
        sub(/^elsewhere: /, "", says) { other = other (other ? "; " : "") says " (" $2 ")" }
        says ~ /^(failed|no answer)/ { bad = bad (bad ? ", " : "") $2 }
        END {
            print found ? found : other ? "another place: " other : bad ? "no answer of " bad : NR ? "nothing" : "not run"
        }'
}

row() { # RESULT
    how=$(get missed)
    if [ "$1" = found ]; then
        how=$(get found | sed -e 's/\.\*//g' -e 's/[()]//g' -e 's/|/ or /g')
        [ -n "$how" ] || how='wrong values'
        [ -z "$(get shows)" ] || how='wrong values'
    fi
    open=''
    [ "$(get fixed)" != none ] || open=' (not fixed)'
    printf '| %s | %s%s | `%s` | %s | %s |%s\n' "$(get project)" "$(get fix)" \
        "$(get link | sed 's/^/, /')$open" "$(get kernel)" "$(get bug | sed 's/|/\\|/g')" "$how" \
        "$([ ! -f "$said_csv" ] || printf ' %s |' "$(said "$name")")"
}

count() {
    grep -c "^$1\$" "$scratch/tally" || true
}

table() { # FILE TITLE
    echo '| # | project | fix | kernel | what was wrong | '"$2"' |'"$([ ! -f "$said_csv" ] || echo ' compute-sanitizer |')"
    echo '|--:|---|---|---|---|---|'"$([ ! -f "$said_csv" ] || echo '---|')"
    sort "$1" | awk '{ print "| " NR " " $0 }'
}

count_said() { # found | elsewhere: of a recipe, the best that a tool says
    awk -F , -v what="$1" '
        $3 ~ /^found: / { best[$1] = "found" }
        $3 ~ /^elsewhere: / && !best[$1] { best[$1] = "elsewhere" }
        END { for (name in best) n += best[name] == what; print n + 0 }' "$said_csv"
}

document() {
    found=$(count found) missed=$(count missed) values=$(grep -c '| wrong values |' "$scratch/found")
    echo '# Bugs that shipped'
    echo
    echo 'Bugs that Metal kernels of public projects were released with, from their commit histories. `tools/shipped.sh` takes the text of each'
    echo 'kernel with the bug and with the fix from a clone of its project and runs both on the software device, without a GPU:'
    others=$(grep -l '^also ' "$recipes"/*-* | wc -l)
    echo "**$found of $((found + missed)) are found: $((found - values)) by validation at their line, $values by their values. No fixed text has a finding$(
        [ "$others" -eq 0 ] || printf ', except %d that has another bug, a race, before and after its fix' "$others").**"
    echo 'The recipes (commit, kernel, arguments of the launch) are in `tests/shipped/`; other projects'"'"' text is not part of this repository.'
    echo 'Only bugs for which a launch could be written that shows them are here, so this is not a detection rate for bugs in general.'
    if [ -f "$said_csv" ]; then
        echo
        echo 'The last column says what the four tools of compute-sanitizer report for the same texts, compiled to PTX and launched with the'
        echo "same arguments on an NVIDIA GPU ($(sed -n '1s/^# *//p' "$said_csv")):"
        echo "**$(count_said found) of $((found + missed)) at their line and $(count_said elsewhere) at another one**, such as the other side of a race or a later access."
        echo
    fi
    echo 'This page is generated:'
    echo
    echo '```sh'
    echo 'tools/shipped.sh --clones DIR --doc docs/shipped-bugs.md'
    echo '```'
    echo
    table "$scratch/found" 'found as'
    if [ -s "$scratch/missed" ]; then
        printf '\n## Not found\n\n'
        table "$scratch/missed" 'why not'
    fi
}

said_csv=$recipes/sanitizer.csv
[ -z "$end" ] || { scratch=$keep && watch "$@" && exit; }
[ $# -gt 0 ] || set -- $(cd "$recipes" && ls | grep -e -)
[ $# -gt 0 ] || fail "no recipes in $recipes"
bad=0
for name in "$@"; do
    recipe=$recipes/$name
    [ -f "$recipe" ] || fail "no recipe $recipe"
    mistakes | sed "s|^|$name: |" | grep . && bad=1
done
[ $bad = 0 ] || exit 1
[ $parse = no ] || { echo "$# recipes"; exit 0; }
[ -n "$csv" ] || [ -d "$clones" ] || fail '--clones DIR or ASSAY_CLONES: the folder with clones of the projects'
[ -z "$export" ] || { mkdir -p "$export" && export_texts "$@" && exit; }
program=$(cd "$(dirname "$program")" && pwd -P)/$(basename "$program")
if [ -n "$keep" ]; then
    mkdir -p "$keep" && scratch=$(cd "$keep" && pwd -P) || exit 2
else
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/assay-shipped.XXXXXX") || exit 2
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 2' HUP INT TERM
fi
if [ -n "$csv" ]; then
    [ -d "$texts" ] || fail '--texts DIR: the folder that --export has written'
    texts=$(cd "$texts" && pwd -P)
    sanitize "$@"
    exit
fi
: > "$scratch/tally"
: > "$scratch/found"
: > "$scratch/missed"
for name in "$@"; do
    try "$name"
done
printf '%s found, %s missed, %s wrong, %s skipped\n' \
    "$(count found)" "$(count missed)" "$(count wrong)" "$(count skipped)"
[ "$(count wrong)" = 0 ] || exit 1
if [ -n "$doc" ]; then
    [ "$(count skipped)" = 0 ] || fail 'a page of a part of the recipes is not written'
    document > "$doc"
fi
