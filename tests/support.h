/* support: what the suites that run kernels share: the device (the software device, or what
 * ASSAY_DEVICE names), the kernels of tests/kernels, and simple buffers. */
#ifndef ASSAY_TESTS_SUPPORT_H
#define ASSAY_TESTS_SUPPORT_H

#include "harness/device/tape.h"

const char *support_get_device_name(void);
/* Opened at first use and kept; NULL with a message on stderr where there is none. */
device *support_get_device(void);
bool support_is_emulated(void); /* a CPU runs the kernels */
bool support_is_double(void);   /* it is the double of Metal, by its name */
/* Is it Metal on a Mac? What its GPU makes of kernels that crash, hang or leave memory as it was is
 * not known: such tests run on the double and on other devices. */
bool support_is_mac(void);
#define SKIP_ON_MAC()                                                                              \
    do {                                                                                           \
        if (support_is_mac())                                                                      \
            SKIPm("only Metal's double answers like this, not every Mac");                         \
    } while (0)
/* From here to support_close, another software device is that of the suites: with these options
 * (NULL: none), opened with these variables, "A=1 B=2". Again: yet another. */
bool support_open(const device_options *options, const char *variables);
void support_close(void);
library *support_get_library(void);
/* The kernels of the launches after this are compiled with another math mode. */
void support_set_math(math_mode math);

/* A path below the project's root. */
const char *support_get_path(const char *relative);

/* A shared buffer holding a copy of data (or poison when data is NULL), freed by support_end. */
slice support_buffer(const void *data, size_t bytes);
slice support_private_buffer(const void *data, size_t bytes);

/* What the buffer of a slice made here holds, as a copy that stands until the next of the same
 * buffer; and bytes put into it. Both work where CPU and GPU share no memory. */
const void *support_read(slice at);
void support_write(slice at, const void *data, size_t bytes);

/* A fresh tape with one launch of a kernel of tests/kernels, freed by support_end. NULL if the
 * kernel does not compile; support_get_error says why. */
launch *support_launch(const char *file, const char *kernel);
launch *support_launch_specialised(const char *file, const char *kernel,
                                   const constant_value *constants, size_t count);
tape *support_get_tape(void);

/* What a kernel is given, from buffer 0 on. */
typedef struct {
    slice at;
    access_mode access; /* ACCESS_NONE: the number is given */
    elem type;
    uint32_t number;
} support_argument;
#define READS(at, type)                                                                            \
    { at, ACCESS_READ, type, 0 }
#define WRITES(at, type)                                                                           \
    { at, ACCESS_WRITE, type, 0 }
#define UPDATES(at, type)                                                                          \
    { at, ACCESS_BOTH, type, 0 }
#define NUMBER(value)                                                                              \
    { {.bytes = 0}, ACCESS_NONE, ELEM_U32, value }
/* Plays a kernel of tests/kernels with `threads` threads, `group` of them in a threadgroup. */
bool support_run_with(const char *file, const char *kernel, size3 threads, size3 group,
                      const support_argument *arguments, size_t count);
#define support_run(file, kernel, threads, group, ...)                                             \
    support_run_with(file, kernel, threads, group, (const support_argument[]){__VA_ARGS__},        \
                     sizeof((const support_argument[]){__VA_ARGS__}) / sizeof(support_argument))
#define ASSERT_PLAYS(...) ASSERTm(support_get_error()->text, support_run(__VA_ARGS__))

/* The root mean square of the differences over that of b's values; infinite for what is not finite. */
double support_get_distance(const float *a, const float *b, size_t count);

bool support_play(void); /* the tape, whole */
const err *support_get_error(void);

/* Frees buffers and tape. Call at the end of each test, or SET_TEARDOWN(support_end_test, NULL) in the suite. */
void support_end(void);
void support_end_test(void *unused);

#endif
