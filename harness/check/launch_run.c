/* launch_run: see launch_run.h.
 *
 * Every repetition starts from the same contents, so that a kernel that works in place shows the
 * result of one launch however often it is timed. */
#include "launch_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/base/os.h"
#include "harness/base/stats.h"
#include "harness/device/cuda/sanitizer.h"
#include "harness/device/tape.h"
#include "harness/device/validation.h"
#include "suite.h"

enum { USUAL_ELEMENTS = 16 };

/* One array: what it starts with and where it lives. Scalars that fit into the launch have none. */
typedef struct {
    buffer *buffer;
    void *data;
    size_t count, bytes;
    elem type;
    bool written;   /* the kernel may */
    bool unwritten; /* it starts as if nothing had been stored in it */
    bool is_vast;   /* and takes memory only where the kernel stores: it is never filled */
} array;

typedef struct {
    const launch_request *request;
    device *device;
    library *library;
    msl_unit *unit;
    constant_value constants[DESCRIBE_CONSTANTS];
    pipeline *pipeline;
    tape *tape;
    array arrays[LAUNCH_BUFFERS]; /* by buffer index */
} setup;

/* Bytes can be anything, on both sides: kernels cast a char * to what they like. Integers may differ
 * in sign. */
static bool is_like(elem given, elem wanted) {
    return given == ELEM_U8 || given == wanted || elem_get_bytes(wanted) == 1 ||
           (!elem_is_float(given) && !elem_is_float(wanted) &&
            elem_get_bytes(given) == elem_get_bytes(wanted));
}

static const msl_param *find_buffer(const msl_signature *s, int index) {
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == MSL_BUFFER && s->params[i].index == index)
            return &s->params[i];
    return NULL;
}

static bool check_type(const msl_signature *s, const described_argument *a, err *e) {
    const msl_param *p = find_buffer(s, a->index);
    elem wanted;
    if (!p || !elem_find_msl(p->type, &wanted) || is_like(a->type, wanted))
        return true;
    return err_set(e, EXIT_USAGE,
                   "kernel %.80s: buffer %d (%.40s, %.40s) is given %s; its elements are %s (u8 is "
                   "for raw bytes)",
                   s->host_name, a->index, p->name, p->type, elem_get_name(a->type),
                   elem_get_name(wanted));
}

/* Setting up ----------------------------------------------------------------------------------- */

static bool compile(setup *s, err *e) {
    const launch_request *r = s->request;
    /* Read when the device is opened. */
    if (r->validate) {
        validation_pin_environment();
        setenv("ASSAY_LOOP_SECONDS", "3", 0);
        if (!validation_start_log(e))
            return false;
    }
    if (r->trace_nan)
        setenv("ASSAY_TRACE_NAN", "1", 1);
    s->device = device_open_with(r->device, &(device_options){.counts = r->counts}, e);
    if (!s->device)
        return false;
    const msl_extras given = {r->folders, r->macros, r->folder_count, r->macro_count, 0, false};
    const msl_extras extras = device_complete_extras(s->device, &given);
    const size_t count = r->launch.constant_count;
    s->unit = msl_load_with(r->file, &extras, e);
    if (!s->unit || !msl_find_kernel(s->unit, r->kernel, e) ||
        !describe_compute_constants(&r->launch, s->constants, e) ||
        !constant_check(s->unit, s->constants, count, e))
        return false;
    if (r->validate && !device_get_facts(s->device)->validates)
        return err_set(e, EXIT_CANNOT, "the device '%s' has no validation here; use --device soft",
                       device_get_facts(s->device)->api);
    s->library = library_new(s->device, NULL, e);
    if (!s->library)
        return false;
    s->pipeline = device_new_pipeline(s->device, s->unit, r->kernel, s->constants, count,
                                      device_get_facts(s->device)->math, e);
    return s->pipeline != NULL;
}

static bool fits_inline(const launch *l, const described_argument *a, const msl_param *p) {
    return a->kind == ARGUMENT_VALUE && (!p || p->is_const) &&
           l->inline_used + 32 <= LAUNCH_INLINE_BYTES;
}

/* A result of gigabytes, of which a launch with --only writes little. The software device has memory
 * for what is touched. */
static bool is_vast(const setup *s, const array *a, const msl_param *p) {
    return a->unwritten && p && !p->is_const && s->request->repeat == 1 &&
           device_get_facts(s->device)->kind == DEVICE_SOFT &&
           a->count >= DEVICE_VAST_BYTES / elem_get_bytes(a->type);
}

