# csv: reads CSV files, ours and others'. Given: folder. open_file(name), then read_row() and get(title) for each row.
function read_line(file,    got) {
    got = (getline line < file)
    sub(/\r$/, "", line)
    return got > 0
}

# The head, up to the titles; false if there is no such file. Conclusions are kept.
function open_file(name) {
    file = folder "/" name
    conclusion = ""
    split("", head)
    split("", at)
    while (read_line(file)) {
        if (substr(line, 1, 2) != "# ") {
            count = cut(line, cells)
            for (i = 1; i <= count; i++)
                at[cells[i]] = i
            return 1
        }
        key = substr(line, 3, index(line, ": ") - 3)
        value = substr(line, index(line, ": ") + 2)
        if (key == "conclusion")
            conclusion = conclusion (conclusion == "" ? "" : " ") value
        head[key] = value
    }
    return 0
}

function read_row() {
    return read_line(file) && cut(line, cells) > 0
}

function get(title) {
    return title in at ? cells[at[title]] : ""
}

function cut(text, out,    n, field) {
    n = 0
    split("", out)
    while (1) {
        field = ""
        if (substr(text, 1, 1) == "\"") {
            text = substr(text, 2)
            while ((i = index(text, "\"")) && substr(text, i + 1, 1) == "\"") {
                field = field substr(text, 1, i)
                text = substr(text, i + 2)
            }
            field = field substr(text, 1, i - 1)
            text = substr(text, i + 1)
        } else {
            match(text, /^[^,]*/)
            field = substr(text, 1, RLENGTH)
            text = substr(text, RLENGTH + 1)
        }
        out[++n] = field
        if (text == "")
            return n
        text = substr(text, 2)
    }
}
