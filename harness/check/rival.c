/* rival: see rival.h. Makes the launch from the description and the case; compares nothing and times
 * nothing itself. */
#include "rival.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "description.h"
#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "line.h"

enum { SCALAR_BYTES = 8 };

/* Opening ------------------------------------------------------------------------------------- */

static bool read_given(rival *r, const char *given, err *e) {
    char path[PATH_MAX];
    const char *colon = strrchr(given, ':'), *name = path_get_name(given);
    if (!colon || !line_is_name(colon + 1) ||
        !path_print(path, sizeof path, NULL, "%.*s", (int)(colon - given), given) ||
        !path_ends_with(path, ".metal"))
        return err_set(e, EXIT_USAGE,
                       "a kernel of others is given as FILE.metal:KERNEL, not as '%.120s'", given);
    const int folder = (int)(name - given);
    r->given = given;
    if (!path_print(r->folder, sizeof r->folder, e, "%.*s", folder > 1 ? folder - 1 : 1,
                    folder > 0 ? given : ".") ||
        !path_print(r->file, sizeof r->file, e, "%.*s", (int)(colon - name), name) ||
        !path_print(r->kernel, sizeof r->kernel, e, "%s", colon + 1))
        return false;
    snprintf(r->name, sizeof r->name, "%.40s:%.54s", r->file, r->kernel);
    return access(path, R_OK) == 0 || err_set(e, EXIT_USAGE, "cannot read %.200s", path);
}

/* Folders of includes are seen from that of the kernel. */
static bool find_extras(rival *r, err *e) {
    description *d = r->launch;
    for (size_t i = 0; i < d->includes.count; i++) {
        char *path = array_new(1, PATH_MAX);
        if (!path_join(path, PATH_MAX, e, r->folder, d->includes.items[i]))
            return false;
        d->includes.items[i] = path;
    }
    r->extras = (msl_extras){
        d->includes.items, d->macros.items, d->includes.count, d->macros.count, 0, false};
    return true;
}

bool rival_find_our_extras(msl_extras *out, err *e) {
    const library_project *p = library_get_project(NULL);
    const char **folders = array_new(p->include_count + 1, sizeof *folders);
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib != NULL;
    *out = (msl_extras){.folders = folders};
    if (ok)
        folders[out->folder_count++] = strdup(library_get_folder(lib));
    for (size_t i = 0; ok && i < p->include_count; i++) {
        char path[PATH_MAX];
        ok = path_join(path, sizeof path, e, folders[0], p->includes[i]);
        folders[out->folder_count++] = strdup(path);
    }
    library_free(lib);
    return ok;
}

static bool check_kernel(const rival *r, err *e) {
    char path[PATH_MAX];
    if (!path_join(path, sizeof path, e, r->folder, r->file))
        return false;
    msl_unit *unit = msl_load_with(path, &r->extras, e);
    bool ok = unit && msl_find_kernel(unit, r->kernel, e);
    msl_free(unit);
    return ok;
}

/* Reads a description; r->how is the line for the kernel, if it has one. */
static bool read_launch(rival *r, const char *path, err *e) {
    description *d = r->launch = array_new(1, sizeof *d);
    char *text = os_read_file(path, NULL, e);
    if (!text || !describe_read(d, DESCRIBES_LAUNCH, path, text, e))
        return false;
    for (size_t i = 0; i < d->op.kernel_count; i++) {
        if (strcmp(d->kernels[i].name, r->kernel) != 0)
            continue;
        if (r->how)
            return describe_refuse(d, d->grids[i].line, e, "'%.60s' is given twice: see line %d",
                                   r->kernel, r->how->line);
        r->how = &d->grids[i];
        r->format = r->how->format;
    }
    r->op = d->op.name;
    for (size_t i = 0; i < d->argument_count; i++)
        r->adds = r->adds || d->arguments[i].kind == ARGUMENT_BOTH;
    return true;
}

bool rival_open(rival *r, const char *given, const char *const *descriptions, size_t count,
                err *e) {
    rival fresh = {.given = given};
    if (!read_given(&fresh, given, e))
        return false;
    for (size_t i = 0; i < count; i++) {
        *r = fresh;
        if (!read_launch(r, descriptions[i], e))
            return false;
        if (r->how)
            return find_extras(r, e) && check_kernel(r, e);
    }
    if (count == 0) {
        *r = fresh;
        return rival_find_our_extras(&r->extras, e) && check_kernel(r, e);
    }
    return err_set(e, EXIT_USAGE, "%.100s has no line 'kernel %.100s ...'", descriptions[count - 1],
                   fresh.kernel);
}