/* The data is kept twice: to start every repetition from, and in the buffer. */
static bool make_data(const setup *s, const described_argument *a, array *at, err *e) {
    uint64_t memory = device_get_facts(s->device)->memory_bytes;
    bool is_value = a->kind == ARGUMENT_VALUE;
    char name[32];
    snprintf(name, sizeof name, "argument %d", a->index);
    if (at->count > memory / 4 / elem_get_bytes(a->type))
        return err_set(e, EXIT_CANNOT, "%s, %s[%zu], is too large for a device with %.1f GB", name,
                       elem_get_name(a->type), at->count, (double)memory * 1e-9);
    err why;
    at->data =
        contents_make(is_value ? CONTENTS_VALUES : a->contents, a->type,
                      is_value ? a->value.text : a->text, s->request->seed, name, &at->count, &why);
    return at->data || err_set(e, why.code, "%s: %.200s", name, why.text);
}

static bool fill_array(array *a, err *e) {
    return a->is_vast     ? true
           : a->unwritten ? buffer_fill_pattern(a->buffer, 0, a->bytes, POISON_PATTERN, e)
                          : buffer_upload(a->buffer, 0, a->data, a->bytes, e);
}

/* A part of another argument's buffer. */
static bool bind_part(setup *s, launch *l, size_t i, err *e) {
    const int index = s->request->parts[i].index, source = s->request->parts[i].of;
    const size_t offset = s->request->parts[i].offset, bytes = s->request->parts[i].bytes;
    const msl_param *p = find_buffer(&s->pipeline->signature, index);
    array *of = &s->arrays[source];
    if (!of->buffer)
        return err_set(e, EXIT_USAGE, "--arg %d=@%d: argument %d is not an array", index, source,
                       source);
    size_t left = offset < of->bytes ? of->bytes - offset : 0;
    if (left == 0 || bytes > left)
        return err_set(e, EXIT_USAGE, "--arg %d=@%d: argument %d has %zu bytes", index, source,
                       source, of->bytes);
    bool is_written = p && !p->is_const;
    of->written = of->written || is_written;
    launch_bind(l, index, slice_part(of->buffer, offset, bytes ? bytes : left),
                is_written ? ACCESS_BOTH : ACCESS_READ, of->type);
    return true;
}

static bool bind_argument(setup *s, launch *l, const described_argument *a, err *e) {
    const msl_param *p = find_buffer(&s->pipeline->signature, a->index);
    array *at = &s->arrays[a->index];
    at->type = a->type;
    at->unwritten = a->kind != ARGUMENT_VALUE && a->contents == CONTENTS_UNWRITTEN;
    if (!describe_count_elements(&s->request->launch, a, &at->count, e))
        return false;
    if (a->kind != ARGUMENT_VALUE && a->sizes.count == 0)
        at->count = 0;
    at->is_vast = is_vast(s, at, p);
    if (!check_type(&s->pipeline->signature, a, e) || (!at->is_vast && !make_data(s, a, at, e)))
        return false;
    at->bytes = at->count * elem_get_bytes(a->type);
    if (fits_inline(l, a, p)) {
        launch_set_bytes(l, a->index, at->data, at->bytes);
        return true;
    }
    char label[16];
    snprintf(label, sizeof label, "buffer %d", a->index);
    at->written = p && !p->is_const;
    at->buffer =
        device_new_buffer(s->device, at->bytes, at->is_vast ? STORAGE_PRIVATE : STORAGE_SHARED,
                          p && p->name[0] ? p->name : label, e);
    if (!at->buffer || !fill_array(at, e))
        return false;
    launch_bind(l, a->index, slice_whole(at->buffer), at->written ? ACCESS_BOTH : ACCESS_READ,
                a->type);
    return true;
}

static bool check_index(const setup *s, const char *option, int index, err *e) {
    return s->arrays[index].buffer ||
           err_set(e, EXIT_USAGE, "--%s %d: there is no array %d; give one with --arg", option,
                   index, index);
}

