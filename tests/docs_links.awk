# docs_links: prints each relative link of Markdown files whose file or heading does not exist. Read every file twice:
#     awk -f docs_links.awk FILES pass=2 FILES
BEGIN { pass = 1 }
FNR == 1 {
    is_fenced = 0
    folder = FILENAME
    sub(/[^\/]*$/, "", folder)
}
/^ *```/ { is_fenced = !is_fenced }
is_fenced { next }
# The anchor of a heading as GitHub makes it.
pass == 1 && /^#+ / {
    anchor = tolower($0)
    sub(/^#+ /, "", anchor)
    gsub(/[^a-z0-9 _-]/, "", anchor)
    gsub(/ /, "-", anchor)
    anchors[FILENAME "#" anchor] = 1
}
pass == 2 {
    line = $0
    while (match(line, /\]\([^)]*\)/)) {
        link = substr(line, RSTART + 2, RLENGTH - 3)
        line = substr(line, RSTART + RLENGTH)
        if (link ~ /^[a-z]+:/)
            continue
        file = link
        sub(/#.*/, "", file)
        path = file == "" ? FILENAME : folder file
        if (system("test -e '" path "'") != 0)
            print FILENAME ":" FNR ": there is no file " link
        else if (link ~ /#/ && path ~ /\.md$/ && !(path substr(link, index(link, "#")) in anchors))
            print FILENAME ":" FNR ": there is no heading " link
        count++
    }
}
END { print count + 0 " links" }
