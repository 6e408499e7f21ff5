/* cmd_launch: `assay launch FILE.metal KERNEL`. Any kernel, run from the command line. An option about the launch is
 * a line of a description (harness/check/description.h) in short: 0=f32[64]:ramp is `in buffer_0 f32[64] at 0 ramp`.
 *
 * The launch is done by a worker, which is this verb again with the hidden option --worker and the
 * same command line. It answers with the text to print. */
#include "launch_options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/worker.h"
#include "harness/check/suite.h"
#include "harness/device/cuda/sanitizer.h"
#include "verb.h"

/* The whole number that *text begins with, from 0 to most; *text is then what follows it. */
static bool take_number(const char **text, uint64_t most, uint64_t *out) {
    char *end;
    errno = 0;
    *out = strtoull(*text, &end, 10);
    bool ok = isdigit((unsigned char)**text) && !errno && *out <= most;
    *text = end;
    return ok;
}

/* The index of a buffer, before an = or a : or the end. */
static bool take_index(const char **text, char after, uint64_t *out) {
    return take_number(text, LAUNCH_BUFFERS - 1, out) && (!after || *(*text)++ == after);
}

/* Arguments ----------------------------------------------------------------------------------- */

/* Reads a line, which stays. */
static bool read_line(launch_request *r, err *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool read_line(launch_request *r, err *e, const char *format, ...) {
    enum { LONGEST = 1 << 16 };
    char *line = array_new(1, LONGEST);
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, LONGEST, format, list);
    va_end(list);
    r->launch.kind = DESCRIBES_OPTIONS;
    if (length < LONGEST && describe_read_line(&r->launch, line, e))
        return true;
    if (length >= LONGEST)
        err_set(e, EXIT_USAGE, "it is longer than %d characters", LONGEST);
    free(line);
    return false;
}

/* "1", "1+1024" or "1+1024:512" after the '@'. */
static bool read_part(launch_request *r, int index, const char *p, err *e) {
    uint64_t of, offset = 0, bytes = 0;
    bool ok = take_index(&p, 0, &of);
    if (ok && *p == '+' && p++)
        ok = take_number(&p, SIZE_MAX / 2, &offset);
    if (ok && *p == ':' && p++)
        ok = take_number(&p, SIZE_MAX / 2, &bytes) && bytes > 0;
    if (!ok || *p)
        return err_set(e, EXIT_USAGE,
                       "a buffer of another argument is written like 3=@1 or 3=@1+1024:512");
    r->parts[r->part_count].index = index;
    r->parts[r->part_count].of = (int)of;
    r->parts[r->part_count].offset = (size_t)offset;
    r->parts[r->part_count++].bytes = (size_t)bytes;
    return true;
}

/* TYPE[SIZE]:CONTENTS */
static bool read_array(launch_request *r, int index, const char *p, err *e) {
    const char *close = strchr(p, ']'), *what = close ? close + 1 : "";
    if (!close || (*what && *what != ':'))
        return err_set(e, EXIT_USAGE, "the number of elements goes between [ and ]");
    what = *what ? what + 1 : "unwritten";
    size_t word = strcspn(what, ":"), count;
    bool is_file = strncmp(what, "file:", 5) == 0;
    if (!read_line(r, e, "in buffer_%d %.*s at %d %.*s %s", index, (int)(close + 1 - p), p, index,
                   is_file ? 4 : (int)word, is_file ? "from" : what,
                   what[word] ? what + word + 1 : ""))
        return false;
    return describe_count_elements(&r->launch, &r->launch.arguments[r->launch.argument_count - 1],
                                   &count, e);
}