static bool set_only(const setup *s, launch *l, err *e) {
    const launch_request *r = s->request;
    const size3 groups = launch_get_groups(l);
    if (!r->has_only)
        return true;
    if (device_get_facts(s->device)->kind != DEVICE_SOFT)
        return err_set(e, EXIT_USAGE, "--only is for the software device; use --device soft");
    if (r->only[0] >= groups.x || r->only[1] >= groups.y || r->only[2] >= groups.z)
        return err_set(e, EXIT_USAGE,
                       "--only %u,%u,%u is not in the grid of %u x %u x %u threadgroups",
                       r->only[0], r->only[1], r->only[2], groups.x, groups.y, groups.z);
    l->only = 1 + r->only[0] + (uint64_t)groups.x * (r->only[1] + (uint64_t)groups.y * r->only[2]);
    return true;
}

/* Adds options that bind what is not bound, with an element per thread. */
static bool list_missing(const msl_signature *s, const launch *l, err *e) {
    const size3 groups = launch_get_groups(l), group = l->group;
    const uint64_t threads = (uint64_t)groups.x * groups.y * groups.z * group.x * group.y * group.z;
    char text[LAUNCH_BUFFERS * 64] = "";
    size_t used = 0;
    for (const msl_param *p = s->params; p < s->params + s->count; p++) {
        elem type = ELEM_U8;
        if (p->kind != MSL_BUFFER || l->args[p->index].kind != BIND_NONE)
            continue;
        const bool is_known = elem_find_msl(p->type, &type),
                   is_scalar = is_known && p->is_reference;
        used += (size_t)snprintf(
            text + used, sizeof text - used,
            is_scalar ? "%s  --arg %d=%s:1" : "%s  --arg '%d=%s[%" PRIu64 "]:%s'",
            used ? " \\\n" : "", p->index, elem_get_name(type),
            p->is_reference ? p->value_bytes : threads, is_known && p->is_const ? "ramp" : "zero");
    }
    if (used == 0)
        return false;
    const err was = *e;
    err_set(e, was.code, "%.160s; for all that is missing add, with your sizes:", was.text);
    return err_set_detail(e, text);
}

/* What does not fit the kernel's signature is a mistake of the command line here. */
static bool describe_launch(setup *s, err *e) {
    const launch_request *r = s->request;
    s->tape = tape_new(s->library);
    launch *l = tape_add_pipeline(s->tape, s->pipeline);
    for (size_t i = 0; i < r->launch.argument_count; i++)
        if (!bind_argument(s, l, &r->launch.arguments[i], e))
            return false;
    for (size_t i = 0; i < r->part_count; i++)
        if (!bind_part(s, l, i, e))
            return false;
    l->may_overread = r->may_overread;
    memcpy(l->threadgroup_bytes, r->threadgroup_bytes, sizeof l->threadgroup_bytes);
    if (!describe_set_grid(&r->launch, &r->launch.grids[0], l, e) || !set_only(s, l, e))
        return false;
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if ((r->print[i].wanted && !check_index(s, "print", i, e)) ||
            (r->save[i] && !check_index(s, "save", i, e)))
            return false;
    if (launch_check_fit(l, &s->pipeline->signature, s->pipeline->max_group_threads,
                         device_get_facts(s->device)->max_threadgroup_bytes, e))
        return true;
    if (e->code == EXIT_WRONG)
        e->code = EXIT_USAGE;
    return list_missing(&s->pipeline->signature, l, e);
}

static void print_time(FILE *out, const char *what, const double *samples, size_t count) {
    char text[32];
    fprintf(out, "%s %s", what,
            format_time(stats_compute(samples, count).median, text, sizeof text));
}

static void print_times(const setup *s, FILE *out, const play_times *times, size_t count) {
    const device_facts *f = device_get_facts(s->device);
    double *samples = array_new(3 * count, sizeof *samples);
    for (size_t i = 0; i < count; i++) {
        samples[i] = (double)times[i].gpu_ns;
        samples[count + i] = (double)times[i].encode_ns;
        samples[2 * count + i] = (double)times[i].wall_ns;
    }
    fprintf(out, "time%s: ", f->emulated ? " (emulated)" : "");
    print_time(out, times[0].gpu_is_wall ? "GPU (by the wall clock)" : "GPU", samples, count);
    print_time(out, ", encode", samples + count, count);
    print_time(out, ", wall", samples + 2 * count, count);
    for (size_t i = 0; i < count; i++)
        samples[i] = (double)times[i].driver_ns;
    if (times[0].driver_ns > 0)
        print_time(out, ", driver", samples, count);
    if (count > 1)
        fprintf(out, "; medians of %zu", count);
    fputc('\n', out);
    free(samples);
}

