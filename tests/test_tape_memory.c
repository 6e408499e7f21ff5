/* Buffers: private ones, memory of the caller, mapped files, and large ones that take memory when they are
 * used. */
#include <greatest.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness/base/map_guard.h"
#include "harness/base/os.h"
#include "support.h"

SUITE_EXTERN(tape_memory_suite);

enum { N = 100 };

TEST private_buffers_have_no_contents_and_are_copied(void) {
    device *d = support_get_device();
    ASSERT(d);
    err e;
    buffer *b = device_new_buffer(d, 1000, STORAGE_PRIVATE, "private", &e);
    ASSERT(b);
    ASSERT_EQ(NULL, b->contents);
    char in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = (char)(i * 7);
    ASSERT(buffer_upload(b, 0, in, sizeof in, &e));
    ASSERT(buffer_download(b, 0, out, sizeof out, &e));
    ASSERT_MEM_EQ(in, out, sizeof in);
    ASSERT_FALSE(buffer_download(b, 1, out, sizeof out, &e));
    ASSERT(strstr(e.text, "private"));
    buffer_free(b);
    PASS();
}

/* A launch that adds the float at the start of `step` to zeros. */
static bool play_step(buffer *step, float *sum) {
    const float zeros[N] = {0};
    slice x = support_buffer(zeros, sizeof zeros);
    launch *l = support_launch("tape.metal", "advance");
    if (!l)
        return false;
    launch_bind(l, 0, x, ACCESS_BOTH, ELEM_F32);
    launch_set_f32(l, 1, 1);
    launch_bind(l, 2, slice_part(step, 0, 4), ACCESS_READ, ELEM_F32);
    launch_set_u32(l, 3, N);
    launch_set_threads_rounded(l, N, 32);
    bool ok = support_play();
    *sum = ((const float *)support_read(x))[7];
    support_end();
    return ok;
}

TEST memory_of_the_caller_is_used_in_place_and_never_written(void) {
    device *d = support_get_device();
    ASSERT(d);
    float *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    ASSERT(mapped != MAP_FAILED);
    err e;
    buffer *b = device_wrap_memory(d, mapped + 3, 400, "mapped", &e);
    ASSERT(b);
    mapped[3] = 42;
    mprotect(mapped, 4096, PROT_READ);
    float sum = 0;
    ASSERTm(support_get_error()->text, play_step(b, &sum));
    ASSERT_EQ(42.0f, sum);
    ASSERT_FALSE(buffer_upload(b, 0, &sum, 4, &e));
    buffer_free(b);
    munmap(mapped, 4096);
    PASS();
}

/* As weights are: two buffers in one map, which is let go with the second. What is written to the file
 * is seen because both sides have its pages. */
TEST a_mapped_file_is_shared_with_the_software_device(void) {
    enum { BYTES = 1 << 20, OFFSET = 70000 };
    device *d = support_get_device();
    if (!d || strcmp(device_get_facts(d)->api, "soft") != 0)
        SKIPm("the device copies it");
    err e;
    float sum = 0;
    int file = os_open_unnamed();
    ASSERT(file >= 0 && ftruncate(file, BYTES) == 0);
    for (int round = 0; round < 2; round++) {
        char *map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
        ASSERT(map != MAP_FAILED);
        map_guard_add(map, BYTES, "weights", file);
        buffer *first = device_wrap_memory(d, map + OFFSET, BYTES - OFFSET, "first", &e);
        buffer *second = device_wrap_memory(d, map, OFFSET, "second", &e);
        ASSERT(first && second && !first->is_copy && !second->is_copy);
        float value = 11.0f + (float)round;
        ASSERT(pwrite(file, &value, 4, OFFSET) == 4);
        buffer_free(second);
        ASSERTm(support_get_error()->text, play_step(first, &sum));
        ASSERT_EQ_FMT((double)value, (double)sum, "%g");
        buffer_free(first);
        map_guard_remove(map);
        munmap(map, BYTES);
    }
    close(file);
    PASS();
}