static bool read_arg(launch_request *r, const char *text, err *e) {
    const char *p = text;
    uint64_t given;
    if (!take_index(&p, '=', &given))
        return err_set(e, EXIT_USAGE, "it begins with a buffer index from 0 to 30 and '='");
    const int index = (int)given;
    const size_t type = strcspn(p, "[:");
    for (size_t i = 0; i < r->part_count; i++)
        if (r->parts[i].index == index)
            return err_set(e, EXIT_USAGE, "argument %d is given twice", index);
    for (size_t i = 0; i < r->launch.argument_count; i++)
        if (r->launch.arguments[i].index == index)
            return err_set(e, EXIT_USAGE, "argument %d is given twice", index);
    if (*p == '@')
        return read_part(r, index, p + 1, e);
    if (p[type] == '[')
        return read_array(r, index, p, e);
    if (!p[type] || !p[type + 1])
        return err_set(e, EXIT_USAGE, "a scalar needs ':' and a value");
    return read_line(r, e, "value buffer_%d %.*s = %s at %d", index, (int)type, p, p + type + 1,
                     index);
}

/* INDEX=TYPE:VALUE */
static bool read_constant(launch_request *r, const char *text, err *e) {
    size_t index = strcspn(text, "="), type = strcspn(text, ":");
    if (!text[index] || !text[type] || type < index)
        return err_set(e, EXIT_USAGE, "it has no '=', or no ':' and a value");
    return read_line(r, e, "constant %.*s %.*s = %s", (int)index, text, (int)(type - index - 1),
                     text + index + 1, text + type + 1);
}

static bool read_buffer(uint32_t *bits, const char *p, err *e) {
    uint64_t index;
    if (!take_index(&p, 0, &index) || *p)
        return err_set(e, EXIT_USAGE, "it takes the index of a buffer");
    *bits |= 1u << index;
    return true;
}

static bool read_overread(launch_request *r, const char *p, err *e) {
    return read_buffer(&r->may_overread, p, e);
}

static bool read_assumed(launch_request *r, const char *p, err *e) {
    return read_buffer(&r->assumed, p, e);
}

static bool read_threadgroup(launch_request *r, const char *p, err *e) {
    uint64_t index, bytes;
    if (!take_number(&p, LAUNCH_THREADGROUPS - 1, &index) || *p++ != '=' ||
        !take_number(&p, UINT32_MAX, &bytes) || *p || bytes == 0 || r->threadgroup_bytes[index])
        return err_set(e, EXIT_USAGE, "it takes INDEX=BYTES, each index once");
    r->threadgroup_bytes[index] = (uint32_t)bytes;
    return true;
}

static bool read_print(launch_request *r, const char *p, err *e) {
    uint64_t index, most = 0;
    if (!take_index(&p, 0, &index) ||
        (*p == ':' && (p++, !take_number(&p, SIZE_MAX, &most) || most == 0)) || *p)
        return err_set(e, EXIT_USAGE, "it takes an index and maybe a number of elements");
    r->has_print = r->print[index].wanted = true;
    r->print[index].most = most;
    return true;
}

static bool read_save(launch_request *r, const char *p, err *e) {
    uint64_t index;
    if (!take_index(&p, '=', &index) || !*p)
        return err_set(e, EXIT_USAGE, "it takes INDEX=PATH");
    r->save[index] = p;
    return true;
}

/* A position in the grid: unlike a size it may have zeros. */
static bool read_only(launch_request *r, const char *p, err *e) {
    bool ok = *p;
    for (int i = 0; ok && *p && i < 3; i++) {
        uint64_t at = 0;
        ok = take_number(&p, UINT32_MAX, &at) && (!*p || (*p == ',' && p[1]));
        r->only[i] = (uint32_t)at;
        p += ok && *p == ',';
    }
    r->has_only = true;
    return (ok && !*p) || err_set(e, EXIT_USAGE, "it takes the position of a threadgroup");
}

/* All ----------------------------------------------------------------------------------------- */

typedef bool option_reader(launch_request *r, const char *text, err *e);

static bool read_list(const option_list *list, const char *name, const char *example,
                      option_reader *read, launch_request *r, err *e) {
    for (size_t i = 0; i < list->count; i++) {
        err why;
        if (!read(r, list->items[i], &why))
            return err_set(e, why.code, "--%s '%.60s': %.120s; it is written like %s", name,
                           list->items[i], why.text, example);
    }
    return true;
}

