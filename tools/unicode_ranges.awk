# Makes runner/tokenizer/unicode_ranges.c from a list of ranges, one per line: a class and the first and last
# code point of the range in hexadecimal, "L 41 5A". L is General_Category L* (letters), N is N*
# (numbers), W is the property White_Space; the ranges of a class ascend. Lines with # are comments. The
# lists come from Unicode 15.1: DerivedGeneralCategory.txt and PropList.txt of the character database.
#
#   awk -f tools/unicode_ranges.awk ranges.txt > runner/tokenizer/unicode_ranges.c
function close_table() {
    sub(/, $/, "", line)
    if (class != "")
        print line "\n};\nconst size_t " name[class] "_count = sizeof " name[class] " / sizeof *" \
            name[class] ";"
}
BEGIN {
    name["L"] = "unicode_letters"
    name["N"] = "unicode_numbers"
    name["W"] = "unicode_spaces"
    print "/* unicode_ranges: letters, numbers and white space of Unicode 15.1. Made by"
    print " * tools/unicode_ranges.awk; do not edit. */"
    print "#include \"unicode.h\"\n\n/* clang-format off */"
}
/^#/ { next }
NF != 3 || !($1 in name) {
    print "unicode_ranges.awk: line " NR " is not a class and two code points: " $0 > "/dev/stderr"
    exit 1
}
$1 != class {
    close_table()
    class = $1
    line = ""
    print "\nconst unicode_range " name[class] "[] = {"
}
{
    item = "{0x" $2 ", 0x" $3 "}, "
    if (length(line) + length(item) > 100) {
        sub(/ $/, "", line)
        print line
        line = ""
    }
    line = line item
}
END { close_table() }
