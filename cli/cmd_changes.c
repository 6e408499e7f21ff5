/* cmd_changes: `assay changes BASE`. What a change of a project makes of what is proved: each kernel of the base is
 * found again, and each case compared with what it was (proof.h), in workers, because oracles may crash. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/root.h"
#include "harness/base/worker.h"
#include "harness/check/description.h"
#include "harness/check/line.h"
#include "harness/check/proof.h"
#include "harness/check/suite.h"
#include "harness/device/source_hash.h"
#include "kernels/ops.h"
#include "outcome.h"
#include "project/project.h"
#include "verb.h"

static struct {
    const char *base, *fail, *device, *junit, *sarif;
    uint64_t seed, jobs;
    double timeout_s;
    bool json, markdown, worker;
} settings = {.seed = 1, .timeout_s = 120};

static const option options[] = {
    TEXT_OPTION("fail", &settings.fail, "KIND,...",
                "kinds that fail, all or none (default: the base's, else deleted,looser)"),
    RANDOM_SEED_OPTION(&settings.seed, "the inputs"),
    FLAG_OPTION("md", &settings.markdown, "print a Markdown list, for a comment"),
    FLAG_OPTION("json", &settings.json, "print one JSON object instead of the list"),
    TEXT_OPTION("junit", &settings.junit, "FILE.xml", "also write the changes as JUnit XML"),
    TEXT_OPTION("sarif", &settings.sarif, "FILE.sarif",
                "also write them as SARIF, for code scanning"),
    DEVICE_OPTION(&settings.device),
    {"jobs", OPTION_NUMBER, &settings.jobs, "N",
     "workers at a time (default: one per CPU, up to 16)", 1, 256},
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "give up on the oracles of a case after this many seconds (default 120)"),
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};

/* Kernels ------------------------------------------------------------------------------------- */

/* A kernel of the base and what it is now; either may be missing. */
typedef struct {
    const op *was_op, *op;
    const kernel *was, *kernel;
    size_t cases, tried, compared; /* those it has now; of which values are compared; were */
} pair;

/* A change, as it is shown: in how many cases, and of how many kernels of its op. */
typedef struct {
    change change;
    const op *op;
    const kernel *kernel; /* the first; NULL: it is of a description or of the project */
    const kernel *last;
    char where[256]; /* a case: that where it is largest; "": it is in none */
    size_t kernels, cases;
    bool fails, was_accepted; /* was_accepted: in the base, which does not count */
    const char *accepted;     /* the line that accepts it, or NULL */
} difference;

/* A line `accept` of a description (op) or of assay.project (NULL). */
typedef struct {
    const op *op;
    const char *text;
    bool is_old, is_used; /* is_old: the base has the same */
} acceptance;

typedef struct {
    project_version was, now;
    pair *pairs;
    difference *items;
    acceptance *accepts;
    size_t pair_count, pair_room, count, room, accept_count, accept_room, cases;
    bool fails[CHANGE_KINDS];
    const device_facts *facts;
} review;

/* What stands for a description that cannot be used has its file's name. */
static bool is_broken(const op *o) {
    return strchr(o->name, '.') != NULL;
}

static const op *find_broken(const project_version *v, const char *source) {
    for (size_t i = 0; i < v->count; i++)
        if (is_broken(v->ops[i]) && strcmp(v->ops[i]->name, path_get_name(source)) == 0)
            return v->ops[i];
    return NULL;
}

static size_t count_dims(const op *o) {
    size_t count = 1;
    for (const char *p = o->dims; (p = strstr(p, " x ")); p++)
        count++;
    return count;
}

static void add_pairs(review *r, const project_version *v, bool is_now) {
    for (size_t i = 0; i < v->count; i++)
        for (size_t k = 0; k < v->ops[i]->kernel_count && !is_broken(v->ops[i]); k++) {
            const op *o = v->ops[i];
            *ARRAY_ADD(r->pairs, r->pair_count, r->pair_room) =
                is_now ? (pair){.op = o, .kernel = &o->kernels[k]}
                       : (pair){.was_op = o, .was = &o->kernels[k]};
        }
}

/* How likely a kernel of the base is one of now: 4 by its name; else, if nothing else can be meant, 3 in its op, 2 in its file,
 * 1 in the project. */
static bool is_alike(const pair *was, const pair *now, int how) {
    if (!was->was || was->kernel || !now->kernel || now->was ||
        count_dims(was->was_op) != count_dims(now->op))
        return false;
    return how == 4   ? strcmp(was->was->name, now->kernel->name) == 0
           : how == 3 ? strcmp(was->was_op->name, now->op->name) == 0
           : how == 2
               ? strcmp(path_get_name(was->was_op->source), path_get_name(now->op->source)) == 0
               : true;
}

/* The only one that is alike, or NULL. */
static pair *find_alike(review *r, const pair *of, int how) {
    pair *only = NULL;
    for (pair *p = r->pairs; p < r->pairs + r->pair_count; p++)
        if (of->was ? is_alike(of, p, how) : is_alike(p, of, how)) {
            if (only)
                return NULL;
            only = p;
        }
    return only;
}

