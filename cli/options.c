/* options: see options.h. Owns the syntax of the command line; verbs interpret the values. */
#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/record.h"
#include "harness/check/fill.h"

enum { MAX_NAME = 64 };

/* Edits (insert, delete, replace a character) that turn a into b. */
static size_t count_edits(const char *a, const char *b) {
    size_t row[MAX_NAME + 1], n = strlen(b);
    assert(n <= MAX_NAME);
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (diagonal + 1 < best)
                best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

/* The name that is most like `text`, or NULL if none is like it. */
static const char *find_nearest(const char *text, const char *const *names, size_t count) {
    const char *nearest = NULL;
    size_t best = strlen(text) / 3 + 2; /* beyond this distance it is a different word */
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);
        if (length > MAX_NAME)
            continue;
        size_t edits = count_edits(text, names[i]);
        if (edits < best && edits < length) {
            best = edits;
            nearest = names[i];
        }
    }
    return nearest;
}

size_t options_find_name(const char *what, const char *text, const char *const *names, size_t count,
                         const char *where, err *e) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    const char *nearest = find_nearest(text, names, count);
    err_set(e, EXIT_USAGE, "no %s is called '%.60s'; %s%s%s", what, text,
            nearest ? "did you mean " : where, nearest ? nearest : "", nearest ? "?" : "");
    return count;
}

const char *option_get_name(const option *o) {
    return o->name[1] == '|' ? o->name + 2 : o->name;
}

char option_get_letter(const option *o) {
    return o->name[1] == '|' ? o->name[0] : 0;
}

static bool refuse_unknown(const option *options, size_t count, const char *name, size_t length,
                           err *e) {
    const char *names[OPTIONS_MAX] = {NULL};
    char valid[OPTIONS_MAX * MAX_NAME] = "", wanted[MAX_NAME], guess[MAX_NAME + 32] = "";
    size_t shown = 0, used = 0;
    snprintf(wanted, sizeof wanted, "%.*s", (int)length, name);
    for (size_t i = 0; i < count; i++) {
        if (!options[i].about)
            continue;
        names[shown++] = option_get_name(&options[i]);
        used += (size_t)snprintf(valid + used, sizeof valid - used, "--%s, ", names[shown - 1]);
        assert(used < sizeof valid);
    }
    const char *nearest = find_nearest(wanted, names, shown);
    if (nearest)
        snprintf(guess, sizeof guess, "; did you mean --%s?", nearest);
    if (used < 160) /* else they do not fit the sentence */
        return err_set(e, EXIT_USAGE, "no option --%s%s (valid: %.160s--help)", wanted, guess,
                       valid);
    err_set(e, EXIT_USAGE, "no option --%s%s The options are:", wanted, nearest ? guess : ".");
    snprintf(valid + used, sizeof valid - used, "--help");
    return err_set_detail(e, valid);
}

/* A whole number in the option's range at the start of the text; the rest is at *end. */
static bool read_number(const option *o, const char *text, uint64_t *value, char **end) {
    errno = 0;
    *value = strtoull(text, end, 10);
    return isdigit((unsigned char)text[0]) && !errno && *value >= o->min && *value <= o->max;
}

static bool parse_numbers(const option *o, const char *text, err *e) {
    option_numbers numbers = {.count = 0};
    for (const char *at = text;; at++) {
        char *end;
        if (numbers.count == OPTION_LIST_MAX ||
            !read_number(o, at, &numbers.items[numbers.count++], &end) || (*end && *end != ','))
            return err_set(e, EXIT_USAGE,
                           "--%s takes whole numbers from %" PRIu64 " to %" PRIu64
                           " such as 1,4,8, not '%.40s'",
                           option_get_name(o), o->min, o->max, text);
        if (!*end)
            break;
        at = end;
    }
    *(option_numbers *)o->value = numbers;
    return true;
}

static bool parse_number(const option *o, const char *text, err *e) {
    char *end;
    uint64_t value;
    if (!read_number(o, text, &value, &end) || *end)
        return err_set(e, EXIT_USAGE,
                       "--%s takes a whole number from %" PRIu64 " to %" PRIu64 ", not '%.40s'",
                       option_get_name(o), o->min, o->max, text);
    *(uint64_t *)o->value = value;
    return true;
}

/* Of seconds and percent: above 0. */
static bool parse_real(const option *o, const char *text, err *e) {
    char *end;
    const bool has_range = o->kind == OPTION_REAL;
    double value = strtod(text, &end);
    bool is_plain = isdigit((unsigned char)text[0]) || text[0] == '.';
    if (is_plain && !strpbrk(text, "xX") && !*end &&
        (has_range ? value >= (double)o->min && value <= (double)o->max
                   : value > 0 && value <= 1e6)) {
        *(double *)o->value = value;
        return true;
    }
    if (has_range)
        return err_set(e, EXIT_USAGE,
                       "--%s takes a number from %" PRIu64 " to %" PRIu64 ", not '%.40s'",
                       option_get_name(o), o->min, o->max, text);
    return err_set(e, EXIT_USAGE,
                   "--%s takes a number of %s above 0, such as 60 or 0.5, not '%.40s'",
                   option_get_name(o), o->kind == OPTION_PERCENT ? "percent" : "seconds", text);
}

