/* svg: see svg.h. */
#include "svg.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "html.h"

enum { MAX_DEPTH = 64, MAX_NAME = 40 };

typedef struct {
    FILE *out;
    const char *text, *at, *name, *prefix, *label;
    char open[MAX_DEPTH][MAX_NAME];
    size_t depth;
    size_t skipped_from; /* the depth of the element that is left out with all in it; 0: none */
    bool has_root, has_shape;
} reader;

static bool refuse(const reader *r, const char *what, err *e) {
    size_t line = 1;
    for (const char *p = r->text; p < r->at && *p; p++)
        line += *p == '\n';
    return err_set(e, EXIT_USAGE, "%.120s:%zu: %s", r->name, line, what);
}

static bool is_one_of(const char *text, const char *const *list) {
    for (; *list; list++)
        if (strcmp(text, *list) == 0)
            return true;
    return false;
}

static bool draws(const char *element) {
    static const char *const known[] = {
        "svg",     "g",        "defs",           "path",           "rect",    "circle",
        "ellipse", "line",     "polyline",       "polygon",        "text",    "tspan",
        "use",     "clipPath", "linearGradient", "radialGradient", "stop",    "pattern",
        "mask",    "marker",   "symbol",         "filter",         "feFlood", "feComposite",
        NULL};
    return is_one_of(element, known);
}

/* Attributes -------------------------------------------------------------------------------- */

static bool is_reference(const char *name) {
    return strcmp(name, "href") == 0 || strcmp(name, "xlink:href") == 0;
}

/* Root attributes that the page gives itself, events, and names that mean something to the page. */
static bool is_dropped(const reader *r, const char *name) {
    static const char *const everywhere[] = {"class", "src", "xml:base", "tabindex", NULL};
    static const char *const root[] = {"width", "height", "x", "y", "id", "role", "style", NULL};
    return strncasecmp(name, "on", 2) == 0 || strncmp(name, "xmlns", 5) == 0 ||
           is_one_of(name, everywhere) || (r->depth == 0 && is_one_of(name, root));
}

/* Nothing is called but rgb(), so nothing can be fetched. */
static bool is_safe_style(const char *value) {
    for (const char *p = value; *p; p++) {
        if (strncmp(p, "rgb(", 4) == 0)
            p += 3;
        else if (!isalnum((unsigned char)*p) && !strchr(" #:;.,%-)", *p))
            return false;
    }
    return true;
}

/* url(#id) is of this chart; url(anything) would be fetched, however it is spelled. */
static bool is_safe(const char *value) {
    for (const char *p = value; *p; p++)
        if (*p == '\\' || (strncasecmp(p, "url", 3) == 0 && strncmp(p, "url(#", 5) != 0))
            return false;
    return true;
}

/* A value as it stands in the file: its entities are good here too. */
static void print_value(const reader *r, const char *name, const char *value) {
    fprintf(r->out, " %s=\"", name);
    const char *p = value;
    if (strcmp(name, "id") == 0)
        fputs(r->prefix, r->out);
    if (is_reference(name)) {
        fprintf(r->out, "#%s", r->prefix);
        p++;
    }
    for (; *p; p++) {
        if (strncmp(p, "url(#", 5) == 0) {
            fprintf(r->out, "url(#%s", r->prefix);
            p += 4;
        } else if (*p == '"')
            fputs("&quot;", r->out);
        else
            fputc(*p, r->out);
    }
    fputc('"', r->out);
}

static bool print_attribute(reader *r, bool is_shown, err *e) {
    char name[MAX_NAME];
    size_t length = strcspn(r->at, "= \t\r\n/><'\"");
    if (length == 0 || length >= sizeof name)
        return refuse(r, "an attribute has no name, or a very long one", e);
    snprintf(name, sizeof name, "%.*s", (int)length, r->at);
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("-_:.", *p))
            return refuse(r, "the name of an attribute has strange characters in it", e);
    r->at += length;
    r->at += strspn(r->at, " \t\r\n");
    if (*r->at != '=')
        return refuse(r, "an attribute has no value", e);
    r->at++;
    r->at += strspn(r->at, " \t\r\n");
    char quote = *r->at;
    const char *end = quote == '"' || quote == '\'' ? strchr(r->at + 1, quote) : NULL;
    if (!end || memchr(r->at, '<', (size_t)(end - r->at)))
        return refuse(r, "the value of an attribute is not quoted, or has no end", e);
    char *value = strndup(r->at + 1, (size_t)(end - r->at - 1));
    assert(value);
    r->at = end + 1;
    bool is_good = strcmp(name, "style") == 0 ? is_safe_style(value)
                   : is_reference(name)       ? value[0] == '#'
                                              : is_safe(value);
    if (is_shown && is_good && !is_dropped(r, name))
        print_value(r, name, value);
    r->has_shape = r->has_shape || (r->depth == 0 && strcmp(name, "viewBox") == 0);
    free(value);
    return true;
}

