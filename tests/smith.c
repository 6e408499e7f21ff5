/* smith: runs random programs on devices in every way that must agree, and compares with their answers.
 *
 * Usage: smith [--programs N] [--seed S] [--way NAME,...] [--jobs N] [--print SEED] [--reduce SEED]
 *              [--plant N] [--csv FILE]
 * A seed names a program: file S / PER_FILE, program S % PER_FILE of it. ASSAY_DEVICE chooses the device. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/tape.h"
#include "smith.h"

enum { PER_FILE = 25, PLANTED_PER_FILE = 8 };

/* A way to run a program. All of them are the device's plain one but for what the row says. */
typedef struct {
    const char *name, *clang;
    math_mode math;
    bool is_soft; /* only of the software device */
    bool is_checked, is_traced, flushes;
    int threads;
    device *device;
} way;
static way ways[] = {
    {.name = "plain", .threads = 4},
    {.name = "one thread", .is_soft = true, .threads = 1},
    {.name = "relaxed", .math = MATH_RELAXED},
    {.name = "fast", .math = MATH_FAST},
    {.name = "flushed", .is_soft = true, .flushes = true},
    {.name = "checked", .is_soft = true, .is_checked = true},
    {.name = "checked fast", .is_soft = true, .is_checked = true, .math = MATH_FAST},
    {.name = "checked -O0", .is_soft = true, .is_checked = true, .is_traced = true},
    {.name = "clang-14", .is_soft = true, .clang = "clang-14"},
    {.name = "clang-15", .is_soft = true, .clang = "clang-15"},
    {.name = "clang-16", .is_soft = true, .clang = "clang-16"},
    {.name = "clang-17", .is_soft = true, .clang = "clang-17"},
    {.name = "clang-18", .is_soft = true, .clang = "clang-18"},
    {.name = "clang-19", .is_soft = true, .clang = "clang-19"},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Counts that all jobs share: of each way, and of each class of planted bugs. */
typedef struct {
    uint64_t programs, wrong, alarms; /* of plants: planted, found, at the line */
} tally;
static struct { tally way[WAYS], plant[64]; } * shared;

static void count(tally *t, bool is_wrong, bool is_alarm) {
    __atomic_fetch_add(&t->programs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->wrong, is_wrong, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->alarms, is_alarm, __ATOMIC_RELAXED);
}

static char folder[64];
static err last;

static const char *get_device_name(void) {
    const char *name = getenv("ASSAY_DEVICE");
    return name && *name ? name : "soft";
}

static void set(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static bool open_device(way *w) {
    static char clang[256];
    static bool is_known;
    char threads[16];
    if (w->device)
        return true;
    if (!is_known)
        snprintf(clang, sizeof clang, "%s", getenv("ASSAY_CLANG") ? getenv("ASSAY_CLANG") : "");
    is_known = true;
    snprintf(threads, sizeof threads, "%d", w->threads);
    set("ASSAY_THREADS", w->threads ? threads : NULL);
    set("MTL_SHADER_VALIDATION", w->is_checked ? "1" : NULL);
    set("ASSAY_TRACE_NAN", w->is_traced ? "1" : NULL);
    set("ASSAY_CLANG", w->clang ? w->clang : *clang ? clang : NULL);
    const device_options o = {.math = w->math, .flush_denormals = w->flushes};
    w->device = device_open_with(get_device_name(), &o, &last);
    return w->device != NULL;
}

static bool is_available(const way *w) {
    char path[4096];
    if (w->is_soft && strcmp(get_device_name(), "soft") != 0)
        return false;
    return !w->clang || os_find_program(w->clang, path, sizeof path);
}

/* ---------------------------------------------------------------------------------------- one file */
typedef struct {
    world world;
    program *programs[PER_FILE];
    int count, threads;
    uint32_t *expected, *counters; /* per program */
    uint32_t *out, *counted;       /* what a device wrote */
    printer text;
} file;

static file *file_make(uint64_t seed, int first, int count, int planted) {
    file *f = calloc(1, sizeof *f);
    assert(f && count <= PER_FILE);
    world_make(&f->world, seed);
    const extent t = f->world.threads;
    f->count = count;
    f->threads = (int)(t.x * t.y * t.z);
    size_t words = (size_t)f->threads * OUT_WORDS;
    f->expected = calloc(words * (size_t)count, 4);
    f->out = calloc(words * (size_t)count, 4);
    f->counters = calloc((size_t)(COUNTERS * count), 4);
    f->counted = calloc((size_t)(COUNTERS * count), 4);
    for (int i = 0; i < count; i++) {
        f->programs[i] = program_make(&f->world, first + i, planted);
        program_answer(f->programs[i], f->expected + words * (size_t)i, f->counters + COUNTERS * i);
    }
    program_print_file(&f->text, &f->world, f->programs, count);
    return f;
}

static void file_free(file *f) {
    for (int i = 0; i < f->count; i++)
        program_free(f->programs[i]);
    free(f->expected);
    free(f->out);
    free(f->counters);
    free(f->counted);
    free(f->text.text);
    free(f);
}

static buffer *fill(device *d, size_t offset, const void *data, size_t bytes, const char *label) {
    buffer *b = device_new_buffer(d, offset + bytes, STORAGE_SHARED, label, &last);
    if (b && (data ? buffer_upload(b, offset, data, bytes, &last)
                   : buffer_fill_pattern(b, offset, bytes, POISON_PATTERN, &last)))
        return b;
    buffer_free(b);
    return NULL;
}

static bool play(file *f, library *lib, buffer **b, const size_t *bytes) {
    static const elem types[] = {ELEM_U32, ELEM_U32, ELEM_F32, ELEM_U32, ELEM_U32, ELEM_U32};
    const float real = (float)f->world.constant[3] / 4;
    constant_value constants[] = {{0, ELEM_U32, f->world.constant[0]},
                                  {1, ELEM_I32, f->world.constant[1]},
                                  {2, ELEM_U8, f->world.constant[2]},
                                  {3, ELEM_F32, 0}};
    memcpy(&constants[3].bits, &real, sizeof real);
    tape *t = tape_new(lib);
    launch *l = tape_add_specialised(t, "smith.metal", "smith", constants, 4, &last);
    for (int i = 0; l && i < 6; i++)
        launch_bind(l, i, slice_part(b[i], f->world.offset, bytes[i]),
                    i < 3 ? ACCESS_READ : ACCESS_BOTH, types[i]);
    const extent n = f->world.threads, g = f->world.group;
    if (l)
        launch_set_threads(l, (size3){n.x, n.y, n.z}, (size3){g.x, g.y, g.z});
    bool ok = l && tape_play(t, PLAY_WHOLE, NULL, NULL, &last) &&
              buffer_download(b[3], f->world.offset, f->out, bytes[3], &last) &&
              buffer_download(b[4], f->world.offset, f->counted, bytes[4], &last);
    tape_free(t);
    return ok;
}

/* Runs the file; false with `last` if it does not compile or run. */
static bool file_run(file *f, way *w) {
    char path[128];
    snprintf(path, sizeof path, "%s/smith.metal", folder);
    if (!open_device(w) || !os_write_file(path, f->text.text, f->text.count, &last))
        return false;
    library *lib = library_new(w->device, folder, &last);
    if (!lib)
        return false;
    library_set_math(lib, w->math);
    uint32_t start[COUNTERS * PER_FILE];
    for (int i = 0; i < COUNTERS * f->count; i++)
        start[i] = counter_start(i % COUNTERS);
    size_t threads = (size_t)(f->count * f->threads);
    const void *data[] = {f->world.words, f->world.params, f->world.reals, NULL, start, NULL};
    const size_t bytes[] = {4 * INPUT_WORDS,
                            4 * INPUT_WORDS,
                            4 * INPUT_WORDS,
                            4 * OUT_WORDS * threads,
                            4u * COUNTERS * (size_t)f->count,
                            OWN_BYTES * threads};
    static const char *const labels[] = {"words", "params", "reals", "out", "counts", "own"};
    buffer *b[6] = {NULL};
    bool ok = true;
    for (int i = 0; i < 6; i++)
        ok = ok && (b[i] = fill(w->device, f->world.offset, data[i], bytes[i], labels[i]));
    device_clear_findings(w->device);
    ok = ok && play(f, lib, b, bytes);
    for (int i = 0; i < 6; i++)
        buffer_free(b[i]);
    library_free(lib);
    return ok;
}

/* ----------------------------------------------------------------------------------------- compare */
static const node *find_put(const node *list, int slot) {
    for (const node *n = list; n; n = n->next) {
        if (n->op == OP_PUT && n->value == slot)
            return n;
        const node *in = find_put(n->body, slot);
        in = in ? in : find_put(n->other, slot);
        if (in)
            return in;
    }
    return NULL;
}

static void print_line(const file *f, int line) {
    const char *at = f->text.text;
    for (int i = 1; i < line && at; i++)
        at = strchr(at, '\n') + 1;
    fprintf(stderr, "    line %d: %.*s\n", line, (int)strcspn(at, "\n"), at + strspn(at, " "));
}

/* Is what program i wrote what it must? The first difference is told. */
static bool compare(const file *f, int i, const way *w, bool tells) {
    size_t words = (size_t)f->threads * OUT_WORDS, at = words * (size_t)i;
    unsigned long long seed = f->world.seed * PER_FILE + (unsigned)f->programs[i]->index;
    for (size_t k = 0; k < words; k++)
        if (f->out[at + k] != f->expected[at + k]) {
            const node *n = find_put(f->programs[i]->main->body, (int)(k % OUT_WORDS));
            if (!tells)
                return false;
            fprintf(stderr, "smith: program %llu, %s: thread %zu wrote 0x%x, expected 0x%x\n", seed,
                    w->name, k / OUT_WORDS, f->out[at + k], f->expected[at + k]);
            if (n)
                print_line(f, n->line);
            return false;
        }
    for (int k = COUNTERS * i; k < COUNTERS * (i + 1); k++)
        if (f->counted[k] != f->counters[k]) {
            if (tells)
                fprintf(stderr, "smith: program %llu, %s: counter %d is 0x%x, expected 0x%x\n",
                        seed, w->name, k % COUNTERS, f->counted[k], f->counters[k]);
            return false;
        }
    return true;
}

static bool is_alarmed(const file *f, int i, const way *w, bool tells) {
    const finding_list *found = device_get_findings(w->device);
    const program *p = f->programs[i];
    for (size_t k = 0; found && k < found->count; k++) {
        const finding *a = &found->items[k];
        if (finding_is_mild(a->what) || a->line < p->first_line || a->line > p->last_line)
            continue;
        if (tells) {
            fprintf(stderr, "smith: program %llu, %s: false alarm: %s\n",
                    (unsigned long long)f->world.seed * PER_FILE + (unsigned)p->index, w->name,
                    a->text);
            print_line(f, a->line);
        }
        return true;
    }
    return false;
}

/* Programs first..first+count-1 of a file; where they do not even run together, half by half. */
static void try_programs(uint64_t seed, int first, int programs, way *w) {
    file *f = file_make(seed, first, programs, -1);
    bool ok = file_run(f, w);
    if (!ok && programs > 1) {
        try_programs(seed, first, programs / 2, w);
        try_programs(seed, first + programs / 2, programs - programs / 2, w);
    } else if (!ok) {
        fprintf(stderr, "smith: program %llu, %s: %s\n%.2000s\n",
                (unsigned long long)seed * PER_FILE + (unsigned)first, w->name, last.text,
                last.detail);
        count(&shared->way[w - ways], true, false);
    }
    for (int i = 0; ok && i < programs; i++) {
        bool same = compare(f, i, w, true), alarmed = is_alarmed(f, i, w, true);
        count(&shared->way[w - ways], !same, alarmed);
    }
    file_free(f);
}

/* ------------------------------------------------------------------------------------------- plants */
/* Is the bug of program i among the findings, and where it is? */
static void look_for(const file *f, int i, device *d, bool *found, bool *at_line) {
    const finding_list *list = device_get_findings(d);
    const program *p = f->programs[i];
    *found = *at_line = false;
    for (size_t k = 0; k < list->count; k++) {
        const finding *a = &list->items[k];
        if (a->line < p->first_line || a->line > p->last_line ||
            !(plants[p->planted->value].findings >> a->what & 1))
            continue;
        *found = true;
        *at_line = *at_line || a->line == p->planted->line;
    }
}

/* A file of programs with a bug of one class each. */
static void try_plants(uint64_t seed, int class, way *w) {
    int programs = plants[class].findings == 1u << FINDING_BARRIER ? 1 : PLANTED_PER_FILE;
    file *f = file_make(seed, 0, programs, class);
    bool ok = file_run(f, w);
    if (!ok)
        fprintf(stderr, "smith: file %llu, planted '%s': %s\n%s\n", (unsigned long long)seed,
                plants[class].name, last.text, last.detail);
    for (int i = 0; i < programs; i++) {
        bool found = false, at_line = false;
        if (ok)
            look_for(f, i, w->device, &found, &at_line);
        if (!at_line) {
            fprintf(stderr, "smith: file %llu program %d, planted '%s': %s\n",
                    (unsigned long long)seed, i, plants[class].name,
                    found ? "at another line" : "missed");
            print_line(f, f->programs[i]->planted->line);
        }
        count(&shared->plant[class], found, at_line);
    }
    file_free(f);
}

/* ------------------------------------------------------------------------------------------ reduce */
/* A place of the tree and what to try there. */
typedef enum { REMOVE, UNWRAP, UNWRAP_OTHER, DROP_OTHER, ZERO, ONE, CHILD } way_out;
typedef struct {
    node **at;
    way_out how;
    int child;
} edit;
typedef struct {
    edit items[4096];
    int count;
} edit_list;

static void add_edit(edit_list *l, node **at, way_out how, int child) {
    if (l->count < 4096)
        l->items[l->count++] = (edit){at, how, child};
}

/* An expression by a literal, or by a part of it of the same type. */
static void find_simpler(edit_list *l, node **at) {
    node *n = *at;
    for (way_out how = ZERO; how <= ONE && n->op != OP_LITERAL && n->op != OP_PLACE && n->t.n == 1;
         how++)
        add_edit(l, at, how, 0);
    for (int i = 0; i < 4 && n->a[i]; i++)
        if (n->a[i]->t.k == n->t.k && n->a[i]->t.n == n->t.n && n->t.k < F16)
            add_edit(l, at, CHILD, i);
    for (int i = 0; i < 4 && n->a[i]; i++)
        find_simpler(l, &n->a[i]);
}

/* Statements: without them, or with what is in them in their place. */
static void find_edits(edit_list *l, node **at, bool inner) {
    for (; *at; at = &(*at)->next) {
        node *n = *at;
        if (!inner) {
            add_edit(l, at, REMOVE, 0);
            if (n->body && n->op != OP_SWITCH && n->op != OP_CASE)
                add_edit(l, at, UNWRAP, 0);
            if (n->other)
                add_edit(l, at, UNWRAP_OTHER, 0), add_edit(l, at, DROP_OTHER, 0);
        }
        for (int i = n->op == OP_ASSIGN; inner && i < 4 && n->a[i]; i++)
            find_simpler(l, &n->a[i]);
        find_edits(l, &n->body, inner);
        find_edits(l, &n->other, inner);
    }
}

/* Makes the change, or takes it back. */
static void apply_edit(const edit *e, node *old, node *fresh, node *other, bool undo) {
    node *list = e->how == UNWRAP ? old->body : old->other, **end = &list;
    *fresh = (node){.op = OP_LITERAL, .t = old->t, .hi = 1};
    fresh->value = (e->how == ONE) * (old->t.k >= F16 ? 4 : 1);
    if (e->how == DROP_OTHER) {
        old->other = undo ? other : NULL;
        return;
    }
    while (*end && *end != old->next)
        end = &(*end)->next;
    if (e->how == UNWRAP || e->how == UNWRAP_OTHER)
        *end = undo ? NULL : old->next;
    *e->at = undo                     ? old
             : e->how == REMOVE       ? old->next
             : e->how == UNWRAP       ? old->body
             : e->how == UNWRAP_OTHER ? old->other
             : e->how == CHILD        ? old->a[e->child]
                                      : fresh;
}

typedef enum { AGREES, DIFFERS, ALARMED, FAILS } outcome;

/* How the file's programs do, as their trees are now. */
static outcome judge(file *f, way *w, bool tells) {
    outcome worst = AGREES;
    f->text.count = 0;
    f->text.line = 0;
    for (int i = 0; i < f->count; i++)
        program_answer(f->programs[i], f->expected + i * f->threads * OUT_WORDS,
                       f->counters + COUNTERS * i);
    program_print_file(&f->text, &f->world, f->programs, f->count);
    if (!file_run(f, w)) {
        if (tells)
            fprintf(stderr, "%s\n%s\n", last.text, last.detail);
        return FAILS;
    }
    for (int i = 0; i < f->count && worst == AGREES; i++)
        worst = !compare(f, i, w, tells) ? DIFFERS : is_alarmed(f, i, w, tells) ? ALARMED : AGREES;
    return worst;
}

/* Leaves out programs without which the others still fail. */
static void drop_programs(file *f, way *w, outcome wanted) {
    for (int i = f->count - 1; i >= 0 && f->count > 1; i--) {
        program *p = f->programs[i];
        memmove(f->programs + i, f->programs + i + 1, sizeof p * (size_t)(--f->count - i));
        if (judge(f, w, false) == wanted) {
            program_free(p);
            continue;
        }
        memmove(f->programs + i + 1, f->programs + i, sizeof p * (size_t)(f->count++ - i));
        f->programs[i] = p;
    }
}

static void list_edits(const file *f, edit_list *l, bool inner) {
    l->count = 0;
    for (int i = 0; i < f->count; i++) {
        for (function *g = f->programs[i]->functions; g; g = g->next)
            find_edits(l, &g->body, inner);
        find_edits(l, &f->programs[i]->main->body, inner);
    }
}

/* Keeps each edit with which the programs still fail in the same way, until none is left. */
static bool reduce(file *f, way *w) {
    static edit_list l;
    const outcome wanted = judge(f, w, true);
    drop_programs(f, w, wanted);
    for (bool goes_on = wanted != AGREES; goes_on;) {
        goes_on = false;
        for (int i = 0, inner = 0; inner < 2; i++) {
            list_edits(f, &l, inner);
            if (i >= l.count) {
                inner++, i = -1;
                continue;
            }
            const edit *e = &l.items[i];
            node *old = *e->at, *fresh = calloc(1, sizeof *fresh), *other = old->other;
            assert(fresh);
            apply_edit(e, old, fresh, other, false);
            if (judge(f, w, false) == wanted) {
                goes_on = true;
                i--;
                continue;
            }
            apply_edit(e, old, fresh, other, true);
            free(fresh);
        }
    }
    judge(f, w, true);
    return wanted != AGREES;
}

/* ------------------------------------------------------------------------------------------ options */
typedef struct {
    uint64_t programs, seed;
    const char *way, *csv;
    int jobs, plants;
    bool prints, reduces;
} options;

static bool is_wanted(const options *o, const way *w) {
    size_t length = strlen(w->name);
    for (const char *at = o->way; at && *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] != 0))
        if (strncmp(at, w->name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !o->way && is_available(w);
}

static void run_files(const options *o, int job) {
    uint64_t first = o->seed / PER_FILE,
             last_file = (o->seed + o->programs + PER_FILE - 1) / PER_FILE;
    for (uint64_t i = first + (uint64_t)job; i < last_file; i += (uint64_t)o->jobs) {
        uint64_t end = o->seed + o->programs - i * PER_FILE;
        int count = end < PER_FILE ? (int)end : PER_FILE;
        for (int k = 0; k < WAYS; k++)
            if (is_wanted(o, &ways[k]))
                try_programs(i, 0, count, &ways[k]);
    }
}

static bool make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/smith.XXXXXX");
    return mkdtemp(folder) != NULL;
}

static void remove_folder(void) {
    char path[128];
    snprintf(path, sizeof path, "%s/smith.metal", folder);
    unlink(path);
    rmdir(folder);
}

static void run_job(const options *o, int job) {
    if (!make_folder())
        _exit(3);
    if (!o->plants)
        run_files(o, job);
    for (int class = 0; class < plant_count; class ++)
        for (int i = 0; i < o->plants; i++)
            for (int k = 0; k < WAYS; k++)
                if ((class * o->plants + i) % o->jobs == job &&
                    strcmp(ways[k].name, "checked") == 0)
                    try_plants(o->seed / PER_FILE + (uint64_t)i, class, &ways[k]);
    for (int i = 0; i < WAYS; i++)
        if (ways[i].device)
            device_close(ways[i].device);
    remove_folder();
    _exit(0);
}

/* Each job is a process of its own. */
static bool run_jobs(const options *o) {
    bool ok = true;
    int status;
    for (int job = 0; job < o->jobs; job++) {
        fflush(NULL);
        if (fork() == 0)
            run_job(o, job);
    }
    while (wait(&status) > 0)
        if (status != 0) {
            fprintf(stderr, "smith: a job ended with status %d\n", status);
            ok = false;
        }
    return ok;
}

/* Rows of the CSV file: kind, device, machine, way or class, first seed, and the three counts. */
static bool report(const options *o) {
    struct utsname machine;
    uint64_t bad = 0, programs = 0;
    FILE *csv = o->csv ? fopen(o->csv, "a") : NULL;
    if (csv && ftell(csv) == 0)
        fprintf(csv, "kind,device,machine,name,seed,programs,wrong,alarms\n");
    uname(&machine);
    for (int i = 0; i < WAYS + plant_count; i++) {
        bool is_way = i < WAYS;
        const tally *t = is_way ? &shared->way[i] : &shared->plant[i - WAYS];
        const char *name = is_way ? ways[i].name : plants[i - WAYS].name;
        if (t->programs == 0)
            continue;
        printf(is_way ? "%-12s %8llu programs, %llu disagreements, %llu false alarms\n"
                      : "%-36s %6llu planted, %llu found, %llu at the line\n",
               name, (unsigned long long)t->programs, (unsigned long long)t->wrong,
               (unsigned long long)t->alarms);
        if (csv)
            fprintf(csv, "%s,%s,%s,%s,%llu,%llu,%llu,%llu\n", is_way ? "way" : "plant",
                    get_device_name(), machine.machine, name, (unsigned long long)o->seed,
                    (unsigned long long)t->programs, (unsigned long long)t->wrong,
                    (unsigned long long)t->alarms);
        bad += is_way ? t->wrong + t->alarms : 100 * t->wrong < 99 * t->programs;
        programs += t->programs;
    }
    if (csv)
        fclose(csv);
    return programs > 0 && bad == 0;
}

/* A program that fails only beside others is reduced with them. */
static int print_or_reduce(const options *o) {
    file *f = file_make(o->seed / PER_FILE, (int)(o->seed % PER_FILE), 1, o->plants - 1);
    const extent n = f->world.threads, g = f->world.group;
    way *w = ways;
    while (o->reduces && w < ways + WAYS && !is_wanted(o, w))
        w++;
    if (o->reduces && make_folder()) {
        if (!reduce(f, w)) {
            file_free(f);
            f = file_make(o->seed / PER_FILE, 0, PER_FILE, o->plants - 1);
            reduce(f, w);
        }
        device_close(w->device);
        remove_folder();
    }
    printf("// threads %u %u %u in groups of %u %u %u\n%s", n.x, n.y, n.z, g.x, g.y, g.z,
           f->text.text);
    file_free(f);
    return 0;
}

static bool parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value)
            return false;
        if (strcmp(argv[i], "--programs") == 0)
            o->programs = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0)
            o->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--way") == 0)
            o->way = value;
        else if (strcmp(argv[i], "--csv") == 0)
            o->csv = value;
        else if (strcmp(argv[i], "--jobs") == 0)
            o->jobs = atoi(value);
        else if (strcmp(argv[i], "--plant") == 0)
            o->plants = atoi(value);
        else if (strcmp(argv[i], "--diverge") == 0)
            program_diverges = strcmp(value, "no") != 0;
        else if (strcmp(argv[i], "--print") == 0)
            o->prints = true, o->seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--reduce") == 0)
            o->reduces = true, o->seed = strtoull(value, NULL, 10);
        else
            return false;
        i++;
    }
    return o->jobs > 0;
}

int main(int argc, char **argv) {
    options o = {.programs = 500, .jobs = 1};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: smith [--programs N] [--seed S] [--way NAME,...] [--jobs N] "
                        "[--print SEED] [--reduce SEED] [--plant N] [--csv FILE]\n");
        return 2;
    }
    if (o.prints || o.reduces)
        return print_or_reduce(&o);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 3;
    bool ran = run_jobs(&o);
    return report(&o) && ran ? 0 : 1;
}
