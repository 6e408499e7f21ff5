/* smith: runs random programs on devices in every way that must agree, and compares with their answers.
 *
 * Usage: smith [--programs N] [--seed S] [--way NAME,...] [--jobs N] [--print SEED] [--reduce SEED]
 *              [--plant N] [--csv FILE]
 * A seed names a program: file S / PER_FILE, program S % PER_FILE of it. ASSAY_DEVICE chooses the device. */
#include <assert.h>
#include <stdarg.h>
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
    const char *name, *clang, *threads;
    math_mode math;
    bool is_soft; /* only of the software device */
    bool is_checked, is_traced, flushes;
    device *device;
} way;
enum { PLAIN, CHECKED };
/* clang-format off */
static way ways[] = {
    [PLAIN] = {.name = "plain", .threads = "4"},
    [CHECKED] = {.name = "checked", .is_soft = true, .is_checked = true},
    {.name = "checked fast", .is_soft = true, .is_checked = true, .math = MATH_FAST},
    {.name = "checked -O0", .is_soft = true, .is_checked = true, .is_traced = true},
    {.name = "one thread", .is_soft = true, .threads = "1"},
    {.name = "relaxed", .math = MATH_RELAXED},
    {.name = "fast", .math = MATH_FAST},
    {.name = "flushed", .is_soft = true, .flushes = true},
#define CLANG(version) {.name = version, .is_soft = true, .clang = version}
    CLANG("clang-16"), CLANG("clang-17"), CLANG("clang-18"), CLANG("clang-19"),
};
/* clang-format on */
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

enum { PROGRAMS, SEED, WAY, JOBS, PRINT, REDUCE, PLANT, CSV, OPTIONS };
static const char *const option_names[OPTIONS] = {"--programs", "--seed",   "--way",   "--jobs",
                                                  "--print",    "--reduce", "--plant", "--csv"};
static const char *option[OPTIONS] = {"500", "0", NULL, "1", NULL, NULL, "0", NULL};
static uint64_t get_number(int o) {
    return strtoull(option[o], NULL, 10);
}

static char folder[64], path[128];
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
    if (w->device)
        return true;
    set("ASSAY_THREADS", w->threads);
    set("MTL_SHADER_VALIDATION", w->is_checked ? "1" : NULL);
    set("ASSAY_TRACE_NAN", w->is_traced ? "1" : NULL);
    if (w->clang) /* these ways come last */
        set("ASSAY_CLANG", w->clang);
    const device_options o = {.math = w->math, .flush_denormals = w->flushes};
    w->device = device_open_with(get_device_name(), &o, &last);
    return w->device != NULL;
}

