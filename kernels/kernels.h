/* kernels: how to record the launches of every op.
 *
 * An op has a .metal file (or several) of kernels that compute the same thing, and a .c file that
 * knows how to launch them. Its record function is the only place that knows their bindings and
 * geometry: the model runner, the experiments and the op's own test cases all go through it. It
 * checks sizes, appends one launch (argmax: two) with bytes, flops and oracle filled in, and
 * refuses with an error what the kernels cannot do. k is the kernel to use, one of <op>_op.kernels;
 * it must live as long as the tape.
 *
 * A `param` is a value, or a location in device memory that holds it and may change between plays.
 */
#pragma once

#include "activations.h"
#include "harness/measure/roof.h"
#include "ops.h"
#include "product/product.h"
#include "reference/quant.h"

/* For the tables of an op's file. A kernel; its group and other fields follow. */
#define OP_KERNEL(name_, variant_, about_, file_, ...)                                             \
    { .name = name_, .variant = variant_, .about = about_, .file = file_, __VA_ARGS__ }
/* An array of shapes, and the one that is checked with every input. */
#define SHAPE_LIST(shapes, ...)                                                                    \
    {                                                                                              \
        shapes, COUNT_OF(shapes), {                                                                \
            { __VA_ARGS__ }                                                                        \
        }                                                                                          \
    }
/* A list, the shape that is checked with every input, and the others. */
#define ANY_INPUT(...)                                                                             \
    {                                                                                              \
        { __VA_ARGS__ }                                                                            \
    }
#define SHAPES_OF(name, any, ...)                                                                  \
    static const shape name##_items[] = {__VA_ARGS__};                                             \
    static const shape_list name = {name##_items, COUNT_OF(name##_items), any}
/* An op of `count` kernels, or of all of an array; .build follows, and .accepts if it has one. */
#define OP_OF(name_, about_, dims_, kernels_, count, shapes_, ...)                                 \
    const op name_##_op = {.name = #name_,                                                         \
                           .source = __FILE__,                                                     \
                           .about = about_,                                                        \
                           .dims = dims_,                                                          \
                           .kernels = kernels_,                                                    \
                           .kernel_count = count,                                                  \
                           .shapes = shapes_,                                                      \
                           __VA_ARGS__}
#define OP(name_, about_, dims_, kernels_, shapes_, ...)                                           \
    OP_OF(name_, about_, dims_, kernels_, COUNT_OF(kernels_), shapes_, __VA_ARGS__)

/* result (1, u32) = index of the largest of logits (n). pvals (f32) and pidx (u32) are scratch with
 * room for argmax_count_groups(n) each. Two launches, of `reduce` and of argmax_final. */
uint32_t argmax_count_groups(uint32_t n);
bool argmax_record(tape *t, const kernel *reduce, slice logits, slice pvals, slice pidx,
                   slice result, uint32_t n, err *e);

/* dst (n float4) = src, or out = b + scalar * c, by `groups` threadgroups. */
bool bandwidth_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t n,
                           uint32_t groups, err *e);
bool bandwidth_triad_record(tape *t, const kernel *k, slice b, slice c, slice out, uint32_t n,
                            float scalar, uint32_t groups, err *e);

/* out (n float4) = the sum of four series a = a / 2 + x (n float4) after `rounds` rounds */
bool compute_fma_record(tape *t, const kernel *k, slice x, slice out, uint32_t n, uint32_t rounds,
                        err *e);

/* out (groups) = sums of what each threadgroup read of data: n float4, n half4 or n Q4_0 blocks, by
 * the format of the kernel. groups is k->groups for a kernel with a fixed number of them. */
bool bandwidth_read_record(tape *t, const kernel *k, slice data, slice out, uint32_t n,
                           uint32_t groups, err *e);

/* a (rows, dim) += b (dim), for each row */
bool bias_add_record(tape *t, const kernel *k, slice a, slice b, uint32_t rows, uint32_t dim,
                     err *e);

/* dst (count) = src (count) */
bool buffer_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t count, err *e);

