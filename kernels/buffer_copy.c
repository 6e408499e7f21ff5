/* buffer_copy: how to launch it, what it should compute, and the cases it is checked with.
 *
 * The example to copy when you add an op. The file answers four questions in this order: what is
 * right (the oracle), how a launch is made (the record function), which sizes are worth checking
 * (the shapes), which kernels there are (the rows). Then add the op to kernels.h and registry.c.
 * A new kernel of an op that exists is one function in its .metal and one row in its table here. */
#include "kernels.h"

#include "harness/base/os.h"
#include "record.h"
#include "reference/reference.h"

/* The oracle sees the launch as the kernel does: io->in[i] and io->out[i] belong to [[buffer(i)]].
 * It fills the expected value of each element of each output, and says how exact they must be. A
 * copy moves bits, so the bits must agree; where there is arithmetic, an oracle fills `scale`, and
 * the tolerance is derived from it (harness/check/compare.c). */
static void buffer_copy_oracle(const launch *l, oracle_io *io) {
    (void)l;
    reference_buffer_copy(io->in[0], oracle_u32(io, 2), io->out[1].value);
    io->out[1].exact = true;
}

/* Everything that launches this op calls this: tests, experiments, models. */
bool buffer_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t count,
                        err *e) {
    size_t bytes = os_multiply(count, sizeof(float));
    if (!record_trim(k, "src", bytes, sizeof(float), &src, e) ||
        !record_trim(k, "dst", bytes, sizeof(float), &dst, e))
        return false;
    launch *l = tape_add(t, "buffer_copy.metal", k->name, e);
    if (!l)
        return false;
    launch_bind(l, 0, src, ACCESS_READ, ELEM_F32);  /* checked: is unchanged afterwards */
    launch_bind(l, 1, dst, ACCESS_WRITE, ELEM_F32); /* checked: every element is written */
    launch_set_u32(l, 2, count);
    launch_set_threads_rounded(l, count, k->group); /* the kernel guards the tail */
    l->bytes = 2 * bytes;                           /* what must move, from shape and type */
    l->oracle = buffer_copy_oracle;
    return true;
}

/* One case: buffers made for its shape and filled from its distribution, launches recorded. There
 * is a float more in src than is to be copied: copying what lies behind the end, guard to guard,
 * would change nothing and go unseen. */
static bool buffer_copy_build(kernel_case *c, err *e) {
    uint32_t count = c->shape.dim[0];
    slice src, dst;
    return case_input_f32(c, "src", (size_t)count + 1, &src, e) &&
           case_output(c, "dst", count * sizeof(float), &dst, e) &&
           buffer_copy_record(c->tape, c->kernel, src, dst, count, e);
}

/* One element, the edges of a simdgroup and of a threadgroup, the model's sizes, a large odd one.
 */
static const shape shapes[] = {
    {{1}},   {{31}},  {{32}},   {{33}},   {{255}},   {{256}},
    {{257}}, {{576}}, {{1536}}, {{4096}}, {{49152}}, {{1000003}},
};

static const kernel rows[] = {
    {.name = "buffer_copy", .about = "a thread a float", .group = 256},
};

const op buffer_copy_op = {
    .name = "buffer_copy",
    .about = "dst = src",
    .dims = "count",
    .kernels = rows,
    .kernel_count = COUNT_OF(rows),
    .shapes = shapes,
    .shape_count = COUNT_OF(shapes),
    .any_input = {{77}}, /* small and odd: also run with every input distribution */
    .build = buffer_copy_build,
};
