/* memory: the memory of the Metal device on the double: what is taken in place, what is copied,
 * what does not fit, and that nothing is left after many plays. */
#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/os.h"
#include "harness/device/metal/metal.h"
#include "runner/gguf/gguf.h"
#include "tests/metal_double/double.h"
#include "tests/metal_double/test/bench.h"

SUITE_EXTERN(memory_suite);

TEST memory_of_the_caller_counts_as_allocated(void) {
    SET_UP(1);
    id<MTLDevice> gpu = metal_get(b.device)->device;
    NSUInteger before = [gpu currentAllocatedSize];
    char *mapped = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANON, -1, 0);
    buffer *place = device_wrap_memory(b.device, mapped, 1 << 20, "weights", &b.e);
    ASSERT(place && place->contents == mapped);
    ASSERT_EQ_FMT((unsigned long)before + (1 << 20), (unsigned long)[gpu currentAllocatedSize],
                  "%lu");
    buffer_free(place);
    munmap(mapped, 1 << 20);
    PASS();
}

/* Pages of a file are taken in place if they are shared, as those of models are. */
TEST weights_of_a_model_are_not_copied(void) {
    char path[1024], home[900];
    SET_UP(1);
    ASSERT(os_find_home(home, sizeof home, &b.e));
    snprintf(path, sizeof path, "%s/models/assay-tiny.gguf", home);
    gguf *file = gguf_open(path, &b.e);
    ASSERTm(b.e.text, file);
    buffer *place = device_wrap_memory(b.device, file->map, file->bytes, "weights", &b.e);
    ASSERT(place && place->contents == (void *)(uintptr_t)file->map);
    buffer_free(place);
    gguf_free(file);
    PASS();
}

TEST memory_that_metal_does_not_take_in_place_is_copied(const char *fault) {
    setenv("METAL_DOUBLE", fault, 1);
    SET_UP(1);
    char *mapped = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    ASSERT(mapped != MAP_FAILED);
    memcpy(mapped + 100, "some weights", 12);
    buffer *copy = device_wrap_memory(b.device, mapped + 100, 12, "weights", &b.e);
    ASSERTm(b.e.text, copy);
    char got[12];
    ASSERT(copy->contents != mapped + 100);
    ASSERT(buffer_download(copy, 0, got, 12, &b.e));
    ASSERT_MEM_EQ("some weights", got, 12);
    unsetenv("METAL_DOUBLE");
    buffer *place = device_wrap_memory(b.device, mapped + 100, 12, "weights", &b.e);
    ASSERT(place && place->contents == mapped + 100 && place->base == 100);
    ASSERT(buffer_download(place, 5, got, 7, &b.e));
    ASSERT_MEM_EQ("weights", got, 7);
    buffer_free(copy);
    buffer_free(place);
    munmap(mapped, 16384);
    PASS();
}

TEST private_memory_is_copied_at_any_byte(void) {
    SET_UP(1);
    enum { BYTES = (9 << 20) + 3 };
    char *in = malloc(BYTES), *out = malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        in[i] = (char)(i * 31 + i / 251);
    buffer *p = device_new_buffer(b.device, BYTES, STORAGE_PRIVATE, "private", &b.e);
    ASSERTm(b.e.text, p);
    ASSERT(buffer_upload(p, 0, in, BYTES, &b.e));
    for (size_t at = 0; at < 9; at++) {
        memset(in + 1000 + at, (int)at, 13);
        ASSERT(buffer_upload(p, 1000 + at, in + 1000 + at, 13, &b.e));
    }
    ASSERT(buffer_download(p, 0, out, BYTES, &b.e));
    ASSERT_MEM_EQ(in, out, BYTES);
    ASSERT(buffer_download(p, 7, out, BYTES - 7, &b.e));
    ASSERT_MEM_EQ(in + 7, out, BYTES - 7);
    ptrdiff_t outside;
    ASSERT(buffer_check_guards(p, &outside, &b.e));
    buffer_free(p);
    free(in);
    free(out);
    PASS();
}

TEST a_buffer_that_does_not_fit_is_refused_with_its_numbers(void) {
    setenv("METAL_DOUBLE", "no-room", 1);
    SET_UP(1);
    ASSERT_EQ(NULL, device_new_buffer(b.device, 3 << 20, STORAGE_PRIVATE, "kv", &b.e));
    ASSERT_EQ(EXIT_CANNOT, b.e.code);
    ASSERTm(b.e.text, strstr(b.e.text, "'kv'") && strstr(b.e.text, "does not fit"));
    unsetenv("METAL_DOUBLE");
    ASSERT_EQ(NULL, device_new_buffer(b.device, (size_t)1 << 50, STORAGE_SHARED, "all", &b.e));
    ASSERTm(b.e.text, strstr(b.e.text, "per buffer"));
    PASS();
}

static long count_kilobytes(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*s %ld", &pages) != 1)
        pages = 0;
    if (f)
        fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST ten_thousand_plays_leave_nothing_behind(void) {
    enum { PLAYS = 10000 };
    SET_UP(2);
    size_t objects = 0;
    long kilobytes = 0;
    for (int i = 0; i < PLAYS; i++) {
        ticket k[3];
        for (int n = 0; n < 3; n++)
            ASSERT(device_submit(b.device, b.tape, 0, 2, &k[n], &b.e));
        for (int n = 0; n < 3; n++)
            ASSERT(device_wait(b.device, &k[n], NULL, &b.e));
        if (i == PLAYS / 10) {
            objects = double_count_objects();
            kilobytes = count_kilobytes();
        }
    }
    ASSERT_EQ_FMT(objects, double_count_objects(), "%zu");
    printf("resident: %ld KB after %d plays, %ld KB after %d\n", kilobytes, PLAYS / 10,
           count_kilobytes(), PLAYS);
#if !__has_feature(address_sanitizer) /* which keeps what is freed */
    ASSERT(count_kilobytes() <= kilobytes + 512);
#endif
    ASSERT_EQ((float)PLAYS * 6, ((float *)b.x->contents)[0]);
    bench_tear_down(NULL);
    ASSERT_EQ_FMT((size_t)0, double_count_objects(), "%zu");
    PASS();
}

SUITE(memory_suite) {
    SET_TEARDOWN(bench_tear_down, NULL);
    RUN_TESTp(memory_that_metal_does_not_take_in_place_is_copied, "no-copy");
    RUN_TESTp(memory_that_metal_does_not_take_in_place_is_copied, "empty-no-copy");
    RUN_TEST(memory_of_the_caller_counts_as_allocated);
    RUN_TEST(weights_of_a_model_are_not_copied);
    RUN_TEST(private_memory_is_copied_at_any_byte);
    RUN_TEST(a_buffer_that_does_not_fit_is_refused_with_its_numbers);
    RUN_TEST(ten_thousand_plays_leave_nothing_behind);
}
