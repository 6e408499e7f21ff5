/* smith: runs random programs on devices in every way that must agree, and compares with their answers.
 *
 * Usage: smith [OPTIONS]; --help lists them.
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

#include "cli/options.h"
#include "harness/base/os.h"
#include "smith.h"
#include "support.h"

enum { PER_FILE = 25, PLANTED_PER_FILE = 8 };

/* A way to run a program: the device's plain one but for what the row says. */
typedef struct {
    const char *name, *variables;
    bool only_soft, flushes;
    math_mode math;
} way;
enum { PLAIN, CHECKED };
/* clang-format off */
static const way ways[] = {
    [PLAIN] = {"plain", "ASSAY_THREADS=4", false, false, MATH_SAFE},
    [CHECKED] = {"checked", "MTL_SHADER_VALIDATION=1", true, false, MATH_SAFE},
    {"checked fast", "MTL_SHADER_VALIDATION=1", true, false, MATH_FAST},
    {"checked -O0", "MTL_SHADER_VALIDATION=1 ASSAY_TRACE_NAN=1", true, false, MATH_SAFE},
    {"one thread", "ASSAY_THREADS=1", true, false, MATH_SAFE},
    {"relaxed", "", false, false, MATH_RELAXED},
    {"fast", "", false, false, MATH_FAST},
    {"flushed", "", true, true, MATH_SAFE},
#define CLANG(version) {version, "ASSAY_CLANG=" version, true, false, MATH_SAFE}
    CLANG("clang-16"), CLANG("clang-17"), CLANG("clang-18"), CLANG("clang-19"),
};
/* clang-format on */
enum { WAYS = sizeof ways / sizeof *ways };

/* Counts that all jobs share: of each way, then of each class of planted bugs. */
typedef struct {
    unsigned long long programs, wrong, alarms; /* of plants: planted, found, at the line */
} tally;
static tally *tallies;

static void tally_add(tally *t, bool is_wrong, bool is_alarm) {
    __atomic_fetch_add(&t->programs, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->wrong, is_wrong, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->alarms, is_alarm, __ATOMIC_RELAXED);
}

static struct {
    uint64_t programs, seed, jobs, plant, print, reduce;
    const char *way, *csv;
} set = {.programs = 500, .jobs = 1, .print = UINT64_MAX, .reduce = UINT64_MAX};
#define NUMERIC(name, about, min) #name, OPTION_NUMBER, &set.name, "N", about, min, UINT64_MAX - 1
static const option options[] = {
    {NUMERIC(programs, "programs to run in each way (default 500)", 1)},
    {NUMERIC(seed, "the first of them (default 0)", 0)},
    TEXT_OPTION("way", &set.way, "NAME,...", "only these ways"),
    {NUMERIC(jobs, "processes at a time (default 1)", 1)},
    {NUMERIC(print, "print this program; with --plant K, with bug K in it", 0)},
    {NUMERIC(reduce, "reduce it to the few lines that fail in the first of the ways", 0)},
    {NUMERIC(plant, "plant a bug of each class in the programs of N files", 0)},
    TEXT_OPTION("csv", &set.csv, "FILE", "append the counts to a file, as rows"),
};
enum { OPTIONS = sizeof options / sizeof *options };

static char path[4200];
static err last;

static bool is_soft(void) {
    return strcmp(support_get_device_name(), "soft") == 0;
}

/* Opens the way's device, unless that is the one that is open, with a library that has read no file. */
static bool open_way(const way *w) {
    static const way *now;
    const device_options o = {.math = w->math, .flush_denormals = w->flushes};
    bool ok = !is_soft() || now == w || support_open(&o, w->variables);
    now = ok ? w : NULL;
    if (!ok)
        return false;
    support_set_math(w->math);
    return support_get_library() != NULL;
}

/* Does --way name it, or can it be run? */
static bool is_wanted(const way *w) {
    char found[4096];
    size_t length = strlen(w->name);
    for (const char *at = set.way; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, w->name, length) == 0 && (at[length] == ',' || !at[length]))
            return true;
    return !set.way && (is_soft() || !w->only_soft) &&
           (strncmp(w->name, "clang-", 6) != 0 || os_find_program(w->name, found, sizeof found));
}

