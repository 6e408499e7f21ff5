/* ptx_step: what one instruction does to one thread. Instructions in which threads meet are in
 * ptx_run.c. */
#include <string.h>

#include "double.h"

/* Operands -------------------------------------------------------------------------------------- */

/* Where dynamic memory begins. */
static size_t get_fixed_bytes(const ptx_launch *l) {
    return (l->program->shared_bytes + 15) / 16 * 16;
}

size_t ptx_get_shared_bytes(const ptx_launch *l) {
    return get_fixed_bytes(l) + l->dynamic_bytes;
}

static uint8_t *find_memory(const ptx_block *b, const ptx_thread *t, const ptx_symbol *s) {
    switch (s->space) {
    case SPACE_SHARED:
        return b->shared + s->at;
    case SPACE_DYNAMIC:
        return b->shared + get_fixed_bytes(b->launch);
    case SPACE_LOCAL:
        return t->local + s->at;
    case SPACE_PARAM:
        return (uint8_t *)(uintptr_t)b->launch->params + s->at;
    default:
        return b->launch->program->data + s->at;
    }
}

static uint32_t read_special(const ptx_block *b, const ptx_thread *t, uint32_t n) {
    const uint32_t *rows[] = {t->position, b->launch->block, b->block_position, b->launch->grid};
    if (n == SPECIAL_CLOCK)
        return (uint32_t)b->steps;
    return n == SPECIAL_LANE ? (uint32_t)(t - b->threads) % 32 : rows[n / 3][n % 3];
}

uint64_t ptx_read(const ptx_block *b, const ptx_thread *t, const ptx_arg *a) {
    switch (a->kind) {
    case ARG_REGISTER:
        return t->registers[a->index] + (uint64_t)a->value;
    case ARG_VALUE:
        return (uint64_t)a->value;
    case ARG_SPECIAL:
        return read_special(b, t, a->index);
    default:
        return (uint64_t)(uintptr_t)find_memory(b, t, &b->launch->program->symbols[a->index]) +
               (uint64_t)a->value;
    }
}

/* Memory ---------------------------------------------------------------------------------------- */

static bool is_inside(const uint8_t *at, size_t bytes, const uint8_t *base, size_t room) {
    return at >= base && bytes <= room && (size_t)(at - base) <= room - bytes;
}

static bool is_shared(const ptx_block *b, const uint8_t *at, size_t bytes) {
    return is_inside(at, bytes, b->shared, ptx_get_shared_bytes(b->launch));
}

static bool is_global(const ptx_block *b, const uint8_t *at, size_t bytes) {
    const ptx_program *p = b->launch->program;
    return is_inside(at, bytes, p->data, p->data_bytes) || double_has_memory(at, bytes);
}

static bool may_touch(const ptx_block *b, const ptx_thread *t, const uint8_t *at, size_t bytes) {
    const ptx_program *p = b->launch->program;
    return is_shared(b, at, bytes) || is_inside(at, bytes, t->local, p->local_bytes) ||
           is_inside(at, bytes, b->launch->params, p->param_bytes) || is_global(b, at, bytes);
}

uint8_t *ptx_find(const ptx_block *b, const ptx_thread *t, const ptx_arg *a, ptx_place where,
                  size_t bytes, size_t align, CUresult *fault) {
    uint8_t *at = (uint8_t *)(uintptr_t)ptx_read(b, t, a);
    bool is_there = where == PLACE_SHARED   ? is_shared(b, at, bytes)
                    : where == PLACE_GLOBAL ? is_global(b, at, bytes)
                                            : where == PLACE_ANY && may_touch(b, t, at, bytes);
    for (uint32_t n = 0; where == PLACE_REMOTE && n < b->cluster->count; n++)
        is_there = is_there || is_shared(&b->cluster->blocks[n], at, bytes);
    if ((uintptr_t)at % align != 0)
        *fault = CUDA_ERROR_MISALIGNED_ADDRESS;
    if (!*fault && !is_there)
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return at;
}

static void load(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t each = i->type.bits / 8;
    const uint8_t *at = ptx_find(b, t, &i->args[i->width], PLACE_ANY, each * i->width, each * i->width, fault);
    for (int n = 0; n < i->width && !*fault; n++) {
        uint64_t v = 0;
        memcpy(&v, at + (size_t)n * each, each);
        t->registers[i->args[n].index] = i->type.kind == 's' ? (uint64_t)ptx_extend(v, i->type.bits) : v;
    }
}