/* Again and again, in the memory that was freed. */
TEST a_large_buffer_reads_as_nan_until_it_is_written(storage_mode storage) {
    enum { WORDS = 3 << 20, AT = (1 << 20) + 77, MANY = 700000 };
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only the software device promises it");
    device *d = support_get_device();
    ASSERT(d);
    err e;
    float sum = 0, *many = calloc(MANY, sizeof *many);
    for (int round = 0; round < 3; round++) {
        buffer *b = device_new_buffer(d, 4 * (size_t)WORDS, storage, "large", &e);
        ASSERT(b && many);
        ASSERT(play_step(b, &sum));
        ASSERT(isnan(sum));
        ASSERT(buffer_download(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        for (size_t i = 0; i < MANY; i++)
            ASSERT(isnan(many[i]));
        for (size_t i = 0; i < MANY; i++)
            many[i] = (float)i;
        ASSERT(buffer_upload(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        ASSERT(buffer_upload(b, 0, &(float){7}, 4, &e));
        memset(many, 0, 4 * MANY);
        ASSERT(buffer_download(b, 4 * (size_t)AT, many, 4 * MANY, &e));
        for (size_t i = 0; i < MANY; i++)
            ASSERT_EQ((float)i, many[i]);
        ASSERT(play_step(b, &sum));
        ASSERT_EQ(7.0f, sum);
        ASSERT(buffer_fill_pattern(b, 0, b->bytes, 0, &e));
        ASSERT(buffer_download(b, b->bytes - 4, &sum, 4, &e) && sum == 0);
        ASSERT(buffer_check_guards(b, &(ptrdiff_t){0}, &e));
        buffer_free(b);
    }
    free(many);
    PASS();
}

static size_t count_pages_of(const char *process) {
    char path[64];
    size_t pages = 0;
    snprintf(path, sizeof path, "/proc/%s/statm", process);
    char *text = os_read_file(path, NULL, NULL);
    if (!text || sscanf(text, "%*u %zu", &pages) != 1)
        pages = 0;
    free(text);
    return pages;
}

/* Pages that this process and those that it started have in memory; 0 where the system does not say. */
static size_t count_pages(void) {
    size_t pages = count_pages_of("self");
    char *text = os_read_file("/proc/thread-self/children", NULL, NULL);
    for (char *one = text ? strtok(text, " ") : NULL; one; one = strtok(NULL, " "))
        pages += count_pages_of(one);
    free(text);
    return pages;
}

TEST a_large_buffer_of_the_device_alone_takes_memory_when_it_is_used(void) {
    enum { MEGABYTE = 1 << 20 };
    if (strcmp(support_get_device_name(), "soft") != 0)
        SKIPm("only the software device promises it");
    err last;
    device *d = support_get_device();
    ASSERT(d);
    const size_t before = count_pages(), bytes = (size_t)203 * MEGABYTE + 6;
    buffer *large = device_new_buffer(d, bytes, STORAGE_PRIVATE, "large", &last);
    ASSERT(large);
    uint16_t words[3] = {7, 8, 9};
    ASSERT(buffer_download(large, bytes - 6, words, 6, &last) && words[2] == POISON_PATTERN);
    ASSERT(buffer_upload(large, 2468, &(uint16_t){7}, 2, &last));
    ASSERT(buffer_download(large, 2466, words, 6, &last));
    ASSERT(words[0] == POISON_PATTERN && words[1] == 7 && words[2] == POISON_PATTERN);
    ASSERT(before == 0 || (count_pages() - before) * 4096 < (size_t)8 * MEGABYTE);
    buffer_free(large);
    PASS();
}

SUITE(tape_memory_suite) {
    RUN_TEST(a_large_buffer_of_the_device_alone_takes_memory_when_it_is_used);
    RUN_TEST(private_buffers_have_no_contents_and_are_copied);
    RUN_TEST(memory_of_the_caller_is_used_in_place_and_never_written);
    RUN_TEST(a_mapped_file_is_shared_with_the_software_device);
    RUN_TESTp(a_large_buffer_reads_as_nan_until_it_is_written, STORAGE_PRIVATE);
    RUN_TESTp(a_large_buffer_reads_as_nan_until_it_is_written, STORAGE_SHARED);
}