bool rival_find_kernel(const char *path, const char *described, char *name, size_t size, err *e) {
    rival listed = {.given = path};
    size_t found = 0;
    err why = {.code = EXIT_OK};
    if (!read_launch(&listed, described, e))
        return false;
    for (size_t i = 0; i < listed.launch->op.kernel_count; i++) {
        const char *wanted = listed.launch->kernels[i].name;
        char given[2 * PATH_MAX];
        rival r;
        snprintf(given, sizeof given, "%.4000s:%.120s", path, wanted);
        if (!rival_open(&r, given, &described, 1, &why))
            continue;
        snprintf(name, size, "%s", wanted);
        found++;
    }
    if (found > 1)
        return err_set(e, EXIT_USAGE,
                       "%.100s describes %zu kernels of the candidate: name one with --kernel",
                       described, found);
    return found == 1 || err_set(e, EXIT_WRONG, "%.300s", why.text);
}

library *rival_new_library(const rival *r, device *d, err *e) {
    library *lib = library_new(d, r->folder, e);
    if (lib)
        library_set_extras(lib, &r->extras);
    return lib;
}

/* Names --------------------------------------------------------------------------------------- */

static const msl_param *find_param(const launch *l, const char *name) {
    const msl_signature *s = &l->pipeline->signature;
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == MSL_BUFFER && strcmp(s->params[i].name, name) == 0)
            return &s->params[i];
    return NULL;
}

static bool is_scalar(const binding *b) {
    return b->kind == BIND_BUFFER && b->access == ACCESS_READ && b->at.bytes <= SCALAR_BYTES;
}

/* A scalar of our launch, wherever it is kept, as what its name means. */
static void add_scalar(const rival_problem *p, const msl_param *own) {
    const binding *b = &p->ours.args[own->index];
    uint8_t bytes[SCALAR_BYTES] = {0};
    elem type;
    if (!elem_find_msl(own->type, &type) || elem_get_bytes(type) > sizeof bytes)
        return;
    if (b->kind == BIND_BYTES && b->inline_bytes <= sizeof bytes)
        memcpy(bytes, p->ours.inline_bytes + b->inline_at, b->inline_bytes);
    else if (!is_scalar(b) ||
             !buffer_download(b->at.buffer, b->at.offset, bytes, b->at.bytes, NULL))
        return;
    describe_add_symbol(p->rival->launch, own->name, type)->value = number_read(type, bytes, 0);
}

static void add_whole(description *d, const char *name, int64_t value) {
    describe_add_symbol(d, name, ELEM_I64)->value.whole = value;
}

/* Scalars of our launch, then the sizes of the shape by the names in op.dims; one that is not given is
 * 1. */
static void add_names(const kernel_case *c, rival_problem *p) {
    description *d = p->rival->launch;
    const msl_signature *ours = &p->ours.pipeline->signature;
    const char *dims = c->op->dims;
    d->symbol_count = 0;
    for (size_t i = 0; i < ours->count; i++) {
        const msl_param *own = &ours->params[i];
        if (own->kind != MSL_BUFFER)
            continue;
        char *name = p->sizes[own->index];
        add_scalar(p, own);
        snprintf(name, sizeof p->sizes[0], "%.50s.bytes", own->name);
        if (p->ours.args[own->index].kind == BIND_BUFFER)
            add_whole(d, name, (int64_t)p->ours.args[own->index].at.bytes);
    }
    for (int i = 0; i < SHAPE_DIMS && *dims; i++) {
        const size_t length = strcspn(dims, " ");
        uint32_t size = c->shape.dim[i];
        snprintf(p->dims[i], sizeof p->dims[i], "%.*s", (int)length, dims);
        add_whole(d, p->dims[i], size ? size : 1);
        dims += length;
        dims += strspn(dims, " ");
        dims += *dims == 'x' && dims[1] == ' ' ? 2 : 0;
    }
    d->size_count = d->symbol_count;
}

/* The launch ---------------------------------------------------------------------------------- */

static bool bind(rival_problem *p, launch *l, const described_argument *a, err *e) {
    static const char *const words[] = {"", "in", "out", "inout"};
    const description *d = p->rival->launch;
    const msl_param *ours = find_param(&p->ours, a->name);
    if (!ours || p->ours.args[ours->index].kind != BIND_BUFFER)
        return describe_refuse(d, a->line, e, "%.60s has no buffer '%.40s'",
                               p->ours.pipeline->kernel, a->name);
    const binding *b = &p->ours.args[ours->index];
    if (b->access != (access_mode)a->kind)
        return describe_refuse(d, a->line, e, "'%.40s' is '%s' here and '%s' of %.60s", a->name,
                               words[a->kind], words[b->access], p->ours.pipeline->kernel);
    launch_bind(l, a->index, b->at, b->access, b->type);
    l->may_overread |= a->may_overread ? 1u << a->index : 0;
    p->theirs[ours->index] = a->index;
    return true;
}

static bool bind_all(rival_problem *p, launch *l, err *e) {
    description *d = p->rival->launch;
    for (size_t i = 0; i < d->argument_count; i++) {
        const described_argument *a = &d->arguments[i];
        if (!(a->kind <= ARGUMENT_BOTH ? bind(p, l, a, e) : describe_set_value(d, l, a, e)))
            return false;
    }
    return true;
}

/* What our launch reads and writes, the rival must be given: else its oracle has no inputs, or an
 * output is compared that the rival never saw. */