/* Does --way name it, or can it be run? */
static bool is_wanted(const way *w) {
    char found[4096];
    size_t length = strlen(w->name);
    for (const char *at = option[WAY]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, w->name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !option[WAY] && !(w->is_soft && strcmp(get_device_name(), "soft") != 0) &&
           (!w->clang || os_find_program(w->clang, found, sizeof found));
}

/* ---------------------------------------------------------------------------------------- one file */
typedef struct {
    world world;
    program *programs[PER_FILE];
    int count, threads;
    uint32_t *expected, *out;                                             /* what a device wrote */
    uint32_t counters[PER_FILE * COUNTERS], counted[PER_FILE * COUNTERS]; /* and so here */
    printer text;
} file;

/* Answers and prints the programs as they are now. */
static void file_write(file *f) {
    f->text.count = 0;
    f->text.line = 0;
    for (int i = 0; i < f->count; i++)
        program_answer(f->programs[i], f->expected + i * f->threads * OUT_WORDS,
                       f->counters + COUNTERS * i);
    program_print_file(&f->text, &f->world, f->programs, f->count);
}

static file *file_make(uint64_t seed, int first, int count, int planted) {
    file *f = calloc(1, sizeof *f);
    assert(f && count <= PER_FILE);
    world_make(&f->world, seed);
    f->count = count;
    f->threads = f->world.thread_count;
    f->expected = calloc((size_t)(f->threads * count), 4 * OUT_WORDS);
    f->out = calloc((size_t)(f->threads * count), 4 * OUT_WORDS);
    for (int i = 0; i < count; i++)
        f->programs[i] = program_make(&f->world, first + i, planted);
    file_write(f);
    return f;
}

static void file_free(file *f) {
    for (int i = 0; i < f->count; i++)
        program_free(f->programs[i]);
    free(f->expected);
    free(f->out);
    free(f->text.text);
    free(f);
}

/* One of the kernel's buffers, in order. */
typedef struct {
    const char *label;
    elem type;
    size_t bytes;
    const void *data; /* NULL: poison */
    buffer *b;
} argument;

static bool fill(device *d, size_t offset, argument *a) {
    a->b = device_new_buffer(d, offset + a->bytes, STORAGE_SHARED, a->label, &last);
    return a->b && (a->data ? buffer_upload(a->b, offset, a->data, a->bytes, &last)
                            : buffer_fill_pattern(a->b, offset, a->bytes, POISON_PATTERN, &last));
}

static bool play(file *f, library *lib, const argument *a) {
    const float real = (float)f->world.constant[3] / 4;
    constant_value constants[] = {{0, ELEM_U32, f->world.constant[0]},
                                  {1, ELEM_I32, f->world.constant[1]},
                                  {2, ELEM_U8, f->world.constant[2]},
                                  {3, ELEM_F32, 0}};
    memcpy(&constants[3].bits, &real, sizeof real);
    tape *t = tape_new(lib);
    launch *l = tape_add_specialised(t, "smith.metal", "smith", constants, 4, &last);
    for (int i = 0; l && i < 6; i++)
        launch_bind(l, i, slice_part(a[i].b, f->world.offset, a[i].bytes),
                    i < 3 ? ACCESS_READ : ACCESS_BOTH, a[i].type);
    const extent n = f->world.threads, g = f->world.group;
    if (l)
        launch_set_threads(l, (size3){n.x, n.y, n.z}, (size3){g.x, g.y, g.z});
    bool ok = l && tape_play(t, PLAY_WHOLE, NULL, NULL, &last) &&
              buffer_download(a[3].b, f->world.offset, f->out, a[3].bytes, &last) &&
              buffer_download(a[4].b, f->world.offset, f->counted, a[4].bytes, &last);
    tape_free(t);
    return ok;
}

/* Runs the file; false with `last` if it does not compile or run. */
static bool file_run(file *f, way *w) {
    if (!open_device(w) || !os_write_file(path, f->text.text, f->text.count, &last))
        return false;
    library *lib = library_new(w->device, folder, &last);
    if (!lib)
        return false;
    library_set_math(lib, w->math);
    uint32_t start[COUNTERS * PER_FILE];
    for (int i = 0; i < COUNTERS * f->count; i++)
        start[i] = counter_start(i % COUNTERS);
    const size_t input = 4 * INPUT_WORDS, threads = (size_t)(f->count * f->threads);
    argument a[] = {{"words", ELEM_U32, input, f->world.words, NULL},
                    {"params", ELEM_U32, input, f->world.params, NULL},
                    {"reals", ELEM_F32, input, f->world.reals, NULL},
                    {"out", ELEM_U32, 4 * OUT_WORDS * threads, NULL, NULL},
                    {"counts", ELEM_U32, 4u * COUNTERS * (size_t)f->count, start, NULL},
                    {"own", ELEM_U32, OWN_BYTES * threads, NULL, NULL}};
    bool ok = true;
    for (int i = 0; i < 6; i++)
        ok = ok && fill(w->device, f->world.offset, &a[i]);
    device_clear_findings(w->device);
    ok = ok && play(f, lib, a);
    for (int i = 0; i < 6; i++)
        buffer_free(a[i].b);
    library_free(lib);
    return ok;
}

/* ----------------------------------------------------------------------------------------- compare */
typedef enum { AGREES, DIFFERS, ALARMED, FAILS } outcome;

static bool is_quiet; /* as long as a program is reduced */

/* Says what is wrong with program i, and shows the line if there is one. */
__attribute__((format(printf, 5, 6))) static void tell(const file *f, int i, const way *w, int line,
                                                       const char *format, ...) {
    va_list list;
    if (is_quiet)
        return;
    va_start(list, format);
    fprintf(stderr, "smith: program %llu, %s: ",
            (unsigned long long)f->world.seed * PER_FILE + (unsigned)f->programs[i]->index,
            w->name);
    vfprintf(stderr, format, list);
    va_end(list);
    const char *at = f->text.text;
    for (int k = 1; k < line; k++)
        at = strchr(at, '\n') + 1;
    at += strspn(at, " ");
    if (line)
        fprintf(stderr, "\n    line %d: %.*s", line, (int)strcspn(at, "\n"), at);
    fputc('\n', stderr);
}

/* Is what program i wrote what it must, and without a finding? What is not is reported. */
static outcome judge(const file *f, int i, const way *w) {
    const program *p = f->programs[i];
    const finding_list *found = device_get_findings(w->device);
    int words = f->threads * OUT_WORDS;
    for (int k = words * i; k < words * (i + 1); k++)
        if (f->out[k] != f->expected[k]) {
            tell(f, i, w, p->put_line[k % OUT_WORDS], "thread %d wrote 0x%x, expected 0x%x",
                 (k - words * i) / OUT_WORDS, f->out[k], f->expected[k]);
            return DIFFERS;
        }
    for (int k = COUNTERS * i; k < COUNTERS * (i + 1); k++)
        if (f->counted[k] != f->counters[k]) {
            tell(f, i, w, 0, "counter %d is 0x%x, expected 0x%x", k % COUNTERS, f->counted[k],
                 f->counters[k]);
            return DIFFERS;
        }
    for (size_t k = 0; found && k < found->count; k++) {
        const finding *a = &found->items[k];
        if (finding_is_mild(a->what) || a->line < p->first_line || a->line > p->last_line)
            continue;
        tell(f, i, w, a->line, "false alarm: %s", a->text);
        return ALARMED;
    }
    return AGREES;
}

/* Programs first..first+count-1 of a file; where they do not even run together, half by half. */
static void try_programs(uint64_t seed, int first, int programs, way *w) {
    file *f = file_make(seed, first, programs, -1);
    bool ok = file_run(f, w);
    if (!ok && programs > 1) {
        try_programs(seed, first, programs / 2, w);
        try_programs(seed, first + programs / 2, programs - programs / 2, w);
    } else if (!ok) {
        tell(f, 0, w, 0, "%s\n%.2000s", last.text, last.detail);
        count(&shared->way[w - ways], true, false);
    }
    for (int i = 0; ok && i < programs; i++) {
        outcome o = judge(f, i, w);
        count(&shared->way[w - ways], o == DIFFERS, o == ALARMED);
    }
    file_free(f);
}

/* A file of programs with a bug of one class each: is it among the findings, and where it is? */
static void try_plants(uint64_t seed, int class, way *w) {
    const plant *bug = &plants[class];
    int programs = bug->findings == 1u << FINDING_BARRIER ? 1 : PLANTED_PER_FILE;
    file *f = file_make(seed, 0, programs, class);
    bool ok = file_run(f, w);
    for (int i = 0; i < programs; i++) {
        const program *p = f->programs[i];
        const finding_list *list = ok ? device_get_findings(w->device) : NULL;
        bool found = false, at_line = false;
        for (size_t k = 0; list && k < list->count; k++) {
            const finding *a = &list->items[k];
            bool is_it = bug->findings >> a->what & 1;
            found |= is_it && a->line >= p->first_line && a->line <= p->last_line;
            at_line |= is_it && a->line == p->planted->line;
        }
        if (!at_line)
            tell(f, i, w, p->planted->line, "planted '%s': %s", bug->name,
                 found ? "at another line"
                 : ok  ? "missed"
                       : last.text);
        count(&shared->plant[class], found, at_line);
    }
    file_free(f);
}

/* ------------------------------------------------------------------------------------------ reduce */
/* How the file's programs do, as their trees are now. */
static outcome judge_all(file *f, way *w) {
    outcome worst = AGREES;
    file_write(f);
    if (!file_run(f, w)) {
        tell(f, 0, w, 0, "%s\n%.2000s", last.text, last.detail);
        return FAILS;
    }
    for (int i = 0; i < f->count && worst == AGREES; i++)
        worst = judge(f, i, w);
    return worst;
}

/* A search for less that fails in the same way: by statements, or by expressions. */
typedef struct {
    file *f;
    way *w;
    outcome wanted;
    bool of_expressions, found;
} search;

static bool replace(search *s, node *n, node by) {
    const node was = *n;
    *n = by;
    if (judge_all(s->f, s->w) != s->wanted) {
        *n = was;
        return false;
    }
    return s->found = true;
}

/* Removes a statement, or puts 0, 1 or a part of it in the place of an expression; and so in all
 * that are in it or follow it. */
static void shrink(search *s, node *n) {
    for (; n; n = n->next) {
        bool is_statement = n->op == OP_NONE || n->op >= OP_DECLARE, done = false;
        bool is_least = n->op == OP_NONE || n->op == OP_RETURN || n->op == OP_LITERAL;
        if (is_statement && !is_least && !s->of_expressions)
            replace(s, n, (node){.next = n->next});
        for (int i = 0; i < 6 && !is_statement && !is_least && s->of_expressions && !done; i++) {
            const node *part = i < 2 ? NULL : n->a[i - 2];
            if (part && is_same(part->t, n->t) && n->t.k < F16)
                done = replace(s, n, *part);
            else if (i < 2 && n->t.n == 1 && n->op != OP_PLACE)
                done = replace(
                    s, n, (node){.op = OP_LITERAL, .t = n->t, .value = n->t.k < F16 ? i : 4 * i});
        }
        for (int i = n->op == OP_ASSIGN; i < 4 && n->a[i]; i++)
            shrink(s, n->a[i]);
        shrink(s, n->body);
        shrink(s, n->other);
    }
}

/* First whole programs and functions, then statements, then expressions. */
static bool reduce(file *f, way *w) {
    search s = {.f = f, .w = w, .wanted = judge_all(f, w)};
    is_quiet = true;
    for (int i = 0; i < f->count && f->count > 1; i++)
        replace(&s, f->programs[i]->main->body, (node){0});
    for (s.found = s.wanted != AGREES; s.found;) {
        s.found = false;
        for (int i = 0; i < 2 * f->count; i++) {
            s.of_expressions = i % 2;
            for (function *g = f->programs[i / 2]->functions; g; g = g->next)
                if (g->body->op == OP_NONE || !replace(&s, g->body, (node){0}))
                    shrink(&s, g->body);
            shrink(&s, f->programs[i / 2]->main->body);
        }
    }
    is_quiet = false;
    judge_all(f, w);
    return s.wanted != AGREES;
}

/* -------------------------------------------------------------------------------------------- jobs */
static bool make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/smith.XXXXXX");
    bool ok = mkdtemp(folder) != NULL;
    snprintf(path, sizeof path, "%s/smith.metal", folder);
    return ok;
}

