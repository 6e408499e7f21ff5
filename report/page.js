/* Sorts tables, switches the theme, and opens what a link leads to. Everything on the page is readable
 * without it. */
"use strict";
(function () {
    /* The value that a cell is sorted by: a number, a text, or nothing. Nothing goes last. */
    function valueOf(cell, isNumber) {
        if (!isNumber)
            return cell.textContent.trim() || null;
        var value = parseFloat(cell.getAttribute("data-v") || cell.textContent);
        return isNaN(value) ? null : value;
    }

    function compare(a, b) {
        if (typeof a === "number")
            return a - b;
        return a.localeCompare(b, "en", { numeric: true });
    }

    function sortBy(table, index) {
        var heads = table.tHead.rows[0].cells, head = heads[index], body = table.tBodies[0];
        var isNumber = head.getAttribute("data-sort") === "number";
        var down = head.getAttribute("aria-sort") === "ascending";
        var rows = Array.prototype.map.call(body.rows, function (row, at) {
            return { row: row, at: at, value: valueOf(row.cells[index], isNumber) };
        });
        rows.sort(function (x, y) {
            if (x.value === null || y.value === null)
                return (x.value === null) - (y.value === null) || x.at - y.at;
            return (down ? compare(y.value, x.value) : compare(x.value, y.value)) || x.at - y.at;
        });
        rows.forEach(function (item) { body.appendChild(item.row); });
        Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
    }

    function makeSortable(table) {
        Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, index) {
            var button = document.createElement("button");
            button.type = "button";
            while (head.firstChild)
                button.appendChild(head.firstChild);
            head.appendChild(button);
            button.addEventListener("click", function () { sortBy(table, index); });
        });
    }

    /* Automatic, light, dark. A page opened as a file may not be allowed to remember. */
    var themes = ["auto", "light", "dark"], button = document.getElementById("theme");

    function recall() {
        try { return localStorage.getItem("assay-theme"); } catch (ignored) { return null; }
    }

    function apply(theme) {
        if (theme === "auto")
            document.documentElement.removeAttribute("data-theme");
        else
            document.documentElement.setAttribute("data-theme", theme);
        button.textContent = "Theme: " + theme;
        button.setAttribute("data-now", theme);
    }

    button.hidden = false;
    button.addEventListener("click", function () {
        var next = themes[(themes.indexOf(button.getAttribute("data-now")) + 1) % themes.length];
        apply(next);
        try { localStorage.setItem("assay-theme", next); } catch (ignored) { /* not remembered */ }
    });
    apply(themes.indexOf(recall()) < 0 ? "auto" : recall());
    /* A link to something folded, and a printer, open it. */
    function open(all) {
        var target = all ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
        Array.prototype.forEach.call(document.querySelectorAll("details"), function (fold) {
            if (all || (target && fold.contains(target)))
                fold.open = true;
        });
        if (target)
            target.scrollIntoView();
    }
    window.addEventListener("hashchange", function () { open(false); });
    window.addEventListener("beforeprint", function () { open(true); });
    if (location.hash)
        open(false);
    Array.prototype.forEach.call(document.querySelectorAll("table.sort"), makeSortable);
}());
