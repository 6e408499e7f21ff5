/* cmd_launch: `assay launch FILE.metal KERNEL`. Any kernel, run from the command line.
 *
 * The launch is done by a worker, which is this verb again with the hidden option --worker and the
 * same command line. It answers with the text to print. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "harness/check/launch_run.h"
#include "harness/device/validation.h"
#include "verb.h"

static struct {
    const char *grid, *threads, *group, *device, *capture;
    const char *args_file;
    option_list args, constants, threadgroups, prints, saves, folders, macros, overreads;
    uint64_t repeat, seed, max_findings;
    double timeout_s;
    bool validate, trace_nan, strict, agx, worker;
} settings = {.repeat = 1, .seed = 1, .max_findings = 20, .timeout_s = 60};

static const option options[] = {
    LIST_OPTION("arg", &settings.args, "I=WHAT", "what buffer I is given, see above"),
    TEXT_OPTION("args", &settings.args_file, "FILE",
                "read more options from a file, separated by blanks or lines; # begins a comment"),
    LIST_OPTION("I|include", &settings.folders, "DIR", "look for included files in DIR"),
    LIST_OPTION("D|define", &settings.macros, "NAME[=V]", "define a macro"),
    LIST_OPTION("allow-overread", &settings.overreads, "I",
                "loads past the end of buffer I are not findings: some kernels do it on purpose"),
    LIST_OPTION("constant", &settings.constants, "I=T:V",
                "value of function constant I, such as 0=u32:64 (a bool is u8:1)"),
    LIST_OPTION("threadgroup", &settings.threadgroups, "I=N",
                "bytes of threadgroup memory for [[threadgroup(I)]]"),
    TEXT_OPTION("grid", &settings.grid, "X[,Y,Z]", "size of the grid in threadgroups"),
    TEXT_OPTION("threads", &settings.threads, "X[,Y,Z]",
                "or in threads; the last threadgroups may then be smaller"),
    TEXT_OPTION("group", &settings.group, "X[,Y,Z]", "size of a threadgroup in threads"),
    LIST_OPTION("print", &settings.prints, "I[:N]",
                "print the first N elements of array I (default: 16 of each writable one)"),
    LIST_OPTION("save", &settings.saves, "I=PATH", "write the bytes of array I to a file"),
    FLAG_OPTION("validate", &settings.validate,
                "watch every memory access and list findings; no times"),
    FLAG_OPTION("trace-nan", &settings.trace_nan,
                "validate, and report where finite values give a NaN or an infinity"),
    FLAG_OPTION("strict", &settings.strict,
                "milder findings fail the run too: threads that store the same value in one place"),
    FLAG_OPTION(
        "agx", &settings.agx,
        "ask Mesa's compiler (`assay agx`) whether threadgroups are too large for an M1, also "
        "if that takes a second per kernel"),
    {"max-findings", OPTION_NUMBER, &settings.max_findings, "N",
     "list at most N findings (default 20)", 1, 1000000},
    {"repeat", OPTION_NUMBER, &settings.repeat, "N",
     "launch N times with the same contents and print median times (default 1)", 1, 1000000},
    SEED_OPTION(&settings.seed, "random contents"),
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "give up on the kernel after this many seconds (default 60)"),
    DEVICE_OPTION(&settings.device),
    TEXT_OPTION("capture", &settings.capture, "F.gputrace",
                "also capture the GPU's work for Xcode (Metal only)"),
    {"worker", OPTION_FLAG, &settings.worker, NULL, NULL, 0, 0},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

/* The command line ----------------------------------------------------------------------------- */

static bool read_args(launch_request *r, err *e) {
    for (size_t i = 0; i < settings.args.count; i++) {
        argument a;
        if (!argument_parse(settings.args.items[i], &a, e))
            return false;
        for (size_t k = 0; k < r->arg_count; k++)
            if (r->args[k].index == a.index)
                return err_set(e, EXIT_USAGE, "--arg %d is given twice", a.index);
        r->args[r->arg_count++] = a;
    }
    for (size_t i = 0; i < settings.constants.count; i++) {
        constant_value c;
        if (!argument_parse_constant(settings.constants.items[i], &c, e))
            return false;
        for (size_t k = 0; k < r->constant_count; k++)
            if (r->constants[k].index == c.index)
                return err_set(e, EXIT_USAGE, "--constant %u is given twice", c.index);
        r->constants[r->constant_count++] = c;
    }
    return true;
}

static bool read_threadgroups(launch_request *r, err *e) {
    for (size_t i = 0; i < settings.threadgroups.count; i++) {
        const char *text = settings.threadgroups.items[i], *p;
        uint64_t index, bytes;
        if (!argument_parse_number(text, LAUNCH_THREADGROUPS - 1, &index, &p) || *p != '=' ||
            !argument_parse_number(p + 1, UINT32_MAX, &bytes, &p) || *p || bytes == 0)
            return err_set(e, EXIT_USAGE,
                           "--threadgroup takes INDEX=BYTES, such as 0=1024, not '%.40s'", text);
        if (r->threadgroup_bytes[index])
            return err_set(e, EXIT_USAGE, "--threadgroup %" PRIu64 " is given twice", index);
        r->threadgroup_bytes[index] = (uint32_t)bytes;
    }
    return true;
}

