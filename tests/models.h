/* models: small models for tests, and what is opened and allocated around them. All of that is freed after
 * each test. */
#ifndef ASSAY_TESTS_MODELS_H
#define ASSAY_TESTS_MODELS_H

#include "runner/gguf/gguf.h"
#include "runner/model/model.h"

#define ASSERT_OK(condition) ASSERTm(e.text, condition)

/* At the start of a suite: the project's own kernels on the tests' device, and a folder; and at its end. */
bool models_begin(err *e);
void models_end(void);
library *models_get_library(void);
const char *models_get_path(const char *name); /* in the folder; good until the next */

/* A model of random weights. The same again in the same test is the same file. */
gguf *models_make(const char *size, const char *type, uint64_t seed, err *e);
gguf *models_keep(gguf *g);
/* NULL where there is no file. */
model *models_open(const gguf *g, const model_options *o, err *e);
float *models_new_logits(const model *m);

#endif