/* ---------------------------------------------------------------------------------------- one file */
enum { FILE_WORDS = PER_FILE * (MOST_GRID * OUT_WORDS + COUNTERS), BUFFERS = 6 };
typedef struct {
    world world;
    program *programs[PER_FILE];
    int count, words; /* programs; of `out`, of each */
    /* What must be there, and what a device wrote: the words of all programs, then all counters. */
    uint32_t expected[FILE_WORDS], out[FILE_WORDS];
    bool ran;
    printer text;
} file;

/* Answers and prints the programs as they are now. */
static void file_write(file *f) {
    f->text.count = 0;
    f->text.line = 0;
    for (int i = 0; i < f->count; i++)
        program_answer(f->programs[i], f->expected + i * f->words,
                       f->expected + f->count * f->words + i * COUNTERS);
    program_print_file(&f->text, &f->world, f->programs, f->count);
}

/* There is one file at a time: the next one takes its place. */
static file *file_make(uint64_t seed, int first, int count, int planted) {
    static file f;
    for (int i = 0; i < f.count; i++)
        free(f.programs[i]);
    world_make(&f.world, seed);
    f.count = count;
    f.words = f.world.thread_count * OUT_WORDS;
    assert(count <= PER_FILE && f.world.thread_count <= MOST_GRID);
    for (int i = 0; i < count; i++)
        f.programs[i] = program_make(&f.world, first + i, planted);
    file_write(&f);
    return &f;
}