static void match_kernels(review *r) {
    size_t kept = 0;
    for (int how = 4; how > 0; how--)
        for (pair *was = r->pairs; was < r->pairs + r->pair_count; was++) {
            pair *now = was->was && !was->kernel ? find_alike(r, was, how) : NULL;
            if (!now || find_alike(r, now, how) != was)
                continue;
            now->was_op = was->was_op;
            now->was = was->was;
            *was = (pair){.op = NULL};
        }
    for (size_t i = 0; i < r->pair_count; i++)
        if (r->pairs[i].was || r->pairs[i].kernel)
            r->pairs[kept++] = r->pairs[i];
    r->pair_count = kept;
}

/* Differences --------------------------------------------------------------------------------- */

/* Of a description and not of one of its kernels? Of launches the arguments are. */
static bool is_of_op(const change *c) {
    const change_kind k = c->kind;
    return k == CHANGE_LOOSER || k == CHANGE_ORACLE || k == CHANGE_INPUTS || k == CHANGE_TIGHTER ||
           k == CHANGE_CASES || k == CHANGE_MORE ||
           (k == CHANGE_LAUNCH && strncmp(c->about, "buffer", 6) == 0);
}

static void add(review *r, const op *o, const kernel *k, const char *where, const change *c) {
    difference *d = r->items;
    while (d < r->items + r->count &&
           !(d->change.kind == c->kind && d->op == o && strcmp(d->change.about, c->about) == 0 &&
             (is_of_op(c) || d->kernel == k)))
        d++;
    if (d == r->items + r->count) {
        d = ARRAY_ADD(r->items, r->count, r->room);
        *d = (difference){.change = *c, .op = o, .kernel = k, .kernels = 1, .last = k};
        snprintf(d->where, sizeof d->where, "%s", where);
    } else if (c->weight > d->change.weight) {
        d->change = *c;
        snprintf(d->where, sizeof d->where, "%s", where);
    }
    d->kernels += d->last != k;
    d->last = k;
    d->cases++;
}

static void tell(review *r, change_kind kind, const op *o, const kernel *k, const char *about,
                 const char *format, ...) __attribute__((format(printf, 6, 7)));

static void tell(review *r, change_kind kind, const op *o, const kernel *k, const char *about,
                 const char *format, ...) {
    change c = {.kind = kind};
    snprintf(c.about, sizeof c.about, "%s", about);
    va_list list;
    va_start(list, format);
    vsnprintf(c.text, sizeof c.text, format, list);
    va_end(list);
    add(r, o, k, "", &c);
}

static void compare_names(review *r, const pair *p) {
    char text[300];
    int used = 0;
    text[0] = 0;
    if (strcmp(p->was->name, p->kernel->name) != 0)
        used += snprintf(text, sizeof text, "it was called %.80s", p->was->name);
    if (strcmp(p->was_op->name, p->op->name) != 0)
        tell(r, CHANGE_RENAMED, p->op, NULL, "op", "the op was called %.80s", p->was_op->name);
    if (strcmp(p->was->file, p->kernel->file) != 0)
        used += snprintf(text + used, sizeof text - (size_t)used, "%sit was in %.80s",
                         used ? ", " : "", p->was->file);
    if (used)
        tell(r, CHANGE_RENAMED, p->op, p->kernel, "", "%s", text);
}

/* Kernels that the device does not offer are not run by any verb. */
static void compare_needs(review *r, const pair *p) {
    err why;
    const bool was_offered = device_offers(r->facts, p->was->needs, NULL);
    if (was_offered && !device_offers(r->facts, p->kernel->needs, &why))
        tell(r, CHANGE_DELETED, p->op, p->kernel, "device",
             "this device runs it no longer: it %.200s", why.text);
    else if (p->kernel->needs & ~p->was->needs)
        tell(r, CHANGE_CASES, p->op, p->kernel, "device", "fewer devices run it");
}

/* A kernel that is gone, or that nothing can be said of. */
static void tell_lost(review *r, const pair *p) {
    const op *broken = find_broken(&r->now, p->was_op->source), *other = NULL;
    for (size_t i = 0; i < r->now.count && !other; i++)
        other = op_find_kernel(r->now.ops[i], p->was->name) ? r->now.ops[i] : NULL;
    if (broken)
        tell(r, CHANGE_UNREAD, broken, NULL, "", "it cannot be read now: %.240s", broken->about);
    else if (other)
        tell(r, CHANGE_DELETED, p->was_op, p->was, "",
             "what was proved of it is gone: its shapes are %.60s now, before %.60s", other->dims,
             p->was_op->dims);
    else
        tell(r, CHANGE_DELETED, p->was_op, p->was, "", "it is gone, and with it what %.60s proved",
             path_get_name(p->was_op->source));
}