static void clean_up(void) {
    for (int i = 0; i < WAYS; i++)
        if (ways[i].device)
            device_close(ways[i].device);
    unlink(path);
    rmdir(folder);
}

/* Files in all ways, or classes of planted bugs, of which each job has its share. */
static void run_job(uint64_t job) {
    const uint64_t jobs = get_number(JOBS), planted = get_number(PLANT), seed = get_number(SEED);
    const uint64_t end = seed + get_number(PROGRAMS);
    if (!make_folder())
        _exit(3);
    for (uint64_t i = seed / PER_FILE + job; !planted && i * PER_FILE < end; i += jobs) {
        uint64_t count = end - i * PER_FILE < PER_FILE ? end - i * PER_FILE : PER_FILE;
        for (int k = 0; k < WAYS; k++)
            if (is_wanted(&ways[k]))
                try_programs(i, 0, (int)count, &ways[k]);
    }
    for (uint64_t i = job; i < planted * (uint64_t)plant_count; i += jobs)
        try_plants(seed / PER_FILE + i % planted, (int)(i / planted), &ways[CHECKED]);
    clean_up();
    _exit(0);
}

/* Each job is a process of its own. */
static bool run_jobs(void) {
    bool ok = true;
    int status;
    for (uint64_t job = 0; job < get_number(JOBS); job++) {
        fflush(NULL);
        if (fork() == 0)
            run_job(job);
    }
    while (wait(&status) > 0)
        if (status != 0) {
            fprintf(stderr, "smith: a job ended with status %d\n", status);
            ok = false;
        }
    return ok;
}