static bool start_over(setup *s, err *e) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        array *a = &s->arrays[i];
        if (a->written && !fill_array(a, e))
            return false;
    }
    return true;
}

static bool play(setup *s, FILE *out, err *e) {
    size_t count = (size_t)s->request->repeat;
    play_times *times = array_new(count, sizeof *times);
    const char *capture = s->request->capture;
    bool is_captured = capture && device_start_capture(s->device, capture, e);
    bool ok = !capture || is_captured;
    for (size_t i = 0; i < count && ok; i++)
        ok = start_over(s, e) && tape_play(s->tape, PLAY_WHOLE, &times[i], NULL, e);
    if (is_captured)
        device_stop_capture(s->device);
    if (ok && !s->request->validate)
        print_times(s, out, times, count);
    free(times);
    return ok;
}

/* Results -------------------------------------------------------------------------------------- */

/* Which elements nothing has stored. Where the device does not know it, by the pattern that the array
 * started with: in words of four bytes, because in one or two it may as well be a value. */
static bool *find_unwritten(const array *a, const unsigned char *data, size_t count) {
    const uint16_t poison[] = {POISON_PATTERN, POISON_PATTERN, POISON_PATTERN, POISON_PATTERN};
    const unsigned char *written = buffer_get_written(a->buffer);
    const size_t each = elem_get_bytes(a->type), word = each < 4 ? 4 : each;
    bool *out = array_new(count, sizeof *out);
    for (size_t i = 0; i < count; i++) {
        const size_t first = i * each / word * word, left = count * each - first;
        out[i] = written ? memchr(written + i * each, 0, each) != NULL
                         : a->unwritten && left >= word && !memcmp(data + first, poison, word);
    }
    return out;
}

enum { TEXT_SIZE = 32, ROW_WIDTH = 96, MOST_COLUMNS = 16 };

static void get_float_text(elem type, const void *data, size_t i, char *text, size_t size) {
    double value = elem_read(type, data, i);
    if (isnan(value)) { /* its sign means nothing, and is another one on other CPUs */
        snprintf(text, size, "nan");
        return;
    }
    if (fabs(value) < 1e6 && value == trunc(value) && !(value == 0 && signbit(value))) {
        snprintf(text, size, "%.0f", value); /* not 1e+01 */
        return;
    }
    for (int digits = 1; digits <= 9; digits++) {
        uint64_t again;
        snprintf(text, size, "%.*g", digits, value);
        elem_write(type, &again, 0, strtod(text, NULL));
        if (elem_read(type, &again, 0) == value)
            return;
    }
}

/* The shortest text for element i. */
static void get_text(elem type, const void *data, const bool *unwritten, size_t i, char *text,
                     size_t size) {
    if (unwritten[i])
        snprintf(text, size, "unwritten");
    else if (elem_is_float(type))
        get_float_text(type, data, i, text, size);
    else if (type == ELEM_U64)
        snprintf(text, size, "%" PRIu64, ((const uint64_t *)data)[i]);
    else if (type == ELEM_I64)
        snprintf(text, size, "%" PRId64, ((const int64_t *)data)[i]);
    else
        snprintf(text, size, "%.0f", elem_read(type, data, i));
}

/* Rows of aligned values, each row preceded by the index of its first, as text that reads back as the same
 * bits. Elements that nothing has written have no value. */
static void print_values(FILE *out, elem type, const void *data, const bool *unwritten,
                         size_t count) {
    char text[TEXT_SIZE];
    int width = 1, index_width = snprintf(text, sizeof text, "%zu", count);
    for (size_t i = 0; i < count; i++) {
        get_text(type, data, unwritten, i, text, sizeof text);
        int n = (int)strlen(text);
        width = n > width ? n : width;
    }
    size_t columns = MOST_COLUMNS;
    while (columns > 1 && columns * (size_t)(width + 2) > ROW_WIDTH)
        columns /= 2;
    for (size_t i = 0; i < count; i++) {
        get_text(type, data, unwritten, i, text, sizeof text);
        if (i % columns == 0)
            fprintf(out, "%s%*zu:", i ? "\n" : "", index_width + 2, i);
        fprintf(out, "  %*s", width, text);
    }
    fputc('\n', out);
}

