/* buffer_copy: how to launch it, what it should compute, and the cases it is checked with.
 *
 * The example to copy when you add an op. The file answers four questions in this order: what is
 * the right result (the oracle), how is it launched (the record function), which sizes are worth
 * checking (the shapes), which kernels are there (the table). Then add a line to ops.h and the record
 * function to kernels.h. A new kernel of an existing op is one function in its .metal and one row in its
 * table here. */
#include "kernels.h"

#include "record.h"
#include "reference/reference.h"

/* The oracle sees the launch as the kernel does: io->in[i] and io->out[i] belong to [[buffer(i)]].
 * It fills in the expected value of each element of each output and how exact it must be. A
 * copy moves bits, so the bits must agree; where there is arithmetic, an oracle fills `scale`, and
 * the tolerance is derived from it (harness/check/compare.c). */
static void buffer_copy_oracle(const launch *l, oracle_io *io) {
    (void)l;
    reference_buffer_copy(io->in[0], oracle_u32(io, 2), io->out[1].value);
    io->out[1].exact = true;
}

/* Everything that launches this op calls this function: tests, experiments, models. */
bool buffer_copy_record(tape *t, const kernel *k, slice src, slice dst, uint32_t count, err *e) {
    const launch_work w = {.threads = count, .oracle = buffer_copy_oracle};
    /* The arguments are [[buffer(0)]] to [[buffer(2)]]. What goes in is unchanged afterwards, and every
     * element of what comes out is written: both are checked. e says what does not fit, or why the kernel
     * does not compile. */
    return RECORD_ARGS(t, k, &w, e, ARG_IN("src", src, count), ARG_OUT("dst", dst, count),
                       ARG_U32(count));
}

/* One case: buffers made for its shape and filled from its distribution, launches recorded. src has
 * one float more than is copied: copying past the end, from guard zone to guard zone, would change
 * nothing and go unseen. */
static bool buffer_copy_build(kernel_case *c, err *e) {
    uint32_t count = c->shape.dim[0];
    slice src, dst;
    return case_input_f32(c, "src", (size_t)count + 1, &src, e) &&
           case_output(c, "dst", count * sizeof(float), &dst, e) &&
           buffer_copy_record(c->tape, c->kernel, src, dst, count, e);
}

/* One element, the edges of a simdgroup and of a threadgroup, the model's sizes, a large odd one. */
static const shape shapes[] = {
    {{1}}, {{31}}, {{32}}, {{33}}, {{576}}, {{1536}}, {{4096}}, {{49152}}, {{65537}}, {{1000003}},
};

static const kernel kernels[] = {
    OP_KERNEL("buffer_copy", NULL, "one thread per float", "buffer_copy.metal", .group = 256),
};

/* 77 is small and odd: that case is also run with every input distribution. */
OP(buffer_copy, "dst = src", "count", kernels, SHAPE_LIST(shapes, 77), .copies = true,
   .sizes = "count", .build = buffer_copy_build);