/* The end of a greedy decode step: history[step % ring] = next (1, u32), and in state, which is
 * four u32, token = next, and pos, kv_len and step increase by one. The next step then needs
 * nothing from the CPU. history (ring, u32). */
enum {
    DECODE_STATE_TOKEN = 0, /* byte offsets in state */
    DECODE_STATE_POS = 4,
    DECODE_STATE_KV_LEN = 8,
    DECODE_STATE_STEP = 12,
    DECODE_STATE_BYTES = 16
};
bool decode_advance_record(tape *t, const kernel *k, slice next, slice state, slice history,
                           uint32_t ring, err *e);

/* Kernels with a format, which is F16, have caches of it; the others have floats. */
elem cache_get_elem(const kernel *k);
enum { ATTENTION_MAX_HEAD_DIM = 256 };

/* out (n_heads, head_dim) = attention of q, of the same shape, to rows 0 to kv_len - 1 of the
 * caches (rows, n_kv_heads, head_dim), each head by itself: softmax(scale * q K^T) V. The slices of
 * the caches give the number of rows; if kv_len is in device memory, bytes and flops are those of
 * all of them. n_heads is a multiple of n_kv_heads, head_dim at most 256. */
bool decode_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                             slice out, uint32_t n_heads, uint32_t n_kv_heads, uint32_t head_dim,
                             param kv_len, float scale, err *e);

/* The same for a long cache, as two launches: parts (ranges, n_heads, head_dim) and log_sums (ranges,
 * n_heads) are the attention to each of `ranges` equal ranges of keys, and out is made of them.
 * head_dim is a multiple of 32. */
typedef struct {
    slice q, k_cache, v_cache, parts, log_sums, out;
} attention_ranges_slices;
typedef struct {
    uint32_t heads, kv_heads, head_dim, ranges;
} attention_ranges_sizes;
bool attention_ranges_record(tape *t, const kernel *k, const attention_ranges_slices *a,
                             const attention_ranges_sizes *s, param kv_len, float scale, err *e);

/* counter (1, u32) += 1 */
bool dispatch_overhead_noop_record(tape *t, const kernel *k, slice counter, err *e);

/* Those above that harness/measure/roof.h measures a device with. */
extern const roof_kernels bandwidth_roof_kernels;

/* out (n, hidden) = rows ids (n, u32) of table (vocab, hidden), in the format of the kernel. The
 * table has exactly vocab rows; the row of any other id is NaN. */
bool embedding_lookup_record(tape *t, const kernel *k, slice table, slice ids, slice out,
                             uint32_t n, uint32_t hidden, uint32_t vocab, err *e);

/* out (n) = silu(gate) * up */
bool ffn_silu_record(tape *t, const kernel *k, slice gate, slice up, slice out, uint32_t n, err *e);

/* Row row_idx of k_cache and v_cache (rows, kv_dim) = k_src, v_src (kv_dim). The slices of the
 * caches give the number of rows. */
bool kv_cache_copy_record(tape *t, const kernel *k, slice k_src, slice v_src, slice k_cache,
                          slice v_cache, uint32_t kv_dim, param row_idx, err *e);

/* Rows row_idx to row_idx + n_tokens - 1 of the caches = k_src, v_src (n_tokens, kv_dim). */
bool kv_cache_copy_tokens_record(tape *t, const kernel *k, slice k_src, slice v_src, slice k_cache,
                                 slice v_cache, uint32_t n_tokens, uint32_t kv_dim, param row_idx,
                                 err *e);

/* out (n_tokens, n_heads, head_dim): as decode_attention for n_tokens queries at once; query t
 * stands at position start + t and sees rows 0 to start + t of the caches, where its own key and
 * value already are. */
bool prefill_attention_record(tape *t, const kernel *k, slice q, slice k_cache, slice v_cache,
                              slice out, uint32_t n_tokens, uint32_t n_heads, uint32_t n_kv_heads,
                              uint32_t head_dim, param start, float scale, err *e);