/* Runs the file; false with `last` if it does not compile or run. */
static bool file_run(file *f, const way *w) {
    const world *all = &f->world;
    const extent n = all->threads, g = all->group;
    const size_t input = 4 * INPUT_WORDS, words = (size_t)(f->count * f->words);
    const float real = (float)all->constant[3] / 4;
    uint32_t bits, start[COUNTERS * PER_FILE];
    memcpy(&bits, &real, sizeof bits);
    const constant_value constants[] = {{0, ELEM_U32, all->constant[0]},
                                        {1, ELEM_I32, all->constant[1]},
                                        {2, ELEM_U8, all->constant[2]},
                                        {3, ELEM_F32, bits}};
    for (int i = 0; i < COUNTERS * f->count; i++)
        start[i] = counter_start(i % COUNTERS);
    const struct {
        elem type;
        size_t bytes;
        const void *data; /* NULL: poison */
    } arguments[BUFFERS] = {{ELEM_U32, input, all->input[IN_WORDS]},
                            {ELEM_U32, input, all->input[IN_PARAMS]},
                            {ELEM_F32, input, all->input[IN_REALS]},
                            {ELEM_U32, 4 * words, NULL},
                            {ELEM_U32, 4u * COUNTERS * (size_t)f->count, start},
                            {ELEM_U32, OWN_BYTES / OUT_WORDS * words, NULL}};
    slice at[BUFFERS];
    launch *l = NULL;
    if (!os_write_file(path, f->text.text, f->text.count, &last))
        return f->ran = false;
    if (open_way(w))
        l = support_launch_specialised(path, "smith", constants, 4);
    for (int i = 0; i < BUFFERS && l; i++) {
        const size_t bytes = arguments[i].bytes;
        at[i] = slice_part(support_buffer(NULL, all->offset + bytes).buffer, all->offset, bytes);
        if (arguments[i].data)
            support_write(at[i], arguments[i].data, bytes);
        launch_bind(l, i, at[i], i < 3 ? ACCESS_READ : ACCESS_BOTH, arguments[i].type);
    }
    if (l) {
        device_clear_findings(support_get_device());
        launch_set_threads(l, (size3){n.x, n.y, n.z}, (size3){g.x, g.y, g.z});
    }
    f->ran = l && support_play();
    for (int i = 3; i < 5 && f->ran; i++) /* out, then the counters */
        memcpy(f->out + (i == 3 ? 0 : words), support_read(at[i]), arguments[i].bytes);
    last = *support_get_error();
    support_end();
    return f->ran;
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

/* The first finding in these lines: one of the bug's classes, or without a bug any that is not mild; or NULL. */
static const finding *find(const plant *bug, int first, int last_line) {
    const finding_list *list = device_get_findings(support_get_device());
    for (size_t k = 0; list && k < list->count; k++) {
        const finding *a = &list->items[k];
        bool counts = bug ? bug->findings >> a->what & 1 : !finding_is_mild(a->what);
        if (counts && a->line >= first && a->line <= last_line)
            return a;
    }
    return NULL;
}

/* Did program i write what it must, and without a finding? Reports what it did instead. */
static outcome judge(file *f, int i, const way *w) {
    const program *p = f->programs[i];
    if (!f->ran) {
        tell(f, i, w, 0, "%s\n%.2000s", last.text, last.detail);
        return FAILS;
    }
    for (int k = 0; k < f->words + COUNTERS; k++) {
        const bool is_counter = k >= f->words;
        const int at =
            is_counter ? f->count * f->words + COUNTERS * i + k - f->words : f->words * i + k;
        if (f->out[at] == f->expected[at])
            continue;
        tell(f, i, w, is_counter ? 0 : p->put_line[k % OUT_WORDS], "%s %d has 0x%x, expected 0x%x",
             is_counter ? "counter" : "thread", is_counter ? k - f->words : k / OUT_WORDS,
             f->out[at], f->expected[at]);
        return DIFFERS;
    }
    const finding *a = find(NULL, p->first_line, p->last_line);
    if (a)
        tell(f, i, w, a->line, "false alarm: %s", a->text);
    return a ? ALARMED : AGREES;
}

/* Programs first..first+count-1 of a file; where they do not even run together, half by half. */
static void try_programs(uint64_t seed, int first, int count, const way *w) {
    file *f = file_make(seed, first, count, -1);
    if (!file_run(f, w) && count > 1) {
        try_programs(seed, first, count / 2, w);
        try_programs(seed, first + count / 2, count - count / 2, w);
        return;
    }
    for (int i = 0; i < count; i++) {
        outcome o = judge(f, i, w);
        tally_add(&tallies[w - ways], o == DIFFERS || o == FAILS, o == ALARMED);
    }
}

/* A file of programs with a bug of one class each: is it among the findings, and where it is? */
static void try_plants(uint64_t seed, int class, const way *w) {
    const plant *bug = &plants[class];
    file *f =
        file_make(seed, 0, bug->findings == 1u << FINDING_BARRIER ? 1 : PLANTED_PER_FILE, class);
    file_run(f, w);
    for (int i = 0; i < f->count; i++) {
        const program *p = f->programs[i];
        const int line = p->planted->line;
        const bool found = f->ran && find(bug, p->first_line, p->last_line);
        const bool at_line = found && find(bug, line, line);
        if (!at_line)
            tell(f, i, w, line, "planted '%s': %s", bug->name,
                 found    ? "at another line"
                 : f->ran ? "missed"
                          : last.text);
        tally_add(&tallies[WAYS + class], found, at_line);
    }
}

/* ------------------------------------------------------------------------------------------ reduce */
/* A search for less that fails in the same way. */
typedef struct {
    file *f;
    const way *w;
    outcome wanted;
    bool found;
} search;

/* How the file's programs do, as their trees are now. */
static outcome judge_all(file *f, const way *w) {
    outcome worst = AGREES;
    file_write(f);
    file_run(f, w);
    for (int i = 0; i < f->count && worst == AGREES; i++)
        worst = judge(f, i, w);
    return worst;
}

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
        node by[6] = {{.next = n->next}};
        int count = n->op >= OP_DECLARE && n->op != OP_RETURN;
        for (int i = 0; i < 2 && n->op < OP_DECLARE && n->t.n == 1 && n->op != OP_PLACE; i++)
            by[count++] = (node){.op = OP_LITERAL, .t = n->t, .value = n->t.k < F16 ? i : 4 * i};
        for (int i = 0; i < 4 && n->op < OP_DECLARE && n->a[i]; i++)
            if (is_same(n->a[i]->t, n->t) && n->t.k < F16)
                by[count++] = *n->a[i];
        count = n->op == OP_NONE || n->op == OP_LITERAL ? 0 : count;
        for (int i = 0; i < count && !replace(s, n, by[i]); i++) {
        }
        for (int i = n->op == OP_ASSIGN; i < 4 && n->a[i]; i++)
            shrink(s, n->a[i]);
        shrink(s, n->body);
        shrink(s, n->other);
    }
}

/* First whole programs and functions, then what is in them. */
static bool reduce(file *f, const way *w) {
    search s = {.f = f, .w = w, .wanted = judge_all(f, w)};
    is_quiet = true;
    s.found = s.wanted != AGREES;
    for (int i = 0; i < f->count && f->count > 1 && s.found; i++)
        replace(&s, f->programs[i]->main->body, (node){0});
    while (s.found) {
        s.found = false;
        for (int i = 0; i < f->count; i++)
            for (function *g = f->programs[i]->functions; g; g = g->next)
                if (!g->t.n || g->body->op == OP_NONE || !replace(&s, g->body, (node){0}))
                    shrink(&s, g->body);
    }
    is_quiet = false;
    judge_all(f, w);
    return s.wanted != AGREES;
}