static bool add_to_list(const option *o, const char *text, err *e) {
    option_list *list = o->value;
    if (list->count == OPTION_LIST_MAX)
        return err_set(e, EXIT_USAGE, "--%s is given more than %d times", option_get_name(o),
                       OPTION_LIST_MAX);
    list->items[list->count++] = text;
    return true;
}

static bool parse_value(const option *o, const char *text, err *e) {
    switch (o->kind) {
    case OPTION_SEED:
    case OPTION_NUMBER:
        if (o->kind == OPTION_SEED && strcmp(text, "random") == 0) {
            *(uint64_t *)o->value = rng_draw_seed();
            return true;
        }
        return parse_number(o, text, e);
    case OPTION_NUMBERS:
        return parse_numbers(o, text, e);
    case OPTION_SECONDS:
    case OPTION_PERCENT:
    case OPTION_REAL:
        return parse_real(o, text, e);
    case OPTION_TEXT:
    case OPTION_ANY_TEXT:
    case OPTION_MAYBE:
    case OPTION_LIST:
        if (!*text && o->kind != OPTION_ANY_TEXT)
            return err_set(e, EXIT_USAGE, "--%s was given an empty value", option_get_name(o));
        if (o->kind == OPTION_LIST)
            return add_to_list(o, text, e);
        *(const char **)o->value = text;
        return true;
    case OPTION_FLAG:
    case OPTION_FOREIGN:
    case OPTION_SPLIT:
        break;
    }
    return err_set(e, EXIT_USAGE, "--%s takes no value, but was given '%.40s'", option_get_name(o),
                   text);
}

/* Those of the command line. */
static option given[OPTIONS_MAX];
static size_t given_count;

bool options_is_given(const char *name) {
    for (size_t i = 0; i < given_count; i++)
        if (strcmp(option_get_name(&given[i]), name) == 0)
            return true;
    return false;
}

/* The value of an option: the rest of the same argument (NULL: none) or the next argument, to which
 * *at moves then. */
static bool take_value(const option *o, const char *attached, int argc, const char *const *argv,
                       int *at, bool *seen, err *e) {
    if (!options_is_given(option_get_name(o)) && given_count < OPTIONS_MAX)
        given[given_count++] = *o;
    if (o->kind == OPTION_FLAG && !attached) {
        *(bool *)o->value = true;
        return true;
    }
    if (*seen && o->kind != OPTION_LIST)
        return err_set(e, EXIT_USAGE, "--%s is given twice", option_get_name(o));
    *seen = true;
    if (attached)
        return parse_value(o, attached, e);
    if (o->kind == OPTION_MAYBE && (*at + 1 >= argc || argv[*at + 1][0] == '-')) {
        *(const char **)o->value = "";
        return true;
    }
    if (*at + 1 >= argc)
        return err_set(e, EXIT_USAGE, "--%s needs a value: --%s %s", option_get_name(o),
                       option_get_name(o), o->argument);
    *at += 1;
    return parse_value(o, argv[*at], e);
}

/* Whether the argument is an option of another program; then e says what to do instead. */
static bool is_foreign(const option *options, size_t count, const char *argument, err *e) {
    const char *text = argument + strspn(argument, "-");
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < count; i++)
        for (const char *name = options[i].kind == OPTION_FOREIGN ? options[i].name : ""; *name;
             name += strcspn(name, "|"), name += *name == '|')
            if (strcspn(name, "|") == length && strncmp(name, text, length) == 0) {
                err_set(e, EXIT_USAGE, "%.40s %s", argument, options[i].argument);
                return true;
            }
    return false;
}

/* One option at argv[*at], --name, --name=5, -n 5 or -n5; *at moves to its value if that stands apart. */
static bool parse_option(const option *options, size_t count, int argc, const char *const *argv,
                         int *at, bool *seen, err *e) {
    const bool is_long = argv[*at][1] == '-';
    const char *text = argv[*at] + (is_long ? 2 : 1);
    size_t length = is_long ? strcspn(text, "=") : 1;
    for (size_t i = 0; i < count; i++) {
        const char *name = option_get_name(&options[i]);
        bool is_it = is_long ? strlen(name) == length && strncmp(name, text, length) == 0
                             : option_get_letter(&options[i]) == text[0];
        if (options[i].kind < OPTION_FOREIGN && is_it)
            return take_value(&options[i], text[length] ? text + length + is_long : NULL, argc,
                              argv, at, &seen[i], e);
    }
    return is_long ? refuse_unknown(options, count, text, length, e)
                   : err_set(e, EXIT_USAGE, "no option -%.40s: --help lists them all", text);
}

/* For a verb that takes two lists of names, `--` stands between them and options may follow. */
static bool split(const option *options, size_t count, int kept) {
    for (size_t i = 0; i < count; i++)
        if (options[i].kind == OPTION_SPLIT) {
            *(size_t *)options[i].value = (size_t)kept;
            return true;
        }
    return false;
}