static bool show_array(const setup *s, int index, FILE *out, err *e) {
    const launch_request *r = s->request;
    const array *a = &s->arrays[index];
    bool is_shown = r->has_print ? r->print[index].wanted : a->written;
    if (!a->buffer || (!is_shown && !r->save[index]))
        return true;
    uint64_t most = r->print[index].most ? r->print[index].most : USUAL_ELEMENTS;
    size_t count = most < a->count ? (size_t)most : a->count;
    size_t bytes = r->save[index] ? a->bytes : count * elem_get_bytes(a->type);
    void *data = array_new(1, bytes);
    bool ok = buffer_download(a->buffer, 0, data, bytes, e);
    if (ok && is_shown) {
        fprintf(out, "buffer %d '%s', %s[%zu]%s\n", index, a->buffer->label, elem_get_name(a->type),
                a->count, count < a->count ? ", its first elements" : "");
        bool *unwritten = find_unwritten(a, data, count);
        print_values(out, a->type, data, unwritten, count);
        free(unwritten);
    }
    if (ok && r->save[index])
        ok = os_write_file(r->save[index], data, a->bytes, e);
    free(data);
    return ok;
}

/* Says which buffers were written outside. False only if that could not be found out. */
static bool check_guards(const setup *s, FILE *out, bool *whole, err *e) {
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        ptrdiff_t at = 0;
        err why = {.code = EXIT_OK};
        const buffer *b = s->arrays[i].buffer;
        if (!b || buffer_check_guards(b, &at, &why))
            continue;
        if (why.code != EXIT_WRONG) {
            *e = why;
            return false;
        }
        *whole = false;
        fprintf(out, "buffer %d: %s\n", i, why.text);
    }
    return true;
}

static exit_code report(setup *s, bool played, FILE *out, err *e) {
    const launch_request *r = s->request;
    const finding_list *findings = device_get_findings(s->device);
    bool whole = true;
    exit_code code = played ? EXIT_OK : e->code;
    if (played)
        for (int i = 0; i < LAUNCH_BUFFERS; i++)
            if (!show_array(s, i, out, e))
                return e->code;
    err unknown; /* a GPU that crashed gives nothing back: the crash is the error */
    if (!check_guards(s, out, &whole, played ? e : &unknown) && played)
        return e->code;
    if (sanitizer_get_tool()) /* whoever started this process reports them when it has ended */
        return whole ? code : EXIT_WRONG;
    findings_print(out, findings, (size_t)r->max_findings);
    size_t guessed = 0;
    for (const finding *f = findings->items; f < findings->items + findings->count; f++)
        guessed += f->what <= FINDING_STORE_OUTSIDE && f->buffer >= 0 && !r->strict &&
                   (r->assumed >> f->buffer & 1);
    if (r->validate)
        fprintf(out, "%zu finding%s\n", findings->count, findings->count == 1 ? "" : "s");
    if (guessed > 0)
        fprintf(out, "%zu of them outside of a buffer whose size is assumed\n", guessed);
    bool fails = finding_count_failing(findings, r->strict) > guessed;
    return fails || !whole ? EXIT_WRONG : code;
}

static void close_setup(setup *s) {
    tape_free(s->tape);
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        buffer_free(s->arrays[i].buffer);
        free(s->arrays[i].data);
    }
    pipeline_free(s->pipeline);
    library_free(s->library);
    msl_free(s->unit);
    device_close(s->device);
}

exit_code launch_run(const launch_request *r, FILE *out, err *e) {
    setup s = {.request = r};
    exit_code code;
    if (compile(&s, e) && describe_launch(&s, e)) {
        const device_facts *f = device_get_facts(s.device);
        *e = (err){.code = EXIT_OK}; /* what `auto` tried before is not an error */
        fprintf(out, "# device: %s (%s%s)\n# compiler: %s\n", f->name, f->api,
                f->validates ? ", checked" : "", f->compiler);
        char warning[200];
        warn_agx_compile(r->agx);
        warn_launch(s.unit, r->kernel, s.constants, r->launch.constant_count,
                    s.tape->launches[0].group, s.tape->launches[0].pipeline->math, warning,
                    sizeof warning);
        if (warning[0])
            fprintf(out, "# warning: %s\n", warning);
        bool played = play(&s, out, e);
        code = report(&s, played, out, e);
    } else {
        code = e->code;
    }
    close_setup(&s);
    return code;
}

bool launch_with(const launch_request *r, launch_use *use, void *context, err *e) {
    setup s = {.request = r};
    bool ok = compile(&s, e) && describe_launch(&s, e) && use(context, s.tape, e);
    close_setup(&s);
    return ok;
}
