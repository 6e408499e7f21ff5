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

static const kernel_row *find_kernel(const char *name) {
    const kernel_row *k = registry_find_kernel(name, NULL);
    assert(k);
    return k;
}

/* On the software device the kernel that shares a decoded weight among tokens also wins for one
 * token: a quad a row keeps its lanes busier than a simdgroup a row (make bench-soft). A GPU hides
 * latency with more simdgroups, so one token takes the kernels made for it there. */
const kernel_row *rungs_pick_matvec(const device_facts *d, const weight_format *f, bool accumulates,
                                    uint32_t in_dim, uint32_t tokens, err *e) {
    char format[16], name[96];
    const char *tail = accumulates ? "_accumulate" : "";
    spell_format(f, format, sizeof format);
    snprintf(name, sizeof name, "multi_token_matvec_%s%s_reuse", format, tail);
    const kernel_row *reuse = registry_find_kernel(name, NULL);
    if (!reuse) {
        err_set(e, EXIT_CANNOT, "no kernel multiplies with weights in %s", f->name);
        return NULL;
    }
    bool takes = reuse->min_dim == 0 || in_dim % reuse->min_dim == 0;
    if (takes && (d->emulated || tokens > 1))
        return reuse;
    if (f == &format_q4_0 && tokens == 1)
        return find_kernel(accumulates ? "matvec_q4_0_accumulate_rowblock"
                                       : "matvec_q4_0_rowblock");
    snprintf(name, sizeof name, "%smatvec_%s%s", tokens > 1 ? "multi_token_" : "", format, tail);
    return find_kernel(name);
}

const kernel_row *rungs_pick_embedding(const weight_format *f, err *e) {
    char format[16], name[64];
    spell_format(f, format, sizeof format);
    snprintf(name, sizeof name, "embedding_lookup_%s", format);
    const kernel_row *k = op_find_kernel(&embedding_lookup_op, name);
    if (!k)
        err_set(e, EXIT_CANNOT, "no kernel looks up embeddings in %s", f->name);
    return k;
}

const kernel_row *rungs_pick_rmsnorm(uint32_t tokens) {
    return find_kernel(tokens == 1 ? "rmsnorm_threadgroup" : "rmsnorm_rows");
}

/* Eight simdgroups for a head pay when there are many keys and simdgroups run side by side. */
const kernel_row *rungs_pick_decode_attention(const device_facts *d) {
    return find_kernel(d->emulated ? "decode_attention" : "decode_attention_threadgroup");
}

const kernel_row *rungs_pick_prefill_attention(const device_facts *d) {
    (void)d;
    return find_kernel("prefill_attention_queryblock");
}

/* Fewer launches are worth more on a GPU than the better kernel for each product. */
const kernel_row *rungs_pick_batched(const device_facts *d) {
    return d->emulated ? NULL : find_kernel("matvec_q4_0_batched");
}