bool options_parse(const option *options, size_t count, int *argc, const char **argv, bool *help,
                   err *e) {
    assert(count <= OPTIONS_MAX);
    bool seen[OPTIONS_MAX] = {false}, is_over = false;
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        const char *a = argv[i];
        if (is_over || a[0] != '-' || !a[1]) {
            argv[kept++] = a;
        } else if (strcmp(a, "--") == 0) {
            is_over = !split(options, count, kept);
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            *help = true;
            return true;
        } else if (is_foreign(options, count, a, e)) {
            return false;
        } else if (!parse_option(options, count, *argc, argv, &i, seen, e)) {
            return false;
        }
    }
    *argc = kept;
    return true;
}

typedef struct {
    const char **items;
    size_t count, capacity;
} text_list;
static text_list kept; /* what the texts of the lists are in, and the lists */

/* --name=value, or --name alone for a NULL. */
static void add_value(text_list *l, const option *o, const char *value) {
    const char *name = option_get_name(o);
    size_t size = strlen(name) + (value ? strlen(value) : 0) + 4;
    char *text = array_new(1, size);
    snprintf(text, size, value ? "--%s=%s" : "--%s", name, value);
    *ARRAY_ADD(l->items, l->count, l->capacity) = text;
    *ARRAY_ADD(kept.items, kept.count, kept.capacity) = text;
}

/* A value that cannot be given stands for one that was not: 0 jobs. */
static void list_value(text_list *l, const option *o) {
    const char *text = NULL;
    char number[32];
    switch (o->kind) {
    case OPTION_FLAG:
        if (*(bool *)o->value || strcmp(o->name, "worker") == 0)
            add_value(l, o, NULL);
        break;
    case OPTION_TEXT:
    case OPTION_ANY_TEXT:
    case OPTION_MAYBE:
        if ((text = *(const char **)o->value))
            add_value(l, o, o->kind == OPTION_MAYBE && !*text ? NULL : text);
        break;
    case OPTION_NUMBER:
    case OPTION_SEED:
        snprintf(number, sizeof number, "%" PRIu64, *(uint64_t *)o->value);
        if (*(uint64_t *)o->value >= o->min && *(uint64_t *)o->value <= o->max)
            add_value(l, o, number);
        break;
    case OPTION_SECONDS:
    case OPTION_PERCENT:
    case OPTION_REAL:
        snprintf(number, sizeof number, "%.17g", *(double *)o->value);
        if (*(double *)o->value > 0)
            add_value(l, o, number);
        break;
    case OPTION_LIST:
        for (size_t i = 0; i < ((option_list *)o->value)->count; i++)
            add_value(l, o, ((option_list *)o->value)->items[i]);
        break;
    case OPTION_NUMBERS: /* of verbs that have no workers */
    case OPTION_SPLIT:
        assert(false);
    case OPTION_FOREIGN:
        break;
    }
}

const char *const *options_list_values(const char *verb, const option *options, size_t count,
                                       const char *const *names) {
    text_list l = {.count = 0};
    *ARRAY_ADD(l.items, l.count, l.capacity) = verb;
    for (size_t i = 0; i < count; i++)
        list_value(&l, &options[i]);
    *ARRAY_ADD(l.items, l.count, l.capacity) = "--";
    for (; names && *names; names++)
        *ARRAY_ADD(l.items, l.count, l.capacity) = *names;
    *ARRAY_ADD(l.items, l.count, l.capacity) = NULL;
    *ARRAY_ADD(kept.items, kept.count, kept.capacity) = (const char *)l.items;
    return l.items;
}

void options_print_word(FILE *out, const char *text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
    const bool is_plain = *text && strspn(text, plain) == strlen(text);
    for (fputs(is_plain ? "" : "'", out); *text; text++)
        fprintf(out, *text == '\'' ? "'\\%c'" : "%c", *text);
    fputs(is_plain ? "" : "'", out);
}

void options_print_given(FILE *out) {
    static const char *const names[] = {"project", "kernels", "language", "math",     "device",
                                        "seed",    "timeout", "strict",   "trace-nan"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (const option *o = given; o < given + given_count; o++) {
            text_list l = {.count = 0};
            if (strcmp(option_get_name(o), names[i]) != 0)
                continue;
            list_value(&l, o);
            const char *value = l.count > 0 ? strchr(l.items[0], '=') : NULL;
            const char letter[] = {option_get_letter(o), 0};
            fprintf(out, " -%s%s%s", *letter ? "" : "-", *letter ? letter : names[i],
                    value ? " " : "");
            if (value)
                options_print_word(out, value + 1);
            free(l.items);
        }
}

void options_print_help(FILE *out, const option *options, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!options[i].about)
            continue;
        char left[64], letter[8] = "";
        if (option_get_letter(&options[i]))
            snprintf(letter, sizeof letter, "-%c, ", option_get_letter(&options[i]));
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, option_get_name(&options[i]),
                 options[i].argument ? " " : "", options[i].argument ? options[i].argument : "");
        table_print_item(out, 23, left, options[i].about);
    }
    table_print_item(out, 23, "  --help", "this text");
}
