#!/bin/sh
# How many lines of code each room has and may have: rows of budget.tsv (rooms joined by +, lines allowed,
# why). Prints a table; exits with 1 if a room has more.
#
# Usage: tests/budget.sh [BUDGET.tsv]
file=${1:-$(dirname "$0")/budget.tsv}
cd "$(dirname "$0")/.." || exit 2
printf '%-60s %7s %8s\n' rooms lines allowed
[ "$(wc -l < "$file")" -gt 1 ] || exit 1 # a merge may have emptied it
sed 1d "$file" | {
    status=0
    while IFS='	' read -r rooms allowed why; do
        lines=$(find $(echo "$rooms" | tr + ' ') -type f '(' -name '*.[chm]' -o -name '*.metal' -o -name '*.py' \
            -o -name '*.sh' -o -name '*.awk' ')' -exec cat {} + | wc -l)
        more=
        [ "$lines" -le "$allowed" ] || more='  too many: take some away, or say in tests/budget.tsv why not'
        [ -z "$more" ] || status=1
        printf '%-60s %7d %8d%s\n' "$rooms" "$lines" "$allowed" "$more"
    done
    exit $status
}
