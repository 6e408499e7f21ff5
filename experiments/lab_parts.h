/* lab_parts: what the files of the lab share, and nobody else sees. */
#ifndef ASSAY_LAB_PARTS_H
#define ASSAY_LAB_PARTS_H

#include "lab.h"

enum { LAB_SIZES = 40 };

struct lab {
    lab_options options;
    device *device;
    library *lib;
    roof *roof;
    /* Windows by cache state and by the size of the working set, as a power of 2. */
    struct {
        roof_window window;
        uint64_t at_ns; /* 0: not measured */
    } windows[TIMING_CACHES][LAB_SIZES];
    /* The model, opened at first use. */
    gguf *file;
    char model_name[128];
    char scratch[512]; /* "" or the folder of a model that was made up */
    float *logits;     /* of the token at checked_position, from a pass that was checked */
    uint32_t checked_position;
};

void lab_close_model(lab *l);

#endif
