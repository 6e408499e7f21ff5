/* rival: see rival.h. Makes the launch from the description and the case; compares nothing and times
 * nothing itself. */
#include "rival.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "expression.h"
#include "harness/device/launch_fit.h"

enum { SCALAR_BYTES = 8 };

/* What names in the description mean. */
typedef struct {
    const rival *rival;
    const kernel_case *problem;
    const launch *ours;
    int64_t group_size; /* 0: not known yet */
    err *e;
} scope;

static bool refuse(const scope *s, int line, const char *why) {
    const char *path = s->rival->path, *slash = strrchr(path, '/');
    char text[sizeof s->e->text];
    snprintf(text, sizeof text, "%s", why);
    return err_set(s->e, EXIT_USAGE, "%.40s:%d: %.190s", slash ? slash + 1 : path, line, text);
}

/* Names --------------------------------------------------------------------------------------- */

static const msl_param *find_param(const launch *l, const char *name, size_t length) {
    const msl_signature *s = &l->pipeline->signature;
    for (size_t i = 0; i < s->count; i++)
        if (s->params[i].kind == MSL_BUFFER && strlen(s->params[i].name) == length &&
            strncmp(s->params[i].name, name, length) == 0)
            return &s->params[i];
    return NULL;
}

static bool is_scalar(const binding *b) {
    return b->kind == BIND_BUFFER && b->access == ACCESS_READ && b->at.bytes <= SCALAR_BYTES;
}

/* A scalar of our launch, wherever it is kept. */
static bool read_scalar(const scope *s, const msl_param *p, number *out) {
    const binding *b = &s->ours->args[p->index];
    uint8_t bytes[SCALAR_BYTES] = {0};
    elem type;
    if (!elem_find_msl(p->type, &type) || elem_get_bytes(type) > sizeof bytes)
        return false;
    if (b->kind == BIND_BYTES && b->inline_bytes <= sizeof bytes)
        memcpy(bytes, s->ours->inline_bytes + b->inline_at, b->inline_bytes);
    else if (!is_scalar(b) ||
             !buffer_download(b->at.buffer, b->at.offset, bytes, b->at.bytes, NULL))
        return false;
    double value = elem_read(type, bytes, 0);
    *out = elem_is_float(type) ? number_real(value) : number_whole((int64_t)value);
    return true;
}

/* The sizes of a shape by the names in op.dims, "out x in x batch"; one that is not given is 1. */
static bool find_dim(const scope *s, const char *name, number *out) {
    const char *at = s->problem->op->dims;
    for (int i = 0; at && i < SHAPE_DIMS; i++) {
        size_t length = strcspn(at, " ");
        if (strlen(name) == length && strncmp(at, name, length) == 0) {
            uint32_t size = s->problem->shape.dim[i];
            *out = number_whole(size ? size : 1);
            return true;
        }
        at = strstr(at, " x ");
        at = at ? at + 3 : NULL;
    }
    return false;
}

static bool find_name(void *context, const char *name, number *out) {
    const scope *s = context;
    size_t length = strcspn(name, ".");
    const msl_param *p = find_param(s->ours, name, length);
    if (strcmp(name, "group_size") == 0 && s->group_size > 0) {
        *out = number_whole(s->group_size);
        return true;
    }
    if (strcmp(name + length, ".bytes") == 0 && p && s->ours->args[p->index].kind == BIND_BUFFER) {
        *out = number_whole((int64_t)s->ours->args[p->index].at.bytes);
        return true;
    }
    return !name[length] && ((p && read_scalar(s, p, out)) || find_dim(s, name, out));
}

static bool evaluate(const scope *s, const rival_expression *x, number *out) {
    err why;
    return expression_evaluate(x->text, find_name, (void *)(uintptr_t)s, out, &why) ||
           refuse(s, x->line, why.text);
}

/* A whole number of at least 1 that fits into a size. */
static bool evaluate_size(const scope *s, const rival_expression *x, uint32_t most, uint32_t *out) {
    number value;
    char why[160];
    if (!evaluate(s, x, &value))
        return false;
    *out = (uint32_t)value.whole;
    if (!value.is_real && value.whole >= 1 && value.whole <= most)
        return true;
    snprintf(why, sizeof why, "'%.60s' is %.9g, expected a whole number from 1 to %" PRIu32,
             x->text, value.real, most);
    return refuse(s, x->line, why);
}