static void compare_kernels(review *r) {
    for (size_t i = 0; i < r->pair_count; i++) {
        const pair *p = &r->pairs[i];
        if (!p->was && !find_broken(&r->was, p->op->source))
            tell(r, CHANGE_NEW, p->op, p->kernel, "", "it is new, with %zu cases", p->cases);
        else if (!p->was)
            tell(r, CHANGE_UNREAD, p->op, NULL, "", "the base has it, but cannot be read: %.200s",
                 find_broken(&r->was, p->op->source)->about);
        else if (!p->kernel)
            tell_lost(r, p);
        else {
            compare_names(r, p);
            compare_needs(r, p);
        }
    }
}

/* Cases ---------------------------------------------------------------------------------------- */

static void find_cases(const project_version *v, case_list *out) {
    const case_query all = {.filter_count = 0};
    registry_use(v->ops, v->count);
    if (!cases_find(&all, out, NULL)) /* none that a kernel takes */
        *out = (case_list){.items = NULL};
}

/* The case of another kernel. */
static bool has_case(const case_list *l, const kernel *k, const char *name) {
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].kernel == k &&
            strcmp(strchr(l->items[i].name, '/'), strchr(name, '/')) == 0)
            return true;
    return false;
}

/* Those of a that b does not have, as "3x31/normal, 3x32/normal and 4 more"; returns how many. */
static size_t list_missing(const case_list *a, const kernel *x, const case_list *b, const kernel *y,
                           char *text, size_t size) {
    size_t count = 0, used = 0;
    text[0] = 0;
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].kernel == x && !has_case(b, y, a->items[i].name) && count++ < 4)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                     strchr(a->items[i].name, '/') + 1);
    if (count > 4)
        snprintf(text + used, size - used, " and %zu more", count - 4);
    return count;
}