static bool read_results(launch_request *r, err *e) {
    for (size_t i = 0; i < settings.prints.count; i++) {
        const char *text = settings.prints.items[i], *p;
        uint64_t index, most = 0;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) ||
            (*p == ':' && (!argument_parse_number(p + 1, SIZE_MAX, &most, &p) || most == 0)) || *p)
            return err_set(e, EXIT_USAGE,
                           "--print takes an index and maybe a number of elements, such as 1 or "
                           "1:64, not '%.40s'",
                           text);
        r->has_print = r->print[index].wanted = true;
        r->print[index].most = most;
    }
    for (size_t i = 0; i < settings.saves.count; i++) {
        const char *text = settings.saves.items[i], *p;
        uint64_t index;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) || *p != '=' || !p[1])
            return err_set(e, EXIT_USAGE, "--save takes INDEX=PATH, such as 1=out.bin, not '%.40s'",
                           text);
        r->save[index] = p + 1;
    }
    return true;
}

static bool read_overreads(launch_request *r, err *e) {
    for (size_t i = 0; i < settings.overreads.count; i++) {
        const char *text = settings.overreads.items[i], *p;
        uint64_t index;
        if (!argument_parse_number(text, LAUNCH_BUFFERS - 1, &index, &p) || *p)
            return err_set(e, EXIT_USAGE,
                           "--allow-overread takes the index of a buffer, not '%.40s'", text);
        r->may_overread |= 1u << index;
    }
    return true;
}

static bool read_geometry(launch_request *r, err *e) {
    if (!settings.grid == !settings.threads)
        return err_set(e, EXIT_USAGE,
                       "give the grid either as --grid (threadgroups) or as --threads");
    if (!settings.group)
        return err_set(e, EXIT_USAGE, "give the threads of a threadgroup with --group");
    r->grid_is_threads = settings.threads != NULL;
    return argument_parse_size(r->grid_is_threads ? "threads" : "grid",
                               r->grid_is_threads ? settings.threads : settings.grid, &r->grid,
                               e) &&
           argument_parse_size("group", settings.group, &r->group, e);
}

/* What is wrong with the file is said before anything about its launch. */
static bool check_file(const char *path, err *e) {
    FILE *file = fopen(path, "r");
    if (!file)
        return err_set(e, EXIT_USAGE, "cannot read %.200s: %s", path, strerror(errno));
    fclose(file);
    return true;
}

static bool read_request(const char *const *names, size_t count, launch_request *r, err *e) {
    const char *validation = getenv("MTL_SHADER_VALIDATION");
    if (count > 0 && !check_file(names[0], e))
        return false;
    if (count != 2)
        return err_set(e, EXIT_USAGE,
                       "launch takes a file and the name of a kernel in it, as in assay launch "
                       "kernels/buffer_copy.metal buffer_copy");
    *r = (launch_request){.file = names[0],
                          .kernel = names[1],
                          .device = settings.device,
                          .capture = settings.capture,
                          .validate = settings.validate || settings.trace_nan ||
                                      (validation && !strcmp(validation, "1")),
                          .trace_nan = settings.trace_nan,
                          .strict = settings.strict,
                          .agx = settings.agx,
                          .repeat = settings.repeat,
                          .seed = settings.seed,
                          .max_findings = settings.max_findings,
                          .folders = settings.folders.items,
                          .folder_count = settings.folders.count,
                          .macros = settings.macros.items,
                          .macro_count = settings.macros.count};
    return read_overreads(r, e) && read_args(r, e) && read_threadgroups(r, e) &&
           read_results(r, e) && read_geometry(r, e);
}

/* The worker's side ---------------------------------------------------------------------------- */

/* What travels back: this, followed by the text to print. */
typedef struct {
    exit_code code;
    err error;
} answer;

static void *run_launch(void *context, const char *task, size_t *bytes, bool *retire) {
    (void)task;
    char *text = NULL;
    size_t used = 0;
    FILE *out = open_memstream(&text, &used);
    assert(out);
    answer a = {.code = EXIT_OK};
    a.code = launch_run(context, out, &a.error);
    fclose(out);
    *bytes = sizeof a + used;
    *retire = true;
    char *all = array_new(1, *bytes);
    assert(text);
    memcpy(all, &a, sizeof a);
    memcpy(all + sizeof a, text, used);
    free(text);
    return all;
}

/* The side that waits -------------------------------------------------------------------------- */