static bool check_complete(rival_problem *p, err *e) {
    const msl_signature *ours = &p->ours.pipeline->signature;
    for (size_t i = 0; i < ours->count; i++) {
        const msl_param *own = &ours->params[i];
        if (own->kind != MSL_BUFFER || p->ours.args[own->index].kind != BIND_BUFFER ||
            p->theirs[own->index] >= 0)
            continue;
        const binding *b = &p->ours.args[own->index];
        if (!is_scalar(b))
            return describe_refuse(p->rival->launch, p->rival->how->line, e,
                                   "no line says where the %s '%.40s' goes",
                                   b->access == ACCESS_READ ? "input" : "output", own->name);
        if (!buffer_download(b->at.buffer, b->at.offset, p->scalars[own->index], b->at.bytes, e))
            return false;
    }
    return true;
}

/* The oracle of our launch, asked about the rival's buffers. */
static void rival_oracle(const launch *l, oracle_io *io) {
    const rival_problem *p = l->context;
    oracle_io asked = {0};
    for (int i = 0; i < LAUNCH_BUFFERS; i++) {
        const binding *b = &p->ours.args[i];
        int theirs = p->theirs[i];
        if (b->kind == BIND_BYTES) {
            asked.in[i] = p->ours.inline_bytes + b->inline_at;
            asked.bytes[i] = b->inline_bytes;
        } else if (b->kind == BIND_BUFFER) {
            asked.in[i] = theirs < 0 ? p->scalars[i] : io->in[theirs];
            asked.bytes[i] = b->at.bytes;
            if (theirs >= 0)
                asked.out[i] = io->out[theirs];
        }
    }
    p->ours.oracle(&p->ours, &asked);
    memcpy(io->failure, asked.failure, sizeof io->failure);
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        if (p->theirs[i] >= 0)
            io->out[p->theirs[i]] = asked.out[i];
}

static bool check_needs(const rival *r, err *e) {
    const described_expression *needs = &r->launch->needs;
    number value;
    if (!needs->text)
        return true;
    return describe_compute(r->launch, needs, &value, e) &&
           (value.real != 0 ||
            err_set(e, EXIT_CANNOT, "%.80s needs %.100s", r->kernel, needs->text));
}

static bool record(const kernel_case *c, tape *t, rival_problem *p, err *e) {
    const rival *r = p->rival;
    description *d = r->launch;
    size3 group;
    add_names(c, p);
    if (!check_needs(r, e) || !describe_compute_group(d, r->how, &group, e))
        return false;
    add_whole(d, "group_size", (int64_t)group.x * group.y * group.z);
    d->size_count = d->symbol_count;
    launch *l = describe_add_launch(d, t, r->file, r->kernel, e);
    if (!l && e->code == EXIT_WRONG) /* does not compile: a mistake of the command line here */
        e->code = EXIT_USAGE;
    if (!l || !describe_set_grid(d, r->how, l, e) || !bind_all(p, l, e) || !check_complete(p, e))
        return false;
    l->bytes = p->ours.bytes;
    l->flops = p->ours.flops;
    l->oracle = rival_oracle;
    l->context = p;
    err why;
    const pipeline *made = l->pipeline;
    const device_facts *facts = device_get_facts(library_get_device(t->lib));
    return launch_check_fit(l, &made->signature, made->max_group_threads,
                            facts->max_threadgroup_bytes, &why) ||
           describe_refuse(d, r->how->line, e, "%s", why.text);
}

/* Our launches with its kernel in the place of ours. */
static bool record_as_ours(const rival *r, const kernel_case *c, tape *t, err *e) {
    const device_facts *facts = device_get_facts(library_get_device(t->lib));
    for (size_t i = 0; i < c->tape->count; i++) {
        const launch *ours = &c->tape->launches[i];
        bool is_it = ours->kernel == c->kernel || c->tape->count == 1;
        const pipeline *p =
            !is_it ? ours->pipeline
                   : library_find_like(t->lib, r->file, r->kernel, c->tape->lib, ours->pipeline, e);
        err why;
        if (!p)
            return false;
        launch *l = tape_add_pipeline(t, p);
        *l = *ours;
        l->pipeline = p;
        if (!launch_check_fit(l, &p->signature, p->max_group_threads, facts->max_threadgroup_bytes,
                              &why))
            return err_set(e, EXIT_USAGE, "%.80s cannot be launched as %.60s is: %.100s", r->name,
                           c->kernel->name, why.text);
    }
    return true;
}

bool rival_record(const rival *r, const kernel_case *c, tape *t, rival_problem *p, err *e) {
    if (!r->launch)
        return record_as_ours(r, c, t, e);
    if (c->tape->count != 1)
        return err_set(e, EXIT_CANNOT, "%.80s takes %zu launches, and a rival stands beside one",
                       c->kernel->name, c->tape->count);
    *p = (rival_problem){.rival = r, .ours = c->tape->launches[0]};
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        p->theirs[i] = -1;
    return record(c, t, p, e);
}