/* Can nothing differ? Lines of C and files may hold anything. */
static bool is_same_text(const pair *p) {
    char was[SOURCE_HASH_SIZE], now[SOURCE_HASH_SIZE];
    char *text =
        path_ends_with(p->op->source, ".op") ? os_read_file(p->op->source, NULL, NULL) : NULL;
    bool same = text && !strchr(text, '{') && !strstr(text, " from ") &&
                source_hash_find(p->was_op->source, NULL, was, NULL) &&
                source_hash_find(p->op->source, NULL, now, NULL) && strcmp(was, now) == 0;
    free(text);
    return same;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Lines whose changes have kinds of their own, or are for people. */
static bool is_told_apart(const char *line) {
    static const char *const words[] = {"op ",    "accept", "kernel ", "shapes ",
                                        "inputs", "needs",  "flops "};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strncmp(line, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

/* What a text says: its lines in alphabetical order, without comments and names for people; lines of C stay together. */
static char *make_gist(const char *path) {
    char *text = os_read_file(path, NULL, NULL), **lines = NULL;
    const bool is_op = path_ends_with(path, ".op");
    size_t count = 0, room = 0, used = 0;
    char *gist = text ? array_new(2 * strlen(text) + 2, 1) : NULL;
    for (char *line = text, *next; line && *line; line = next) {
        bool is_c = !is_op;
        for (next = line + strcspn(line, "\n"); is_op && next > line && next[-1] == '{';
             is_c = true) {
            const char *end = strstr(next, "\n}");
            next = end ? text + (end - text) + 2 : next + strlen(next);
        }
        next = is_c && !is_op ? line + strlen(line) : next;
        next += *next ? (*next = 0, 1) : 0;
        char *about = is_op && !is_c ? strstr(line, " about ") : NULL;
        if (about)
            *about = 0;
        if (source_strip(line, !is_c) > 0 && !(is_op && is_told_apart(line)))
            *ARRAY_ADD(lines, count, room) = line;
    }
    if (count > 0)
        qsort(lines, count, sizeof *lines, by_text);
    for (size_t i = 0; i < count; i++)
        used += (size_t)sprintf(gist + used, "%s\n", lines[i]);
    free(lines);
    free(text);
    return gist;
}

/* Of descriptions of which nothing else was found. */
static void tell_rewritten(review *r) {
    for (size_t i = 0; i < r->pair_count; i++) {
        const pair *p = &r->pairs[i];
        if (!p->was || !p->kernel)
            continue;
        char *was = make_gist(p->was_op->source), *now = make_gist(p->op->source);
        bool is_known = !was || !now || strcmp(was, now) == 0;
        for (size_t k = 0; k < r->count; k++)
            is_known |= r->items[k].op == p->op;
        if (!is_known)
            tell(r, CHANGE_REWRITTEN, p->op, NULL, "",
                 "%.80s says it in other words: the same values and tolerances in all cases",
                 path_get_name(p->op->source));
        free(was);
        free(now);
    }
}

static void count_cases(review *r, const case_list *was, const case_list *now, pair *p) {
    char text[600];
    size_t before = 0;
    for (size_t i = 0; i < now->count; i++)
        p->cases += now->items[i].kernel == p->kernel;
    for (size_t i = 0; i < was->count; i++)
        before += was->items[i].kernel == p->was;
    if (!p->was || !p->kernel)
        return;
    const size_t gone = list_missing(was, p->was, now, p->kernel, text, sizeof text);
    if (gone > 0 && p->cases == 0)
        tell(r, CHANGE_DELETED, p->op, p->kernel, "", "none of its %zu cases is left", before);
    else if (gone > 0)
        tell(r, CHANGE_CASES, p->op, p->kernel, "", "%zu of its %zu cases %s gone: %s", gone,
             before, gone == 1 ? "is" : "are", text);
    const size_t more = list_missing(now, p->kernel, was, p->was, text, sizeof text);
    if (more > 0)
        tell(r, CHANGE_MORE, p->op, p->kernel, "", "%zu more case%s: %s", more,
             more == 1 ? "" : "s", text);
}

typedef struct {
    pair *pair;
    const char *name; /* of the case */
    bool is_new;      /* the base does not list it: that it cannot make it is no news */
} comparison_task;

typedef struct {
    review *review;
    comparison_task *items;
    const char **texts;
    size_t count, room, text_room;
} task_list;

static void add_tasks(task_list *t, const case_list *was, const case_list *now) {
    for (pair *p = t->review->pairs; p < t->review->pairs + t->review->pair_count; p++) {
        if (!p->was || !p->kernel || is_same_text(p))
            continue;
        for (const kernel_case *c = now->items; c < now->items + now->count; c++) {
            if (c->kernel != p->kernel)
                continue;
            const size_t size = 2 * strlen(c->name) + strlen(p->was->name) + 2;
            char *text = array_new(1, size);
            snprintf(text, size, "%s\t%s%s", c->name, p->was->name, strchr(c->name, '/'));
            p->tried++;
            *ARRAY_ADD(t->texts, t->count, t->text_room) = text;
            t->count--;
            *ARRAY_ADD(t->items, t->count, t->room) =
                (comparison_task){p, c->name, !has_case(was, p->was, c->name)};
        }
    }
}

/* In a worker ----------------------------------------------------------------------------------- */

typedef struct {
    const review *review;
    library *was, *now;
} server;

typedef struct {
    err why; /* why nothing can be said */
    size_t count;
} answer;

static void *compare_case(void *context, const char *task, size_t *bytes, bool *retire) {
    const server *s = context;
    char *text = strdup(task), *fields[2];
    answer a = {.why = {.code = EXIT_OK}};
    change_list found = {.count = 0};
    kernel_case was = {.op = NULL}, now = {.op = NULL};
    assert(text);
    bool ok = worker_cut_task(text, fields, 2);
    registry_use(s->review->was.ops, s->review->was.count);
    ok = ok && cases_parse(fields[1], &was);
    registry_use(s->review->now.ops, s->review->now.count);
    if (!ok || !cases_parse(fields[0], &now))
        err_set(&a.why, EXIT_USAGE, "there is no case %.160s", task);
    memcpy(was.name, now.name, sizeof was.name); /* inputs follow from it */
    if (!a.why.text[0] && case_open(&was, s->was, settings.seed, &a.why) &&
        case_open(&now, s->now, settings.seed, &a.why))
        proof_compare(&was, &now, &found, &a.why);
    case_close(&was);
    case_close(&now);
    free(text);
    a.count = a.why.text[0] ? 0 : found.count;
    *bytes = sizeof a + a.count * sizeof *found.items;
    char *all = array_new(1, *bytes);
    memcpy(all, &a, sizeof a);
    if (a.count > 0)
        memcpy(all + sizeof a, found.items, a.count * sizeof *found.items);
    free(found.items);
    *retire = false;
    return all;
}

static exit_code serve(const review *r, err *e) {
    device *d = device_open(settings.device, e);
    server s = {.review = r};
    bool ok = d && (s.was = library_new_of(d, r->was.sources, e)) != NULL &&
              (s.now = library_new_of(d, r->now.sources, e)) != NULL;
    if (ok) {
        library_set_plan(s.was);
        library_set_plan(s.now);
        ok = worker_serve(compare_case, &s, e);
    }
    library_free(s.now);
    library_free(s.was);
    device_close(d);
    return ok ? EXIT_OK : e->code;
}

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    const task_list *t = context;
    const comparison_task *c = &t->items[task];
    pair *p = c->pair;
    const answer *a = o->answer;
    const char *why = o->failure[0]          ? o->failure
                      : o->bytes < sizeof *a ? WORKER_OTHER_BUILD
                                             : a->why.text;
    (void)e;
    p->compared += !why[0] || !c->is_new;
    if (why[0] && !c->is_new)
        tell(t->review, CHANGE_UNREAD, p->op, p->kernel, "", "%.100s cannot be compared: %.200s",
             c->name, why);
    const change *found = (const change *)(const void *)(a + 1);
    for (size_t i = 0; !why[0] && i < a->count; i++)
        add(t->review, p->op, p->kernel, c->name, &found[i]);
    return true;
}

/* Another op under an old name, or a new kernel in the place of one that is gone: that is no renaming. */
static bool is_replaced(const review *r, const pair *p) {
    bool differs = false;
    for (size_t i = 0; i < r->count; i++)
        differs |= r->items[i].change.kind == CHANGE_ORACLE && r->items[i].op == p->op;
    return differs && strcmp(p->was_op->name, p->op->name) != 0;
}

static bool compare_cases(review *r, err *e) {
    case_list was, now;
    task_list t = {.review = r};
    const char *const names[] = {settings.base, NULL};
    find_cases(&r->was, &was);
    find_cases(&r->now, &now);
    for (size_t i = 0; i < r->pair_count; i++) {
        count_cases(r, &was, &now, &r->pairs[i]);
        r->cases += r->pairs[i].was && r->pairs[i].kernel ? r->pairs[i].cases : 0;
    }
    compare_kernels(r);
    add_tasks(&t, &was, &now);
    progress p = progress_new(stderr, "cases", t.count);
    const worker_plan plan = {.arguments = options_list_values(
                                  "changes", options, sizeof options / sizeof *options, names),
                              .tasks = t.texts,
                              .count = t.count,
                              .jobs = settings.jobs ? (int)settings.jobs : worker_count_jobs(16),
                              .timeout_s = settings.timeout_s,
                              .deliver = deliver,
                              .context = &t,
                              .progress = &p};
    bool ok = t.count == 0 || worker_run(&plan, e);
    if (ok)
        tell_rewritten(r);
    for (const pair *q = r->pairs; ok && q < r->pairs + r->pair_count; q++)
        if (q->tried > 0 && q->compared == 0)
            tell(r, CHANGE_DELETED, q->op, q->kernel, "",
                 "all its cases are new, and the base cannot make them");
        else if (q->tried > 0 && is_replaced(r, q))
            tell(r, CHANGE_DELETED, q->was_op, q->was, "",
                 "what was proved of it is gone: %.80s of the op %.80s, in its place, expects "
                 "other values",
                 q->kernel->name, q->op->name);
    for (size_t i = 0; i < t.count; i++)
        free((void *)(uintptr_t)t.texts[i]);
    free(t.texts);
    free(t.items);
    cases_free(&was);
    cases_free(&now);
    return ok;
}

/* What fails, and what is accepted --------------------------------------------------------------- */

static bool read_kinds(const char *text, bool fails[CHANGE_KINDS], err *e) {
    char *copy = strdup(text);
    bool ok = true;
    assert(copy);
    for (int k = 0; k < CHANGE_KINDS; k++)
        fails[k] = false;
    for (char *word = strtok(copy, ", \t"); ok && word; word = strtok(NULL, ", \t")) {
        change_kind kind;
        if (strcmp(word, "all") == 0)
            for (int k = 0; k < CHANGE_KINDS; k++)
                fails[k] = true;
        else if (change_find(word, &kind))
            fails[kind] = true;
        else if (strcmp(word, "none") != 0)
            ok = err_set(
                e, EXIT_USAGE,
                "there is no kind of changes '%.40s' (valid: deleted looser oracle cases "
                "unread inputs launch settings renamed rewritten tighter more new, all, none)",
                word);
    }
    free(copy);
    return ok;
}

static const char default_kinds[] = "deleted looser";

/* Below the root of its project, or all of it. */
static const char *get_folder(const project_version *v, const char *root) {
    const size_t length = strlen(root);
    const char *folder = v->sources->folder;
    return strncmp(folder, root, length) == 0 ? folder + length : folder;
}

/* What the base says counts: a change cannot take away its own bar. */
static bool choose_kinds(review *r, err *e) {
    bool unused[CHANGE_KINDS];
    const char *was = r->was.fail ? r->was.fail : default_kinds;
    const char *now = r->now.fail ? r->now.fail : default_kinds;
    if (!read_kinds(now, unused, e))
        return false;
    if (r->was.ops && strcmp(was, now) != 0)
        tell(r, CHANGE_SETTINGS, NULL, NULL, "fail",
             "from the next change on '%.60s' fail, before '%.60s'", now, was);
    char root[PATH_MAX];
    if (r->was.ops && root_find_project(root, sizeof root) &&
        strcmp(get_folder(&r->now, root), get_folder(&r->was, settings.base)) != 0)
        tell(r, CHANGE_SETTINGS, NULL, NULL, "kernels",
             "kernels are in '.%.80s', before in '.%.80s'", get_folder(&r->now, root),
             get_folder(&r->was, settings.base));
    if (settings.fail)
        return read_kinds(settings.fail, r->fails, e);
    return read_kinds(was, r->fails, NULL) || read_kinds(default_kinds, r->fails, e);
}

static void add_acceptance(review *r, const op *o, const char *text, size_t length, bool is_now) {
    const acceptance *a = r->accepts;
    while (a < r->accepts + r->accept_count &&
           !(strlen(a->text) == length && strncmp(a->text, text, length) == 0))
        a++;
    if (length == 0 || a < r->accepts + r->accept_count)
        return;
    char *copy = strndup(text, length);
    assert(copy);
    *ARRAY_ADD(r->accepts, r->accept_count, r->accept_room) = (acceptance){o, copy, !is_now, false};
}

/* Those of the base first: what it says already accepts nothing more. */
static void list_accepts(review *r) {
    const project_version *const versions[] = {&r->was, &r->now};
    for (int i = 0; i < 2; i++) {
        const project_version *v = versions[i];
        for (size_t k = 0; k < v->accept_count; k++)
            add_acceptance(r, NULL, v->accept[k], strlen(v->accept[k]), i == 1);
        for (size_t k = 0; k < v->count; k++)
            for (const char *p = v->ops[k]->accept; p && *p; p += strcspn(p, "\n"), p += *p == '\n')
                add_acceptance(r, v->ops[k], p, strcspn(p, "\n"), i == 1);
    }
}

static bool has_name(const project_version *v, const char *name) {
    for (size_t i = 0; i < v->count; i++)
        if (strcmp(v->ops[i]->name, name) == 0 || op_find_kernel(v->ops[i], name))
            return true;
    return false;
}

/* KIND... NAME... : WHY, where WHY may begin without a colon. Without a kind it is about all of them, without a name
 * about the op whose line it is; that of the project, and that about another op, say names. */
static bool does_accept(const review *r, const acceptance *a, const difference *d) {
    char words[256], *at = words;
    bool has_kind = false, is_kind = false, is_named = false, is_name = false, is_why = false;
    snprintf(words, sizeof words, "%.*s", (int)strcspn(a->text, ":"), a->text);
    for (char *word; !is_why && *(word = line_take_word(&at));) {
        change_kind kind;
        if (change_find(word, &kind)) {
            has_kind = true;
            is_kind |= kind == d->change.kind;
        } else if (strchr(a->text, ':') || has_name(&r->was, word) || has_name(&r->now, word)) {
            is_named = true;
            is_name |= d->op && strcmp(word, d->op->name) == 0;
            is_name |= d->kernel && d->kernels == 1 && strcmp(word, d->kernel->name) == 0;
        } else
            is_why = true;
    }
    const bool is_own = d->op && a->op && strcmp(a->op->name, d->op->name) == 0;
    return (is_kind || !has_kind) && (is_named ? is_name : is_own);
}

static void decide(review *r) {
    for (difference *d = r->items; d < r->items + r->count; d++) {
        d->fails = r->fails[d->change.kind];
        for (acceptance *a = r->accepts; a < r->accepts + r->accept_count; a++) {
            if (!does_accept(r, a, d))
                continue;
            d->was_accepted |= a->is_old;
            if (!a->is_old) {
                a->is_used = true;
                d->accepted = a->text;
                d->fails = false;
            }
        }
    }
    for (size_t i = 0; i < r->accept_count; i++)
        if (!r->accepts[i].is_old && !r->accepts[i].is_used)
            tell(r, CHANGE_SETTINGS, r->accepts[i].op, NULL, r->accepts[i].text,
                 "it accepts '%.200s', and nothing of the kind has changed", r->accepts[i].text);
}

static const char *get_subject(const difference *d) {
    return d->kernel && d->kernels == 1 ? d->kernel->name : d->op ? d->op->name : PROJECT_FILE;
}

static int by_importance(const void *a, const void *b) {
    const difference *x = a, *y = b;
    if (x->fails != y->fails)
        return y->fails - x->fails;
    if (x->change.kind != y->change.kind)
        return (int)x->change.kind - (int)y->change.kind;
    if (x->change.weight != y->change.weight)
        return y->change.weight > x->change.weight ? 1 : -1;
    const int order = strcmp(get_subject(x), get_subject(y));
    return order ? order : strcmp(x->change.text, y->change.text);
}

/* Output --------------------------------------------------------------------------------------- */

/* All but its kind and subject. */
static void print_sentence(const difference *d, char *text, size_t size) {
    int used = snprintf(text, size, "%s", d->change.text);
    if (d->where[0] || d->change.why[0])
        used += snprintf(text + used, size - (size_t)used, " (%s%s%s", d->change.why,
                         d->change.why[0] && d->where[0] ? "; " : "", d->where);
    if (d->where[0] && d->cases > 1)
        used += snprintf(text + used, size - (size_t)used, " and %zu more case%s", d->cases - 1,
                         d->cases > 2 ? "s" : "");
    if (d->where[0] && d->kernels > 1)
        used += snprintf(text + used, size - (size_t)used, " of %zu kernels", d->kernels);
    if (d->where[0] || d->change.why[0])
        used += snprintf(text + used, size - (size_t)used, ")");
    if (d->accepted)
        snprintf(text + used, size - (size_t)used, "; accepted by 'accept%s%.200s'",
                 d->accepted[0] == ':' ? "" : " ", d->accepted);
    else if (d->fails && d->was_accepted)
        snprintf(text + used, size - (size_t)used,
                 "; a line accept that the base has already does not count");
}

/* Whoever writes a description writes a part of the comment, and must not hide the rest of it. */
static void print_markdown(FILE *out, const char *text) {
    for (; *text; text++)
        if (*text == '<')
            fputs("&lt;", out);
        else
            fprintf(out, strchr("\\`*[]|", *text) ? "\\%c" : "%c", *text == '\n' ? ' ' : *text);
}

static size_t count_state(const review *r, bool fails) {
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        count += fails ? r->items[i].fails : r->items[i].accepted != NULL;
    return count;
}

static void print_list(const review *r, FILE *out) {
    for (const difference *d = r->items; d < r->items + r->count; d++) {
        char text[1200];
        const char *state = d->fails ? ", fails" : d->accepted ? ", accepted" : "";
        print_sentence(d, text, sizeof text);
        if (!settings.markdown) {
            fprintf(out, "%s%s: %s: %s\n", change_get_name(d->change.kind), state, get_subject(d),
                    text);
            continue;
        }
        char name[DESCRIBE_NAME + 1];
        snprintf(name, sizeof name, "%s", get_subject(d));
        name[strcspn(name, "`\n")] = 0; /* an op in C may have any name */
        fprintf(out,
                d->fails ? "- **%s%s**: `%s`: " : "- %s%s: `%s`: ", change_get_name(d->change.kind),
                state, name);
        print_markdown(out, text);
        fputc('\n', out);
    }
    if (count_state(r, true) > 0)
        fprintf(
            out,
            "%sIf it is meant, a line `accept KIND: WHY` in the description says so, or, for an "
            "op that is gone, `accept = deleted NAME: WHY` in " PROJECT_FILE ".\n%s",
            settings.markdown ? "\n" : "", settings.markdown ? "\n" : "");
}

static void print_summary(const review *r, FILE *out) {
    size_t kernels = 0;
    for (size_t i = 0; i < r->pair_count; i++)
        kernels += r->pairs[i].was && r->pairs[i].kernel;
    const size_t fails = count_state(r, true), accepted = count_state(r, false);
    if (!r->was.ops)
        fputs("the base has no project here: everything is new", out);
    else if (r->count == 0)
        fputs("what is proved has not changed", out);
    else
        fprintf(out, "%zu change%s of what is proved", r->count, r->count == 1 ? "" : "s");
    if (fails > 0)
        fprintf(out, ", %zu fail%s", fails, fails == 1 ? "s" : "");
    if (accepted > 0)
        fprintf(out, ", %zu accepted", accepted);
    fprintf(out, "; compared: %zu kernel%s, %zu cases\n", kernels, kernels == 1 ? "" : "s",
            r->cases);
}

/* Each change is a test, which fails or is skipped with its sentence; a kernel without any passes. */
static void list_outcomes(const review *r, outcome_list *out) {
    static const op project = {.name = "project"};
    static const kernel none = {.name = PROJECT_FILE, .file = PROJECT_FILE};
    for (const difference *d = r->items; d < r->items + r->count; d++) {
        outcome *o = ARRAY_ADD(out->items, out->count, out->room);
        *o = (outcome){.kind = d->fails ? OUTCOME_FAIL : OUTCOME_SKIP,
                       .op = d->op ? d->op : &project,
                       .kernel = d->kernel ? d->kernel
                                 : d->op   ? &d->op->kernels[0]
                                           : &none};
        snprintf(o->name, sizeof o->name, "%.100s/%s%s%.60s", get_subject(d),
                 change_get_name(d->change.kind), d->change.about[0] ? "/" : "", d->change.about);
        print_sentence(d, o->message, sizeof o->message);
    }
    for (const pair *p = r->pairs; p < r->pairs + r->pair_count; p++) {
        bool has_changed = !p->kernel || !p->was;
        for (size_t i = 0; i < r->count; i++)
            has_changed |= r->items[i].op == p->op || r->items[i].kernel == p->kernel;
        if (has_changed)
            continue;
        outcome *o = ARRAY_ADD(out->items, out->count, out->room);
        *o = (outcome){.kind = OUTCOME_PASS, .op = p->op, .kernel = p->kernel};
        snprintf(o->name, sizeof o->name, "%.100s/unchanged", p->kernel->name);
    }
}

/* At the description, or at assay.project where there is none any more. */
static void list_places(const review *r, place_list *out) {
    char root[PATH_MAX - 32], file[PATH_MAX];
    if (!root_find_project(root, sizeof root))
        return;
    for (const difference *d = r->items; d < r->items + r->count; d++) {
        char text[800], rule[64];
        const char *colon = strrchr(d->change.why, ':');
        bool is_gone = !d->op;
        for (size_t i = 0; d->op && i < r->was.count; i++)
            is_gone |= r->was.ops[i] == d->op;
        snprintf(file, sizeof file, "%s/" PROJECT_FILE, root);
        snprintf(rule, sizeof rule, "changes-%s", change_get_name(d->change.kind));
        int used = snprintf(text, sizeof text, "%.100s: ", get_subject(d));
        print_sentence(d, text + used, sizeof text - (size_t)used);
        places_add(out, is_gone ? file : d->op->source, colon ? atoi(colon + 1) : 0,
                   d->fails                           ? "error"
                   : d->change.kind >= CHANGE_RENAMED ? "note"
                                                      : "warning",
                   rule, text);
    }
}

static bool write_all(const review *r, const device_facts *f, double seconds, err *e) {
    outcome_list outcomes = {.count = 0};
    place_list places = {.count = 0};
    list_outcomes(r, &outcomes);
    list_places(r, &places);
    if (settings.json)
        outcome_print_json(stdout, "changes", f, settings.seed, &outcomes, NULL);
    else
        print_list(r, stdout);
    print_summary(r, settings.json ? stderr : stdout);
    bool ok = verb_flush(e);
    places_annotate(stderr, &places);
    ok = ok && (!settings.sarif || places_write_sarif(settings.sarif, "changes", &places, e)) &&
         (!settings.junit ||
          outcome_write_junit(settings.junit, "changes", f, &outcomes, seconds, e));
    places_free(&places);
    outcome_free(&outcomes);
    return ok;
}

static bool load(review *r, const char *const *names, size_t count, err *e) {
    static char base[PATH_MAX];
    char root[PATH_MAX];
    if (count != 1)
        return err_set(e, EXIT_USAGE, "name the base: the folder of the project as it was before");
    if (!root_find_project(root, sizeof root))
        return err_set(e, EXIT_USAGE,
                       "there is no project here: go to a folder with " PROJECT_FILE
                       ", or name it with -C");
    if (!os_is_folder(names[0]) || !realpath(names[0], base))
        return err_set(e, EXIT_USAGE, "there is no folder %.200s", names[0]);
    settings.base = base;
    if (!project_load_version(root, &r->now, e))
        return false;
    library_set_project(r->now.sources);
    err why;
    return project_load_version(base, &r->was, &why) ||
           err_set(e, EXIT_INCONCLUSIVE, "the base cannot be read, so nothing is compared: %.180s",
                   why.text);
}

static exit_code run_verb(const char *const *names, size_t count, err *e) {
    static review r;
    const suite any = {.device = settings.device};
    device_facts facts;
    if (!load(&r, names, count, e))
        return e->code;
    if (settings.worker)
        return serve(&r, e);
    const uint64_t began = os_now_ns();
    add_pairs(&r, &r.was, false);
    add_pairs(&r, &r.now, true);
    match_kernels(&r);
    list_accepts(&r);
    if ((settings.junit && !os_check_writable(settings.junit, e)) || !choose_kinds(&r, e) ||
        !suite_find_device(&any, &facts, e))
        return e->code;
    settings.device = facts.spec;
    r.facts = &facts;
    if (!compare_cases(&r, e))
        return e->code;
    decide(&r);
    if (r.count > 0)
        qsort(r.items, r.count, sizeof *r.items, by_importance);
    if (!write_all(&r, &facts, (double)(os_now_ns() - began) * 1e-9, e))
        return e->code;
    bool is_unread = false;
    for (size_t i = 0; i < r.count; i++)
        is_unread |= r.items[i].change.kind == CHANGE_UNREAD;
    return count_state(&r, true) > 0 ? EXIT_WRONG : is_unread ? EXIT_INCONCLUSIVE : EXIT_OK;
}

VERB(verb_changes, "changes", run_verb, .names = "BASE",
     .about = "what a change of a project makes of what is proved: exit status 1 if it is less",
     .notes =
         "BASE is the folder of the project as it was before the change, such as a git worktree.\n"
         "Each kernel of the base is looked for in the project, also where it was renamed, and\n"
         "each case is made by both descriptions. Oracles are asked with the same inputs, so that\n"
         "what counts is what they say and not how it is written; no kernel is compiled or run. A\n"
         "line per change, the most important first:\n"
         "  deleted    a kernel, or all its cases, are gone\n"
         "  looser     an output may be further off, fewer elements are compared, or none\n"
         "  oracle     other values are expected, whether from an expression, C or a file\n"
         "  cases      shapes or distributions of inputs are gone\n"
         "  unread     a description cannot be read or an oracle not be asked, before or now\n"
         "  inputs     an input holds other values, such as fewer or smaller ones\n"
         "  launch     grid, threadgroups, constants, scalars, arguments\n"
         "  settings   what fails a change, and lines accept that accept nothing\n"
         "  renamed, rewritten, tighter, more, new   proves no less\n"
         "Those that --fail names fail, unless a line `accept KIND... [NAME...]: WHY` of the\n"
         "description (.op), the field .accept (C), or `accept = ...` of assay.project, which has\n"
         "to name the kernel or op, says otherwise. It counts in the change that adds it, and is\n"
         "shown. Exit status: 1 if a change fails, 5 if something is unread.\n",
     VERB_OPTIONS(options), .math = "safe");