static bool read_geometry(const launch_settings *s, launch_request *r, err *e) {
    if (!s->grid == !s->threads)
        return err_set(e, EXIT_USAGE,
                       "give the grid either as --grid (threadgroups) or as --threads");
    if (!s->group)
        return err_set(e, EXIT_USAGE, "give the threads of a threadgroup with --group");
    launch sized = {.kernel = NULL};
    err why;
    return (read_line(r, &why, "kernel launch group %s %s %s", s->group,
                      s->grid ? "groups" : "dispatch", s->grid ? s->grid : s->threads) &&
            describe_set_grid(&r->launch, &r->launch.grids[0], &sized, &why)) ||
           err_set(e, EXIT_USAGE,
                   "--group and --%s take one to three whole numbers above 0, such as 64 or 8,8,1: "
                   "%.120s",
                   s->grid ? "grid" : "threads", why.text);
}

/* What is wrong with the file is said before anything about its launch. */
static bool check_file(const char *path, err *e) {
    char *text = os_read_source(path, 16 << 20, NULL, e);
    free(text);
    return text != NULL;
}

bool launch_options_read(const launch_settings *s, const char *const *names, size_t count,
                         const char *name, launch_request *r, err *e) {
    const option_list only = {.items = {s->only}, .count = s->only != NULL};
    if (count > 0 && !check_file(names[0], e))
        return false;
    if (count != 2)
        return err_set(e, EXIT_USAGE,
                       "%s takes a file and the name of a kernel in it, as in assay %s "
                       "kernels/buffer_copy.metal buffer_copy",
                       name, name);
    r->file = names[0];
    r->kernel = names[1];
    r->folders = s->folders.items;
    r->folder_count = s->folders.count;
    r->macros = s->macros.items;
    r->macro_count = s->macros.count;
    return read_list(&s->overreads, "allow-overread", "3", read_overread, r, e) &&
           read_list(&s->assumed, "assumed", "3", read_assumed, r, e) &&
           read_list(&s->args, "arg", "0=f32[1024]:ramp or 2=u32:576", read_arg, r, e) &&
           read_list(&s->constants, "constant", "0=u32:64 (a bool is u8:0 or u8:1)", read_constant,
                     r, e) &&
           read_list(&s->threadgroups, "threadgroup", "0=1024", read_threadgroup, r, e) &&
           read_list(&s->prints, "print", "1 or 1:64", read_print, r, e) &&
           read_list(&s->saves, "save", "1=out.bin", read_save, r, e) &&
           read_list(&only, "only", "7 or 0,3,1", read_only, r, e) && read_geometry(s, r, e);
}

bool launch_options_read_file(launch_settings *s, const option *options, size_t option_count,
                              const char **names, size_t *count, err *e) {
    enum { MOST_WORDS = 1024, MOST_BYTES = 1 << 20 };
    static const char *words[MOST_WORDS + 2];
    int used = 0;
    char *text = os_read_plain(s->args_file, MOST_BYTES, NULL, e);
    if (!text)
        return false;
    for (char *p = text; *(p += strspn(p, " \t\r\n"));) {
        if (*p == '#') {
            p += strcspn(p, "\n");
            continue;
        }
        if (used == MOST_WORDS)
            return err_set(e, EXIT_USAGE, "%.160s has more than %d words", s->args_file,
                           MOST_WORDS);
        words[used++] = p;
        p += strcspn(p, " \t\r\n");
        if (*p)
            *p++ = 0;
    }
    bool help = false;
    if (!options_parse(options, option_count, &used, words, &help, e))
        return false;
    static char beside[PATH_MAX];
    for (int i = 0; i < used; i++) {
        /* A .metal file beside the file of words comes before one in the current folder. */
        size_t folder = (size_t)(path_get_name(s->args_file) - s->args_file);
        if (*count == 0 && words[i][0] != '/' &&
            path_print(beside, sizeof beside, e, "%.*s%s", (int)folder, s->args_file, words[i]) &&
            access(beside, R_OK) == 0)
            words[i] = beside;
        if (*count == 2)
            return err_set(e, EXIT_USAGE, "%.160s: '%.80s' is one name too many", s->args_file,
                           words[i]);
        names[(*count)++] = words[i];
    }
    return true;
}