/* Elements ---------------------------------------------------------------------------------- */

static bool read_name(reader *r, char *name, err *e) {
    size_t length = strcspn(r->at, " \t\r\n/><");
    if (length == 0 || length >= MAX_NAME)
        return refuse(r, "an element has no name, or a very long one", e);
    snprintf(name, MAX_NAME, "%.*s", (int)length, r->at);
    r->at += length;
    return true;
}

static bool open_element(reader *r, err *e) {
    char *name = r->open[r->depth];
    if (r->depth + 1 >= MAX_DEPTH)
        return refuse(r, "elements are nested too deeply", e);
    if (!read_name(r, name, e))
        return false;
    if (r->depth == 0 && (r->has_root || strcmp(name, "svg") != 0))
        return refuse(r, "the outermost element is not one svg", e);
    if (!r->skipped_from && !draws(name))
        r->skipped_from = r->depth + 1;
    bool is_shown = !r->skipped_from;
    if (is_shown)
        fprintf(r->out, "<%s", name);
    for (;;) {
        r->at += strspn(r->at, " \t\r\n");
        if (!*r->at)
            return refuse(r, "an element has no end", e);
        if (*r->at == '>' || *r->at == '/')
            break;
        if (!print_attribute(r, is_shown, e))
            return false;
    }
    if (r->depth == 0) {
        if (!r->has_shape)
            return refuse(r, "the svg element has no viewBox", e);
        fputs(" role=\"img\" aria-label=\"", r->out);
        html_print(r->out, r->label);
        fputc('"', r->out);
        r->has_root = true;
    }
    bool is_empty = *r->at == '/';
    r->at += is_empty;
    if (*r->at != '>')
        return refuse(r, "an element has no end", e);
    r->at++;
    if (is_shown)
        fputs(is_empty ? "/>" : ">", r->out);
    bool is_raw = strcasecmp(name, "script") == 0 || strcasecmp(name, "style") == 0;
    if (!is_empty && is_raw && !(r->at = strstr(r->at, "</"))) {
        r->at = r->text;
        return refuse(r, "a script or a style has no end", e);
    }
    if (!is_empty)
        r->depth++;
    else if (r->skipped_from == r->depth + 1)
        r->skipped_from = 0;
    return true;
}

static bool close_element(reader *r, err *e) {
    char name[MAX_NAME];
    if (!read_name(r, name, e))
        return false;
    r->at += strspn(r->at, " \t\r\n");
    if (r->depth == 0 || strcmp(name, r->open[r->depth - 1]) != 0 || *r->at != '>')
        return refuse(r, "an element is closed that is not open", e);
    r->at++;
    if (!r->skipped_from)
        fprintf(r->out, "</%s>", name);
    if (r->skipped_from == r->depth)
        r->skipped_from = 0;
    r->depth--;
    return true;
}

/* Moves behind `end`. */
static bool skip(reader *r, const char *end, err *e) {
    const char *p = strstr(r->at, end);
    if (!p)
        return refuse(r, "a comment, a declaration or a script has no end", e);
    r->at = p + strlen(end);
    return true;
}

static bool read_next(reader *r, err *e) {
    if (*r->at != '<') {
        size_t length = strcspn(r->at, "<");
        if (r->depth > 0 && !r->skipped_from)
            fwrite(r->at, 1, length, r->out); /* no '<' in it; entities are the same in a page */
        r->at += length;
        return true;
    }
    if (strncmp(r->at, "<!--", 4) == 0)
        return skip(r, "-->", e);
    if (strncmp(r->at, "<![CDATA[", 9) == 0)
        return skip(r, "]]>", e);
    if (r->at[1] == '?' || r->at[1] == '!')
        return skip(r, ">", e);
    r->at++;
    if (*r->at == '/') {
        r->at++;
        return close_element(r, e);
    }
    return open_element(r, e);
}

bool svg_print(FILE *out, const char *text, const char *name, const char *prefix, const char *label,
               err *e) {
    char *made = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&made, &bytes);
    assert(memory);
    reader r = {
        .out = memory, .text = text, .at = text, .name = name, .prefix = prefix, .label = label};
    bool ok = true;
    while (ok && *r.at)
        ok = read_next(&r, e);
    if (ok && (!r.has_root || r.depth > 0))
        ok = refuse(&r, "the chart has no svg element, or it is not closed", e);
    fclose(memory);
    if (ok)
        fwrite(made, 1, bytes, out);
    free(made);
    return ok;
}