/* logits (vocab): those named by the first n of ids are divided by penalty if positive, multiplied
 * otherwise, each once however often it is named. Ids of vocab or more are ignored. The slice of
 * ids gives the largest n; n may change from play to play. */
bool repetition_penalty_record(tape *t, const kernel *k, slice logits, slice ids, param n,
                               uint32_t vocab, float penalty, err *e);

/* out (n) = a + b */
bool residual_add_record(tape *t, const kernel *k, slice a, slice b, slice out, uint32_t n, err *e);

/* halves (split_halves_count words) and powers (tokens) = x (tokens, columns) as matvec_split takes it, columns a
 * multiple of 256 (split_halves.metal). */
size_t split_halves_count(uint32_t tokens, uint32_t columns);
bool split_halves_record(tape *t, const kernel *k, slice x, slice halves, slice powers,
                         uint32_t tokens, uint32_t columns, err *e);

/* y (rows, dim) = x / sqrt(mean(x^2) + eps) * w (dim). Only rmsnorm_rows and rmsnorm_rows_simdgroup
 * take more than one row. */
bool rmsnorm_record(tape *t, const kernel *k, slice x, slice w, slice y, uint32_t rows,
                    uint32_t dim, float eps, err *e);

/* qk (heads, head_dim), or q (nq, head_dim) and k (nk, head_dim), turned to position pos, in place.
 * head_dim must be even. */
bool rope_apply_record(tape *t, const kernel *k, slice qk, uint32_t heads, uint32_t head_dim,
                       param pos, float theta, err *e);
bool rope_apply_dual_record(tape *t, const kernel *k, slice q_heads, slice k_heads, uint32_t nq,
                            uint32_t nk, uint32_t head_dim, param pos, float theta, err *e);

/* q (n_tokens, nq, head_dim) and k (n_tokens, nk, head_dim), in place, token t turned by (pos + t) *
 * freqs (head_dim / 2) of its pair: whatever rotary frequencies a model has. */
bool rope_apply_table_record(tape *t, const kernel *k, slice q_heads, slice k_heads,
                             uint32_t n_tokens, uint32_t nq, uint32_t nk, uint32_t head_dim,
                             param pos, slice freqs, err *e);

/* --- RWKV-7. Activations are (tokens, dim), with dim = heads * head_size. --- */

/* y (rows, dim), in place: y += x, y *= x, y = activation(y + x). x is (rows, dim), or (dim) if it
 * repeats. activation is one of activations.h. */
bool add_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                bool repeats, err *e);
bool mul_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                bool repeats, err *e);
bool add_activate_record(tape *t, const kernel *k, slice x, slice y, uint32_t rows, uint32_t dim,
                         bool repeats, uint32_t activation, err *e);

/* y (rows, dim) = x + (y - x) * f; with lerp_reversed y + (x - y) * f. f is (rows, dim), or (dim)
 * if it repeats. */
bool lerp_record(tape *t, const kernel *k, slice f, slice x, slice y, uint32_t rows, uint32_t dim,
                 bool repeats, err *e);

/* keys (rows, dim) = keys * (1 + (a - 1) * k_a); a (rows, dim), k_a (dim) */
bool control_k_v7_record(tape *t, const kernel *k, slice k_a, slice a, slice keys, uint32_t rows,
                         uint32_t dim, err *e);

/* y (rows, dim) = (x - mean) / sqrt(variance + eps) * w + b; w and b (dim) */
bool layer_norm_record(tape *t, const kernel *k, slice x, slice w, slice b, slice y, uint32_t rows,
                       uint32_t dim, float eps, err *e);

/* The same for each group of x (rows, groups, dim), in place; w and b (groups, dim) */
bool group_norm_record(tape *t, const kernel *k, slice w, slice b, slice x, uint32_t rows,
                       uint32_t groups, uint32_t dim, float eps, err *e);

/* x (rows, dim) = x / max(|x|, eps), each row by itself, in place */
bool l2_norm_record(tape *t, const kernel *k, slice x, uint32_t rows, uint32_t dim, float eps,
                    err *e);