/* Rows of the CSV file: kind, device, machine, way or class, first seed, and the three counts. */
static bool report(void) {
    struct utsname machine;
    uint64_t bad = 0, programs = 0;
    FILE *csv = option[CSV] ? fopen(option[CSV], "a") : NULL;
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
            fprintf(csv, "%s,%s,%s,%s,%s,%llu,%llu,%llu\n", is_way ? "way" : "plant",
                    get_device_name(), machine.machine, name, option[SEED],
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
static int print_or_reduce(uint64_t seed, bool reduces) {
    const int planted = (int)get_number(PLANT) - 1;
    file *f = file_make(seed / PER_FILE, (int)(seed % PER_FILE), 1, planted);
    const extent n = f->world.threads, g = f->world.group;
    way *w = ways;
    while (reduces && w < ways + WAYS - 1 && !is_wanted(w))
        w++;
    if (reduces && make_folder()) {
        if (!reduce(f, w)) {
            file_free(f);
            f = file_make(seed / PER_FILE, 0, PER_FILE, planted);
            reduce(f, w);
        }
        clean_up();
    }
    printf("// threads %u %u %u in groups of %u %u %u\n%s", n.x, n.y, n.z, g.x, g.y, g.z,
           f->text.text);
    file_free(f);
    return 0;
}

int main(int argc, char **argv) {
    int o = 0;
    for (int i = 1; i < argc && o < OPTIONS; i += 2) {
        for (o = 0; o < OPTIONS && strcmp(argv[i], option_names[o]) != 0;)
            o++;
        o = i + 1 < argc ? o : OPTIONS;
        if (o < OPTIONS)
            option[o] = argv[i + 1];
    }
    if (o == OPTIONS || get_number(JOBS) == 0) {
        fprintf(stderr, "usage: smith [--programs N] [--seed S] [--way NAME,...] [--jobs N] "
                        "[--print SEED] [--reduce SEED] [--plant N] [--csv FILE]\n");
        return 2;
    }
    if (option[PRINT] || option[REDUCE])
        return print_or_reduce(get_number(option[PRINT] ? PRINT : REDUCE), option[REDUCE]);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 3;
    bool ran = run_jobs();
    return report() && ran ? 0 : 1;
}