static void store(const ptx_block *b, const ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t each = i->type.bits / 8;
    uint8_t *at = ptx_find(b, t, &i->args[0], PLACE_ANY, each * i->width, each * i->width, fault);
    for (int n = 0; n < i->width && !*fault; n++) {
        uint64_t v = ptx_read(b, t, &i->args[n + 1]);
        memcpy(at + (size_t)n * each, &v, each);
    }
}

static void update(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    size_t bytes = i->type.bits / 8;
    uint8_t *at = ptx_find(b, t, &i->args[1], PLACE_ANY, bytes, bytes, fault);
    if (*fault)
        return;
    uint64_t old = 0, x = ptx_read(b, t, &i->args[2]), made = x;
    memcpy(&old, at, bytes);
    ptx_insn same = *i;
    same.op = strcmp(i->how, "add") == 0   ? OP_ADD
              : strcmp(i->how, "min") == 0 ? OP_MIN
              : strcmp(i->how, "max") == 0 ? OP_MAX
              : strcmp(i->how, "and") == 0 ? OP_AND
              : strcmp(i->how, "or") == 0  ? OP_OR
              : strcmp(i->how, "xor") == 0 ? OP_XOR
                                           : OP_MOV;
    const uint64_t v[4] = {old, x};
    if (strcmp(i->how, "cas") == 0)
        made = ptx_mask(old, i->type.bits) == ptx_mask(x, i->type.bits) ? ptx_read(b, t, &i->args[3]) : old;
    else if (same.op != OP_MOV)
        made = ptx_compute(&same, t, v);
    memcpy(at, &made, bytes);
    t->registers[i->args[0].index] = old;
}

/* mapa: where another block of the cluster has what is at an address of this one. */
static void map_address(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    const uint8_t *at = ptx_find(b, t, &i->args[1], PLACE_SHARED, 1, 1, fault);
    uint32_t n = (uint32_t)ptx_read(b, t, &i->args[2]);
    if (n >= b->cluster->count)
        *fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    if (!*fault)
        t->registers[i->args[0].index] =
            (uint64_t)(uintptr_t)(b->cluster->blocks[n].shared + (at - b->shared));
}

/* All of it ------------------------------------------------------------------------------------- */

/* mov packs and unpacks: {a, b} to one register and back. */
static void move(const ptx_block *b, ptx_thread *t, const ptx_insn *i) {
    unsigned bits = i->type.bits;
    uint64_t whole = 0;
    if (i->count == 2) {
        t->registers[i->args[0].index] = ptx_mask(ptx_read(b, t, &i->args[1]), bits < 8 ? 64 : bits);
        return;
    }
    unsigned parts = i->count - 1u, each = bits / parts;
    if (i->unpacks) {
        whole = ptx_read(b, t, &i->args[parts]);
        for (unsigned n = 0; n < parts; n++)
            t->registers[i->args[n].index] = ptx_mask(whole >> n * each, each);
        return;
    }
    for (unsigned n = 0; n < parts; n++)
        whole |= ptx_mask(ptx_read(b, t, &i->args[n + 1]), each) << n * each;
    t->registers[i->args[0].index] = whole;
}

void ptx_step(const ptx_block *b, ptx_thread *t, const ptx_insn *i, CUresult *fault) {
    uint64_t v[5] = {0};
    t->pc++;
    switch (i->op) {
    case OP_RET:
        t->has_ended = true;
        return;
    case OP_BRA:
        t->pc = i->target;
        return;
    case OP_LD:
        load(b, t, i, fault);
        return;
    case OP_ST:
        store(b, t, i, fault);
        return;
    case OP_ATOM:
        update(b, t, i, fault);
        return;
    case OP_MOV:
        move(b, t, i);
        return;
    case OP_MAPA:
        map_address(b, t, i, fault);
        return;
    case OP_CLUSTER_ARRIVE:
        b->cluster->arrivals++;
        return;
    case OP_ASYNC_COPY:
    case OP_ASYNC_CLOSE:
    case OP_ASYNC_LEAVE:
    case OP_ASYNC_WAIT:
    case OP_BARRIER_ARRIVE:
    case OP_BARRIER_INIT:
    case OP_BULK_COPY:
    case OP_SEND:
        ptx_step_copy(b, t, i, fault);
        return;
    case OP_FENCE:
        return;
    default:
        break;
    }
    for (int n = 1; n < i->count && n < 5; n++)
        v[n - 1] = ptx_read(b, t, &i->args[n]);
    t->registers[i->args[0].index] = ptx_compute(i, t, v);
}