/* A program that fails only beside others is reduced with them. */
static void print_or_reduce(uint64_t seed, bool reduces) {
    const int planted = (int)set.plant - 1;
    file *f = file_make(seed / PER_FILE, (int)(seed % PER_FILE), 1, planted);
    const extent n = f->world.threads, g = f->world.group;
    const way *w = ways;
    while (reduces && w < ways + WAYS - 1 && !is_wanted(w))
        w++;
    if (reduces && !reduce(f, w))
        reduce(file_make(seed / PER_FILE, 0, PER_FILE, planted), w);
    printf("// threads %u %u %u in groups of %u %u %u\n%s", n.x, n.y, n.z, g.x, g.y, g.z,
           f->text.text);
}

/* -------------------------------------------------------------------------------------------- jobs */
static bool make_folder(void) {
    bool ok = os_make_scratch(path, sizeof path - 16, &last);
    strcat(path, "/smith.metal");
    return ok;
}

/* Files in all ways, or classes of planted bugs, of which each job has its share. */
static void run_job(uint64_t job) {
    const uint64_t first = set.seed / PER_FILE, end = set.seed + set.programs;
    if (!make_folder())
        _exit(3);
    for (uint64_t i = first + job; !set.plant && i * PER_FILE < end; i += set.jobs)
        for (int k = 0; k < WAYS; k++)
            if (is_wanted(&ways[k]))
                try_programs(i, 0, (int)LESS(end - i * PER_FILE, PER_FILE), &ways[k]);
    for (uint64_t i = job; i < set.plant * (uint64_t)plant_count; i += set.jobs)
        try_plants(first + i % set.plant, (int)(i / set.plant), &ways[CHECKED]);
    support_close();
    _exit(0);
}

/* Each job is a process of its own. */
static bool run_jobs(void) {
    bool ok = true;
    int status;
    for (uint64_t job = 0; job < set.jobs; job++) {
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
    unsigned long long bad = 0, ran = 0;
    FILE *csv = set.csv ? fopen(set.csv, "a") : NULL;
    if (csv && ftell(csv) == 0)
        fprintf(csv, "kind,device,machine,name,seed,programs,wrong,alarms\n");
    uname(&machine);
    for (int i = 0; i < WAYS + plant_count; i++) {
        const bool is_way = i < WAYS;
        const tally t = tallies[i];
        const char *name = is_way ? ways[i].name : plants[i - WAYS].name;
        if (t.programs == 0)
            continue;
        printf(is_way ? "%-12s %8llu programs, %llu disagreements, %llu false alarms\n"
                      : "%-36s %6llu planted, %llu found, %llu at the line\n",
               name, t.programs, t.wrong, t.alarms);
        if (csv)
            fprintf(csv, "%s,%s,%s,%s,%llu,%llu,%llu,%llu\n", is_way ? "way" : "plant",
                    support_get_device_name(), machine.machine, name, (unsigned long long)set.seed,
                    t.programs, t.wrong, t.alarms);
        bad += is_way ? t.wrong + t.alarms : 100 * t.wrong < 99 * t.programs;
        ran += t.programs;
    }
    if (csv)
        fclose(csv);
    return ran > 0 && bad == 0;
}

int main(int argc, char **argv) {
    bool help = false;
    int names = argc - 1;
    const bool ok = options_parse(options, OPTIONS, &names, (const char **)argv + 1, &help, &last);
    if (ok && help) {
        options_print_help(stdout, options, OPTIONS);
        return 0;
    }
    if (!ok || names) {
        fprintf(stderr, "smith: %s\n", ok ? "it takes options only; see --help" : last.text);
        return 2;
    }
    scratch_start();
    tallies = mmap(NULL, sizeof *tallies * (size_t)(WAYS + plant_count), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tallies == MAP_FAILED || (set.reduce != UINT64_MAX && !make_folder()))
        return 3;
    if (set.print != UINT64_MAX || set.reduce != UINT64_MAX) {
        print_or_reduce(LESS(set.print, set.reduce), set.reduce != UINT64_MAX);
        return 0;
    }
    bool ran = run_jobs();
    return report() && ran ? 0 : 1;
}
