/* cmd_launch: `assay launch FILE.metal KERNEL`. Any kernel, run from the command line.
 *
 * The launch is done by a worker, which is this verb again with the hidden option --worker and the
 * same command line. It answers with the text to print. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/worker.h"
#include "harness/check/findings.h"
#include "harness/device/cuda/sanitizer.h"
#include "launch_options.h"
#include "verb.h"

static struct {
    launch_settings launch;
    const char *device, *capture;
    uint64_t repeat, seed, max_findings;
    double timeout_s;
    bool validate, trace_nan, strict, agx, worker;
} settings = {.repeat = 1, .seed = 1, .max_findings = 20, .timeout_s = 60};

static const option options[] = {
    LAUNCH_OPTIONS(settings.launch),
    LIST_OPTION("allow-overread", &settings.launch.overreads, "I",
                "loads past the end of buffer I are not findings: some kernels do it on purpose"),
    TEXT_OPTION("only", &settings.launch.only, "X[,Y,Z]",
                "run only the threadgroup at this place of the grid (software device)"),
    LIST_OPTION("print", &settings.launch.prints, "I[:N]",
                "print the first N elements of array I (default: 16 of each writable one)"),
    LIST_OPTION("save", &settings.launch.saves, "I=PATH", "write the bytes of array I to a file"),
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

static bool read_request(const char *const *names, size_t count, launch_request *r, err *e) {
    const char *validation = getenv("MTL_SHADER_VALIDATION");
    *r = (launch_request){.device = settings.device,
                          .capture = settings.capture,
                          .validate = settings.validate || settings.trace_nan ||
                                      (validation && !strcmp(validation, "1")),
                          .trace_nan = settings.trace_nan,
                          .strict = settings.strict,
                          .agx = settings.agx,
                          .repeat = settings.repeat,
                          .seed = settings.seed,
                          .max_findings = settings.max_findings};
    return launch_options_read(&settings.launch, names, count, "launch", r, e);
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
        return err_set(
            e, EXIT_WRONG, "kernel %.120s %s%s", s->kernel, o->failure,
            settings.validate || strstr(o->failure, " at ") ? "" : "; --validate may say where");
    }
    if (o->bytes < sizeof s->answer)
        return err_set(e, EXIT_CANNOT, WORKER_OTHER_BUILD);
    memcpy(&s->answer, o->answer, sizeof s->answer);
    size_t used = o->bytes - sizeof s->answer;
    if (fwrite((const char *)o->answer + sizeof s->answer, 1, used, stdout) != used)
        return err_set(e, EXIT_CANNOT, "stdout was closed by the reader");
    return true;
}

static const char *const *list_arguments(const launch_request *r) {
    const char *const names[] = {r->file, r->kernel, NULL};
    return options_list_values("launch", options, OPTION_COUNT, names);
}

static bool run_plan(const launch_request *r, delivery *s, err *e) {
    const char *const tasks[] = {"launch"};
    worker_plan plan = {.arguments = list_arguments(r),
                        .tasks = tasks,
                        .count = 1,
                        .jobs = 1,
                        .timeout_s = settings.timeout_s,
                        .deliver = deliver,
                        .context = s};
    return worker_run(&plan, e);
}

/* compute-sanitizer writes its reports when it likes, the last of them when the worker has ended. */
static exit_code tell_reports(exit_code code, err *e) {
    validation_count count;
    finding_list found = {0};
    err own = {.code = EXIT_OK};
    bool ok = validation_read_open_folder(&sanitizer_log, &count, &found, &own);
    if (ok && count.banners == 0)
        ok = err_set(&own, EXIT_WRONG,
                     "the worker did not confirm that %s is on, so nothing is called clean",
                     sanitizer_log.engine);
    findings_print(stdout, &found, (size_t)settings.max_findings);
    printf("%zu finding%s\n", found.count, found.count == 1 ? "" : "s");
    bool fails = finding_count_failing(&found, settings.strict) > 0;
    finding_free(&found);
    if (!ok && e->code == EXIT_OK)
        *e = own;
    return !ok && code == EXIT_OK ? own.code : fails ? EXIT_WRONG : code;
}

static exit_code run_in_worker(const launch_request *r, const char *tool, err *e) {
    settings.launch.args_file = NULL; /* has been read */
    if (settings.capture)
        setenv("METAL_CAPTURE_ENABLED", "1", 1); /* Metal reads it when the worker starts */
    delivery s = {.kernel = r->kernel};
    char folder[1024] = "";
    if (r->validate && !validation_open_folder(folder, sizeof folder, e))
        return e->code;
    bool ok = run_plan(r, &s, e);
    if (ok)
        *e = s.answer.error;
    exit_code code = ok ? s.answer.code : e->code;
    if (tool)
        code = tell_reports(code, e);
    if (folder[0])
        validation_close_folder(folder);
    return code;
}

/* On an NVIDIA GPU a launch is validated once per tool of compute-sanitizer, or under the one that
 * ASSAY_SANITIZER names. */
static exit_code run_under_tools(const launch_request *r, err *e) {
    const char *given = sanitizer_get_tool();
    char chosen[32] = "";
    if (given)
        snprintf(chosen, sizeof chosen, "%s", given);
    exit_code worst = EXIT_OK;
    for (int i = 0; i < SANITIZER_TOOLS; i++) {
        err own = {.code = EXIT_OK};
        const char *tool = sanitizer_tools[i];
        if (chosen[0] && strcmp(tool, chosen) != 0)
            continue;
        if (!sanitizer_choose(tool, e))
            return e->code;
        printf("# %s\n", tool);
        exit_code code = run_in_worker(r, tool, &own);
        if (code == EXIT_USAGE || code == EXIT_INTERRUPTED) {
            *e = own;
            return code;
        }
        if (worst == EXIT_OK) {
            worst = code;
            *e = own;
        } else if (own.text[0])
            printf("# %s: %s\n", tool, own.text);
    }
    return worst;
}

static exit_code validate(const launch_request *r, err *e) {
    device *d = device_open(r->device, e);
    if (!d)
        return e->code;
    bool is_cuda = device_get_facts(d)->kind == DEVICE_CUDA;
    device_close(d);
    *e = (err){.code = EXIT_OK}; /* devices that `auto` tried before are not errors */
    return is_cuda ? run_under_tools(r, e) : run_in_worker(r, NULL, e);
}

static exit_code run_verb(const char *const *given, size_t count, err *e) {
    static launch_request request;
    const char *names[3] = {count > 0 ? given[0] : NULL, count > 1 ? given[1] : NULL, NULL};
    if (settings.launch.args_file && count <= 2 &&
        !launch_options_read_file(&settings.launch, options, OPTION_COUNT, names, &count, e))
        return e->code;
    if (!read_request(names, count, &request, e))
        return e->code;
    if (settings.worker)
        return (!sanitizer_get_tool() || sanitizer_enter(list_arguments(&request), e)) &&
                       worker_serve(run_launch, &request, e)
                   ? EXIT_OK
                   : e->code;
    return request.validate ? validate(&request, e) : run_in_worker(&request, NULL, e);
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
         "writes outside of its buffers or --validate finds something. On NVIDIA GPUs --validate\n"
         "launches once under each tool of compute-sanitizer.\n\n"
         "  assay launch kernels/buffer_copy.metal buffer_copy --arg 0=f32[100]:ramp \\\n"
         "      --arg 1=f32[100] --arg 2=u32:100 --grid 4 --group 32 --validate\n",
     VERB_OPTIONS(options), .math = "safe");