/* Stores the value as an element; one that does not fit is an error. */
static bool write_scalar(const scope *s, const rival_expression *x, elem type, uint8_t *out) {
    number value;
    char why[160];
    if (!evaluate(s, x, &value))
        return false;
    if (number_store(value, type, out))
        return true;
    snprintf(why, sizeof why, "'%.60s' is %.9g, which does not fit into %s", x->text, value.real,
             elem_get_name(type));
    return refuse(s, x->line, why);
}

/* The launch ---------------------------------------------------------------------------------- */

static bool set_grid(scope *s, launch *l) {
    const rival *r = s->rival;
    uint32_t group[3] = {1, 1, 1}, grid[3] = {1, 1, 1};
    for (size_t i = 0; i < r->group.count; i++)
        if (!evaluate_size(s, &r->group.items[i], 1024, &group[i]))
            return false;
    s->group_size = (int64_t)group[0] * group[1] * group[2];
    for (size_t i = 0; i < r->grid.count; i++)
        if (!evaluate_size(s, &r->grid.items[i], INT32_MAX, &grid[i]))
            return false;
    for (size_t i = 0; i < r->threadgroup.count; i++)
        if (!evaluate_size(s, &r->threadgroup.items[i], 1 << 20, &l->threadgroup_bytes[i]))
            return false;
    for (int i = 0; i < 3 && r->grid_kind == 't'; i++)
        grid[i] = grid[i] / group[i] + (grid[i] % group[i] != 0);
    size3 size = {grid[0], grid[1], grid[2]}, threads = {group[0], group[1], group[2]};
    if (r->grid_kind == 'd')
        launch_set_threads(l, size, threads);
    else
        launch_set_groups(l, size, threads);
    return true;
}

static bool set_inline(const scope *s, launch *l, const rival_argument *a, const uint8_t *data,
                       size_t bytes) {
    if (((size_t)l->inline_used + 15) / 16 * 16 + bytes > LAUNCH_INLINE_BYTES)
        return refuse(s, a->line,
                      "values and structs are too large for a launch: 256 bytes in all");
    launch_set_bytes(l, a->index, data, bytes);
    return true;
}

static bool set_struct(const scope *s, launch *l, const rival_argument *a) {
    uint8_t data[LAUNCH_INLINE_BYTES] = {0};
    size_t used = 0, alignment = 1;
    for (size_t i = 0; i < a->field_count; i++) {
        const rival_scalar *f = &s->rival->fields[a->first_field + i];
        size_t bytes = elem_get_bytes(f->type);
        used = (used + bytes - 1) / bytes * bytes;
        alignment = bytes > alignment ? bytes : alignment;
        if (used + bytes > sizeof data)
            return refuse(s, f->value.line, "a struct has at most 256 bytes");
        if (!write_scalar(s, &f->value, f->type, data + used))
            return false;
        used += bytes;
    }
    if (used == 0)
        return refuse(s, a->line, "the struct has no line field");
    return set_inline(s, l, a, data, (used + alignment - 1) / alignment * alignment);
}

static bool bind(const scope *s, launch *l, const rival_argument *a, rival_problem *p) {
    const msl_param *ours = find_param(s->ours, a->name, strlen(a->name));
    char why[200];
    if (!ours || s->ours->args[ours->index].kind != BIND_BUFFER) {
        snprintf(why, sizeof why, "%.60s has no buffer '%.40s'", s->ours->pipeline->kernel,
                 a->name);
        return refuse(s, a->line, why);
    }
    const binding *b = &s->ours->args[ours->index];
    if (b->access != a->access) {
        static const char *const words[] = {"", "in", "out", "inout"};
        snprintf(why, sizeof why, "'%.40s' is '%s' here and '%s' of %.60s", a->name,
                 words[a->access], words[b->access], s->ours->pipeline->kernel);
        return refuse(s, a->line, why);
    }
    launch_bind(l, a->index, b->at, b->access, b->type);
    l->may_overread |= a->overread ? 1u << a->index : 0;
    p->theirs[ours->index] = a->index;
    return true;
}

