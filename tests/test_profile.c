/* The counting device computes what others do; transcripts/profile.txt has the tests of `assay profile`. */
#include <greatest.h>

#include "harness/check/check.h"
#include "kernels/ops.h"
#include "transcript.h"

SUITE(profile_suite);

/* They are multiplied in the places of an NVIDIA GPU, by way of other code than elsewhere. */
static bool passes_counted(const char *name, const shape *s) {
    err e;
    const op *o = NULL;
    const kernel *k = registry_find_kernel(name, &o);
    device *d = device_open_with("soft", &(device_options){.counts = 1}, &e);
    library *lib = d ? library_new(d, NULL, &e) : NULL;
    check_result result = {.verdict = CHECK_FAIL};
    bool ok = lib && k;
    if (ok) {
        kernel_case c = case_new(o, k, s, INPUT_NORMAL);
        ok = check_case(lib, &c, NULL, 1, &result, &e) && result.verdict == CHECK_PASS;
    }
    library_free(lib);
    device_close(d);
    return ok;
}

TEST matrices_are_multiplied_in_the_places_of_an_nvidia_gpu(void) {
    const shape small = {{63, 36, 64}}, few = {{40, 576, 7}}, stream = {{33, 1088, 9}};
    ASSERT(passes_counted("multi_token_matvec_f16_matrix", &small));
    ASSERT(passes_counted("multi_token_matvec_q4_0_tiled_skinny", &few));
    ASSERT(passes_counted("multi_token_matvec_q4_0_tiled_stream", &stream));
    PASS();
}

SUITE(profile_suite) {
    RUN_TEST(matrices_are_multiplied_in_the_places_of_an_nvidia_gpu);
    transcript_run("profile");
}
