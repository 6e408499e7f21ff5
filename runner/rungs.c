/* rungs: see rungs.h. Each choice says what it rests on. */
#include "rungs.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

#include "kernels/kernels.h"

/* "Q4_0" in the name of an op is q4_0. */
static void spell_format(const weight_format *f, char *text, size_t size) {
    size_t i = 0;
    for (; f->name[i] && i + 1 < size; i++)
        text[i] = (char)tolower((unsigned char)f->name[i]);
    text[i] = 0;
}

static const kernel *find_kernel(const char *name) {
    const kernel *k = registry_find_kernel(name, NULL);
    assert(k);
    return k;
}

/* The first rung of an op that takes rows of in_dim, by the ends of its kernels' names. */
static const kernel *find_rung(const char *op_name, const char *const *ends, size_t count,
                               uint32_t in_dim) {
    for (size_t i = 0; i < count; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s%s", op_name, ends[i]);
        const kernel *k = registry_find_kernel(name, NULL);
        if (k && (k->min_dim == 0 || in_dim % k->min_dim == 0))
            return k;
    }
    return NULL;
}

/* On the software device lanes that never meet are a plain loop, so a thread a row wins for one
 * token as for many (make bench-soft). On a GPU many tokens share what a quad decodes; one token
 * takes the kernels made for it, of which those of four rows at once are the widest. */
const kernel *rungs_pick_matvec(const device_facts *d, const weight_format *f, bool accumulates,
                                uint32_t in_dim, uint32_t tokens, err *e) {
    static const char *const emulated[] = {"_alone", ""}, *const many[] = {"_reuse", ""},
                             *const one[] = {"_rowblock", ""};
    char format[16], name[80];
    bool is_many = d->emulated || tokens > 1;
    spell_format(f, format, sizeof format);
    snprintf(name, sizeof name, "%smatvec_%s%s", is_many ? "multi_token_" : "", format,
             accumulates ? "_accumulate" : "");
    const kernel *k = find_rung(name, d->emulated ? emulated : is_many ? many : one, 2, in_dim);
    if (!k)
        err_set(e, EXIT_CANNOT, "no kernel multiplies rows of %u weights in %s", in_dim, f->name);
    return k;
}

const kernel *rungs_pick_embedding(const weight_format *f, err *e) {
    char format[16], name[64];
    spell_format(f, format, sizeof format);
    snprintf(name, sizeof name, "embedding_lookup_%s", format);
    const kernel *k = op_find_kernel(&embedding_lookup_op, name);
    if (!k)
        err_set(e, EXIT_CANNOT, "no kernel looks up embeddings in %s", f->name);
    return k;
}

/* A whole threadgroup for a row pays where its simdgroups run side by side. */
const kernel *rungs_pick_rmsnorm(const device_facts *d, uint32_t tokens) {
    if (d->emulated)
        return find_kernel(tokens == 1 ? "rmsnorm_simdgroup" : "rmsnorm_rows_simdgroup");
    return find_kernel(tokens == 1 ? "rmsnorm_threadgroup" : "rmsnorm_rows");
}

/* Eight simdgroups for a head pay when there are many keys and simdgroups run side by side. */
const kernel *rungs_pick_decode_attention(const device_facts *d) {
    return find_kernel(d->emulated ? "decode_attention" : "decode_attention_threadgroup");
}

const kernel *rungs_pick_prefill_attention(const device_facts *d) {
    (void)d;
    return find_kernel("prefill_attention_queryblock");
}

/* Fewer launches are worth more on a GPU than the better kernel for each product. */
const kernel *rungs_pick_batched(const device_facts *d) {
    return d->emulated ? NULL : find_kernel("matvec_q4_0_batched");
}