/* out (mixes, tokens, dim) = x + (previous - x) * mu (mixes, dim), where the row before x (tokens,
 * dim) is state (dim). The state stays as it is. */
bool token_shift_record(tape *t, const kernel *k, slice x, slice state, slice mu, slice out,
                        uint32_t tokens, uint32_t dim, uint32_t mixes, err *e);

/* The layer norm n of x (tokens, dim), out (mixes, tokens, dim) = n + (previous - n) * mu (mixes, dim),
 * where the row before n is state (dim), then state = the last row of n */
bool layer_norm_shift_record(tape *t, const kernel *k, slice x, slice w, slice b, slice mu,
                             slice state, slice out, uint32_t dim, uint32_t mixes, uint32_t tokens,
                             float eps, err *e);

/* dst (rows, columns) = src, whose rows start a stride apart. Kernels by variant: "f32", "f16",
 * "f32 to f16", "f16 to f32". */
typedef struct {
    uint32_t rows, columns, src_stride, dst_stride;
} blit_shape;
bool blit_record(tape *t, const kernel *k, slice src, slice dst, const blit_shape *s, err *e);

/* packed (4, tokens, dim) = keys, v, a, kk (tokens, dim) */
bool pack_kvakk_record(tape *t, const kernel *k, slice keys, slice v, slice a, slice kk,
                       slice packed, uint32_t tokens, uint32_t dim, err *e);

/* The recurrence over all tokens, in place on state (heads, head_size, head_size), a row of which
 * belongs to a value and a column to a key: for each token
 *   S = S * w + v k^T - (S kk) (kk * a)^T,  y = S r
 * with r, w, y (tokens, dim) and k, v, a, kk in packed (4, tokens, dim). w is the decay itself
 * (ACTIVATION_DECAY of the decay channel), kk has unit length. head_size is a multiple of 4 and at
 * most 256. */
bool time_mix_v7_record(tape *t, const kernel *k, slice r, slice w, slice packed, slice state,
                        slice y, uint32_t tokens, uint32_t heads, uint32_t head_size, err *e);

/* x (tokens, dim) += (sum over the head of r_k * k * r) * v; r_k (dim), k and v in packed */
bool time_first_v7_record(tape *t, const kernel *k, slice r_k, slice r, slice packed, slice x,
                          uint32_t tokens, uint32_t heads, uint32_t head_size, err *e);

/* The vectors and weights of a time mix. r, w, k, v, a, g, v_gate and v_first (tokens, dim): k as it
 * was projected, w the decay itself, v_gate how much of v is that of the first layer; without a
 * buffer v stays as it is. The others (dim). Each launch reads only those that its comment names. */
typedef struct {
    slice r, w, k, v, a, g, v_gate, v_first;
    slice k_k, k_a, r_k, norm_w, norm_b;
} time_mix_v7_slices;

/* packed (4, tokens, dim) = k * (1 + (a - 1) * k_a), v + (v_first - v) * v_gate, a, and k * k_k
 * brought to unit length per head */
bool time_mix_v7_prepare_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice packed,
                                uint32_t tokens, uint32_t heads, uint32_t head_size, err *e);

/* y (tokens, dim), in place, = (group_norm(y) * norm_w + norm_b + (sum over the head of r * k * r_k)
 * * v) * g, with k and v of packed */
bool time_mix_v7_finish_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice packed,
                               slice y, uint32_t tokens, uint32_t heads, uint32_t head_size,
                               float eps, err *e);

/* time_mix_v7_prepare, time_mix_v7 on state and time_mix_v7_finish into y, for one token; reads all
 * of the slices */
bool time_mix_v7_token_record(tape *t, const kernel *k, const time_mix_v7_slices *s, slice state,
                              slice y, uint32_t heads, uint32_t head_size, float eps, err *e);

/* state (dim) = last row of x (tokens, dim), then x = v (tokens, dim) */
bool channel_mix_v7_record(tape *t, const kernel *k, slice state, slice v, slice x, uint32_t tokens,
                           uint32_t dim, err *e);