typedef struct {
    const char *kernel;
    answer answer;
} delivery;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    (void)task;
    delivery *s = context;
    if (o->failure[0]) {
        s->answer.code = EXIT_WRONG;
        return err_set(e, EXIT_WRONG, "kernel %.120s %s%s", s->kernel, o->failure,
                       settings.validate ? "" : "; --validate may say where");
    }
    if (o->bytes < sizeof s->answer)
        return err_set(e, EXIT_CANNOT, WORKER_OTHER_BUILD);
    memcpy(&s->answer, o->answer, sizeof s->answer);
    size_t used = o->bytes - sizeof s->answer;
    if (fwrite((const char *)o->answer + sizeof s->answer, 1, used, stdout) != used)
        return err_set(e, EXIT_CANNOT, "stdout was closed by the reader");
    return true;
}

static exit_code run_in_worker(const launch_request *r, err *e) {
    settings.args_file = NULL; /* has been read */
    if (settings.capture)
        setenv("METAL_CAPTURE_ENABLED", "1", 1); /* Metal reads it when the worker starts */
    const char *const tasks[] = {"launch"}, *const names[] = {r->file, r->kernel, NULL};
    delivery s = {.kernel = r->kernel};
    worker_plan plan = {.arguments = options_list_values("launch", options, OPTION_COUNT, names),
                        .tasks = tasks,
                        .count = 1,
                        .jobs = 1,
                        .timeout_s = settings.timeout_s,
                        .deliver = deliver,
                        .context = &s};
    char folder[1024] = "";
    if (r->validate && !validation_open_folder(folder, sizeof folder, e))
        return e->code;
    bool ok = worker_run(&plan, e);
    if (folder[0])
        validation_close_folder(folder);
    if (!ok)
        return e->code;
    *e = s.answer.error;
    return s.answer.code;
}

/* The words of the file that --args names are read like those of the command line; the texts stay,
 * because the request points into them. */
static bool read_args_file(const char **names, size_t *count, err *e) {
    enum { MOST_WORDS = 1024, MOST_BYTES = 1 << 20 };
    static const char *words[MOST_WORDS + 2];
    int used = 0;
    char *text = os_read_plain(settings.args_file, MOST_BYTES, NULL, e);
    if (!text)
        return false;
    for (char *p = text; *p;) {
        p += strspn(p, " \t\r\n");
        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        size_t n = strcspn(p, " \t\r\n");
        if (n == 0)
            break;
        if (used == MOST_WORDS)
            return err_set(e, EXIT_USAGE, "%.160s has more than %d words", settings.args_file,
                           MOST_WORDS);
        words[used++] = p;
        p += n;
        if (*p)
            *p++ = 0;
    }
    bool help = false;
    if (!options_parse(options, OPTION_COUNT, &used, words, &help, e))
        return false;
    static char beside[PATH_MAX];
    for (int i = 0; i < used; i++) {
        /* A .metal file that is not in the current folder is beside the file of words. */
        size_t folder = (size_t)(path_get_name(settings.args_file) - settings.args_file);
        if (*count == 0 && words[i][0] != '/' && access(words[i], R_OK) != 0 &&
            path_print(beside, sizeof beside, e, "%.*s%s", (int)folder, settings.args_file,
                       words[i]))
            words[i] = beside;
        if (*count == 2)
            return err_set(e, EXIT_USAGE, "%.160s: '%.80s' is one name too many",
                           settings.args_file, words[i]);
        names[(*count)++] = words[i];
    }
    return true;
}

static exit_code run_verb(const char *const *given, size_t count, err *e) {
    static launch_request request;
    const char *names[3] = {count > 0 ? given[0] : NULL, count > 1 ? given[1] : NULL, NULL};
    if (settings.args_file && count <= 2 && !read_args_file(names, &count, e))
        return e->code;
    if (!read_request(names, count, &request, e))
        return e->code;
    if (settings.worker)
        return worker_serve(run_launch, &request, e) ? EXIT_OK : e->code;
    return run_in_worker(&request, e);
}

VERB(verb_launch, "launch", .names = "FILE.metal KERNEL",
     .about = "run one kernel from any file: arguments in, outputs, times and findings out",
     .notes =
         "  --arg 0=f32[1024]:ramp    an array of 1024: unwritten (the default), zero, one, ramp, "
         "nan,\n"
         "                            random, value:V, value:V,V,V or file:PATH (raw bytes)\n"
         "  --arg 3=@0+1024:512       the buffer of argument 0 again, 512 bytes from byte 1024 on\n"
         "  --arg 0=u8[]:file:w.bin   as many elements as the file has\n"
         "  --arg 2=u32:9*64          a scalar; sizes and values are numbers or expressions\n"
         "Types are f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64; u8 also for structs. What the "
         "kernel\n"
         "declares const or constant is only read. Exit status: 1 if the kernel crashes, hangs,\n"
         "writes outside of its buffers or --validate finds something.\n\n"
         "  assay launch kernels/buffer_copy.metal buffer_copy --arg 0=f32[100]:ramp \\\n"
         "      --arg 1=f32[100] --arg 2=u32:100 --grid 4 --group 32 --validate\n",
     VERB_OPTIONS(options), .math = "safe");
