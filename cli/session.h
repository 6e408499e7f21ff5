/* session: a model opened for a verb: the file, the device with its kernels, and the model on it.
 */
#ifndef ASSAY_SESSION_H
#define ASSAY_SESSION_H

#include <stdio.h>

#include "runner/llama.h"

typedef struct {
    char path[512];
    gguf *file;
    device *device;
    library *lib;
    llama *model;
} session;

/* The file alone; NULL is the model that ships with the project. */
bool session_open_file(session *s, const char *path, err *e);
/* Then the device (NULL: ASSAY_DEVICE, else auto) and the model. */
bool session_open_model(session *s, const char *kind, math_mode math, const llama_options *o,
                        err *e);
void session_close(session *s);

/* Where the device's validation is on: prints what it found. False if it found anything. */
bool session_print_findings(const session *s, FILE *out);

/* "SmolLM2 135M Instruct, Q4_0": the name in the file, or the file's own, and what most weights
 * are. */
void session_get_title(const session *s, char *text, size_t size);

#endif
