/* The README's ten minutes: its kernel and its steps for a new op, followed word by word. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "transcript.h"

SUITE(readme_suite);

/* Copies of kernels/ and reference/ with a new op `vector_negate`, made of buffer_copy. */
#define COPY                                                                                       \
    "rm -rf \"$T\"; mkdir -p \"$T\" && cp -R \"$H/kernels\" \"$H/reference\" \"$T\" && cd \"$T\" " \
    "&& "                                                                                          \
    "for f in kernels/buffer_copy.metal kernels/buffer_copy.c reference/buffer_copy.c; do "        \
    "sed 's/buffer_copy/vector_negate/g; s/= src\\[i\\]/= -src[i]/; s/= (double)src/= "            \
    "-(double)src/' "                                                                              \
    "$f > $(echo $f | sed s/buffer_copy/vector_negate/); done && "                                 \
    "grep -q 'dst.i. = -src.i.;' kernels/vector_negate.metal && "                                  \
    "echo 'void reference_vector_negate(const float *src, size_t count, double *dst);' > line && " \
    "sed -i.old '/^void reference_buffer_copy/r line' reference/reference.h && "                   \
    "echo 'bool vector_negate_record(tape *t, const kernel *k, slice src, slice dst, uint32_t "    \
    "count, "                                                                                      \
    "err *e);' > line && sed -i.old '/^bool buffer_copy_record/r line' kernels/kernels.h && "      \
    "sed -i.old 's/X(buffer_copy)/X(buffer_copy) X(vector_negate)/' kernels/ops.h"

/* The compiler and flags of this build, for three files; all other objects are those of the build. */
#define BUILD                                                                                      \
    "cd \"$T\" && cc=\"$(sed 's/ cc *$//' \"$B/flags\") -I$H\" && for f in kernels/vector_negate " \
    "reference/vector_negate kernels/registry; do $cc -Werror -c -o $f.o $f.c || exit 9; done && " \
    "others=$(cd \"$B/obj\" && find . -name '*.o' ! -path './tests/*' ! -name registry.o | "       \
    "while read o; do test ! -f \"$H/${o%.o}.c\" || echo \"$B/obj/$o\"; done) && "                 \
    "others=\"$others $B/obj/sources.o\" && "                                                      \
    "$cc -rdynamic -Wl,--no-as-needed -o assay */*.o $others -lm -lpthread -ldl 2>&1"

TEST the_steps_for_a_new_op_compile_and_check(void) {
    char path[1024];
    err e;
    ASSERT(os_find_self(path, sizeof path, &e));
    *strrchr(path, '/') = 0;
    ASSERT_EQ(0, setenv("B", path, 1));
    if (command_run("test \"$(uname)\" = Linux && test -z \"$ASSAY_DEVICE\" && grep -q ' cc *$' "
                    "\"$B/flags\"") != 0)
        SKIPm("this build is not linked in the plain way");
    ASSERT_RUN(COPY, 0);
    ASSERT_RUN(BUILD, 0);
    ASSERT_RUN(
        "cd \"$T\" && ASSAY_HOME=\"$H\" ASSAY_KERNELS=\"$T/kernels\" ./assay check --device soft "
        "'vector_negate/3[123]/normal' 'vector_negate/77/*'",
        0);
    ASSERT_SAYS(" passed, 0 failed");
    ASSERT_RUN("cd \"$T\" && sed -i.old 's/= -src/= src/' kernels/vector_negate.metal && "
               "ASSAY_HOME=\"$H\" ASSAY_KERNELS=\"$T/kernels\" ./assay check --device soft "
               "vector_negate/33/normal",
               1);
    ASSERT_RUN("rm -rf \"$T\"", 0);
    PASS();
}

SUITE(readme_suite) {
    RUN_TEST(the_steps_for_a_new_op_compile_and_check);
    transcript_run("readme");
}