static struct {
    launch_settings launch;
    double timeout_s;
    bool worker;
} settings = {.timeout_s = 60};
static launch_request request = {.repeat = 1, .seed = 1, .max_findings = 20};

static const option options[] = {
    LAUNCH_OPTIONS(settings.launch),
    LIST_OPTION("allow-overread", &settings.launch.overreads, "I",
                "loads past the end of buffer I are not findings: some kernels do it on purpose"),
    TEXT_OPTION("only", &settings.launch.only, "X[,Y,Z]",
                "run only the threadgroup at this place of the grid (software device)"),
    LIST_OPTION("print", &settings.launch.prints, "I[:N]",
                "print the first N elements of array I (default: 16 of each writable one)"),
    LIST_OPTION("save", &settings.launch.saves, "I=PATH", "write the bytes of array I to a file"),
    FLAG_OPTION("validate", &request.validate, "watch every access and list findings; no times"),
    FLAG_OPTION("trace-nan", &request.trace_nan,
                "validate, and report where a NaN or infinity arises"),
    FLAG_OPTION("strict", &request.strict,
                "milder findings, such as two stores of one value, fail the run too"),
    AGX_OPTION(&request.agx),
    {"max-findings", OPTION_NUMBER, &request.max_findings, "N",
     "list at most N findings (default 20)", 1, 1000000},
    {"repeat", OPTION_NUMBER, &request.repeat, "N",
     "launch N times with the same contents and print median times (default 1)", 1, 1000000},
    SEED_OPTION(&request.seed, "random contents"),
    SECONDS_OPTION("timeout", &settings.timeout_s, "S",
                   "seconds before it is given up (default 60)"),
    DEVICE_OPTION(&request.device),
    TEXT_OPTION("capture", &request.capture, "F.gputrace", "also capture for Xcode (Metal only)"),
    PLAIN_OPTION("worker", OPTION_FLAG, &settings.worker, NULL, NULL),
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

/* Comes before the text to print. */
typedef struct {
    exit_code code;
    err error;
} answer;

static void *run_launch(void *context, const char *task, size_t *bytes, bool *retire) {
    (void)task;
    memory_file *text = memory_file_new();
    answer a = {.code = EXIT_OK};
    a.code = launch_run(context, text->out, &a.error);
    *retire = true;
    return worker_pack(&a, sizeof a, text, bytes);
}

/* The side that waits -------------------------------------------------------------------------- */

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    answer *a = context;
    (void)task;
    if (o->failure[0])
        return err_set(
            e, EXIT_WRONG, "kernel %.120s %s%s", request.kernel, o->failure,
            request.validate || strstr(o->failure, " at ") ? "" : "; --validate may say where");
    const char *text = worker_unpack(o, a, sizeof *a, e);
    if (text)
        verb_print_lines(stdout, text, false);
    return text && verb_flush(e);
}

static const char *const *list_arguments(void) {
    const char *const names[] = {request.file, request.kernel, NULL};
    return options_list_values("launch", options, OPTION_COUNT, names);
}

/* compute-sanitizer writes its reports when it likes, the last of them when the worker has ended. */
static exit_code tell_reports(exit_code code, err *e) {
    validation_count count;
    finding_list found = {0};
    err own = {.code = EXIT_OK};
    bool ok = validation_read_folder(NULL, &sanitizer_log, &count, &found, &own);
    if (ok && count.banners == 0)
        ok = err_set(&own, EXIT_WRONG,
                     "the worker did not confirm that %s is on, so nothing is called clean",
                     sanitizer_log.engine);
    findings_print(stdout, &found, (size_t)request.max_findings);
    printf("%zu finding%s\n", found.count, found.count == 1 ? "" : "s");
    bool fails = finding_count_failing(&found, request.strict) > 0;
    finding_free(&found);
    if (!ok && e->code == EXIT_OK)
        *e = own;
    return !ok && code == EXIT_OK ? own.code : fails ? EXIT_WRONG : code;
}

