# sources: C texts without comments and white space, for their sums (tools/sources.sh). Writes the text of
# the i-th file to FOLDER/i, and for each file its path and the names that it includes in quotes.
function strip(line,    out, quote, end) {
    while (line != "") {
        if (in_comment) {
            end = index(line, "*/")
            if (!end)
                return out
            line = substr(line, end + 2)
            in_comment = 0
        } else if (match(line, /["']|\/\/|\/\*/)) {
            out = out squeeze(substr(line, 1, RSTART - 1))
            line = substr(line, RSTART)
            quote = substr(line, 1, 1)
            if (quote == "/") {
                if (substr(line, 2, 1) == "/")
                    return out
                in_comment = 1
                line = substr(line, 3)
            } else {
                if (!match(line, quote == "\"" ? /^"([^"\\]|\\.)*"/ : /^'([^'\\]|\\.)*'/))
                    return out line # an apostrophe, as in an #error
                out = out substr(line, 1, RLENGTH)
                line = substr(line, RLENGTH + 1)
            }
        } else
            return out squeeze(line)
    }
    return out
}

function squeeze(text) {
    gsub(/[ \t\r]+/, "", text)
    return text
}

function finish() {
    if (path == "")
        return
    printf "%s", text > (folder "/" count)
    close(folder "/" count)
    printf "%s%s\n", path, includes
}

FNR == 1 {
    finish()
    path = FILENAME
    text = includes = ""
    in_comment = 0
    count++
}
!in_comment && /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    includes = includes " " quoted[2]
}
{ text = text strip($0) }
END { finish() }