static bool bind_all(const scope *s, launch *l, rival_problem *p) {
    for (size_t i = 0; i < s->rival->argument_count; i++) {
        const rival_argument *a = &s->rival->arguments[i];
        uint8_t data[SCALAR_BYTES];
        bool ok = a->kind == RIVAL_BUFFER ? bind(s, l, a, p)
                  : a->kind == RIVAL_STRUCT
                      ? set_struct(s, l, a)
                      : write_scalar(s, &a->value, a->type, data) &&
                            set_inline(s, l, a, data, elem_get_bytes(a->type));
        if (!ok)
            return false;
    }
    return true;
}

/* What our launch reads and writes, the rival must be given: else its oracle has no inputs, or an
 * output is compared that the rival never saw. */
static bool check_complete(const scope *s, rival_problem *p) {
    const msl_signature *ours = &s->ours->pipeline->signature;
    for (size_t i = 0; i < ours->count; i++) {
        const msl_param *own = &ours->params[i];
        if (own->kind != MSL_BUFFER || s->ours->args[own->index].kind != BIND_BUFFER ||
            p->theirs[own->index] >= 0)
            continue;
        const binding *b = &s->ours->args[own->index];
        char why[160];
        if (is_scalar(b)) {
            if (!buffer_download(b->at.buffer, b->at.offset, p->scalars[own->index], b->at.bytes,
                                 s->e))
                return false;
            continue;
        }
        snprintf(why, sizeof why, "no line says where the %s '%.40s' goes",
                 b->access == ACCESS_READ ? "input" : "output", own->name);
        return refuse(s, s->rival->kernel_line, why);
    }
    return true;
}

static bool make_constants(const scope *s, constant_value *out) {
    for (size_t i = 0; i < s->rival->constant_count; i++) {
        const rival_scalar *c = &s->rival->constants[i];
        uint8_t data[SCALAR_BYTES] = {0};
        if (!write_scalar(s, &c->value, c->type, data))
            return false;
        out[i] = (constant_value){.index = (uint32_t)c->index, .type = c->type};
        memcpy(&out[i].bits, data, elem_get_bytes(c->type));
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

static bool check_needs(const scope *s) {
    number value;
    if (!s->rival->needs.text)
        return true;
    if (!evaluate(s, &s->rival->needs, &value))
        return false;
    return value.real != 0 ||
           err_set(s->e, EXIT_CANNOT, "%.80s needs %.100s", s->rival->kernel, s->rival->needs.text);
}

static bool record(scope *s, tape *t, rival_problem *p, err *e) {
    const rival *r = s->rival;
    constant_value constants[RIVAL_CONSTANTS];
    const msl_unit *unit = library_find_unit(t->lib, s->rival->file, e);
    launch sized = {.kernel = NULL}; /* constants may depend on the size of its threadgroups */
    if (!unit || !check_needs(s) || !set_grid(s, &sized) || !make_constants(s, constants) ||
        !constant_check(unit, constants, r->constant_count, e))
        return false;
    launch *l = tape_add_specialised(t, r->file, r->kernel, constants, r->constant_count, e);
    if (!l && e->code == EXIT_WRONG) /* does not compile: a mistake of the command line here */
        e->code = EXIT_USAGE;
    if (!l || !set_grid(s, l) || !bind_all(s, l, p) || !check_complete(s, p))
        return false;
    l->bytes = s->ours->bytes;
    l->flops = s->ours->flops;
    l->oracle = rival_oracle;
    l->context = p;
    err why;
    const pipeline *made = l->pipeline;
    const device_facts *facts = device_get_facts(library_get_device(t->lib));
    return launch_check_fit(l, &made->signature, made->max_group_threads,
                            facts->max_threadgroup_bytes, &why) ||
           refuse(s, r->kernel_line, why.text);
}

bool rival_record(const rival *r, const kernel_case *c, tape *t, rival_problem *p, err *e) {
    if (c->tape->count != 1)
        return err_set(e, EXIT_CANNOT, "%.80s takes %zu launches, and a rival stands beside one",
                       c->kernel->name, c->tape->count);
    *p = (rival_problem){.ours = c->tape->launches[0]};
    for (int i = 0; i < LAUNCH_BUFFERS; i++)
        p->theirs[i] = -1;
    scope s = {.rival = r, .problem = c, .ours = &p->ours, .e = e};
    return record(&s, t, p, e);
}