static exit_code run_in_worker(const char *tool, err *e) {
    settings.launch.args_file = NULL; /* has been read */
    if (request.capture)
        setenv("METAL_CAPTURE_ENABLED", "1", 1); /* Metal reads it when the worker starts */
    const char *const tasks[] = {"launch"};
    answer a = {.code = EXIT_OK};
    worker_plan plan = {.arguments = list_arguments(),
                        .tasks = tasks,
                        .count = 1,
                        .jobs = 1,
                        .timeout_s = settings.timeout_s,
                        .deliver = deliver,
                        .context = &a};
    char folder[1024] = "";
    if (request.validate && !validation_open_folder(folder, sizeof folder, e))
        return e->code;
    bool ok = worker_run(&plan, e);
    if (ok)
        *e = a.error;
    exit_code code = ok ? a.code : e->code;
    if (tool)
        code = tell_reports(code, e);
    if (folder[0])
        validation_close_folder(folder);
    return code;
}

/* On an NVIDIA GPU a launch is validated once per tool of compute-sanitizer, or under the one that
 * ASSAY_SANITIZER names. */
static exit_code run_under_tools(err *e) {
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
        exit_code code = run_in_worker(tool, &own);
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

static exit_code validate(err *e) {
    const suite find = {.device = request.device};
    device_facts facts;
    if (!suite_find_device(&find, &facts, e))
        return e->code;
    *e = (err){.code = EXIT_OK}; /* devices that `auto` tried before are not errors */
    return facts.kind == DEVICE_CUDA ? run_under_tools(e) : run_in_worker(NULL, e);
}

static exit_code run_verb(const char *const *given, size_t count, err *e) {
    const char *names[3] = {count > 0 ? given[0] : NULL, count > 1 ? given[1] : NULL, NULL};
    const char *validation = getenv("MTL_SHADER_VALIDATION");
    if (settings.launch.args_file && count <= 2 &&
        !launch_options_read_file(&settings.launch, options, OPTION_COUNT, names, &count, e))
        return e->code;
    request.validate |= request.trace_nan || (validation && !strcmp(validation, "1"));
    if (!launch_options_read(&settings.launch, names, count, "launch", &request, e))
        return e->code;
    if (settings.worker)
        return (!sanitizer_get_tool() || sanitizer_enter(list_arguments(), e)) &&
                       worker_serve(run_launch, &request, e)
                   ? EXIT_OK
                   : e->code;
    return request.validate ? validate(e) : run_in_worker(NULL, e);
}

VERB(verb_launch, "launch", run_verb, .names = "FILE.metal KERNEL",
     .about = "run one kernel from any file: arguments in, outputs, times and findings out",
     .notes =
         "  --arg 0=f32[1024]:ramp   an array of 1024: unwritten (the default), zero, one,\n"
         "                           ramp, nan, random, value:V, value:V,V,V or file:PATH\n"
         "                           (raw bytes)\n"
         "  --arg 3=@0+1024:512      the buffer of argument 0 again, 512 bytes from byte 1024\n"
         "  --arg 0=u8[]:file:w.bin  as many elements as the file has\n"
         "  --arg 2=u32:9*64         a scalar; sizes and values are numbers or expressions\n"
         "Types are f32 f16 bf16 i8 u8 i16 u16 i32 u32 i64 u64; u8 also for structs. What the\n"
         "kernel declares const or constant is only read. Exit status: 1 if the kernel crashes,\n"
         "hangs, writes outside of its buffers or --validate finds something. On NVIDIA GPUs\n"
         "--validate launches once under each tool of compute-sanitizer.\n\n"
         "  assay launch kernels/buffer_copy.metal buffer_copy --arg 0=f32[100]:ramp \\\n"
         "      --arg 1=f32[100] --arg 2=u32:100 --grid 4 --group 32 --validate\n",
     VERB_OPTIONS(options), .math = "safe");
