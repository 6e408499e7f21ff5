/* lab_parts: what the files of the lab share. */
#pragma once

#include "lab.h"
#include "runner/choice/tuned.h"

struct lab {
    lab_options options;
    device *device;
    library *lib;
    meter *meter;
    double budget_s; /* most seconds for a case */
    tuned *tuned;    /* NULL: the device has no table */
    variants_basis variants;
    const char *family; /* of the model; NULL: any */
    /* The model, opened at first use. */
    gguf *file;
    char model_name[128];
    char scratch[512]; /* "" or the folder of a model with random weights */
    float *logits;     /* of the token at checked_position, from a checked pass */
    uint32_t checked_position;
    model_fusion checked_fusion; /* of that pass */
};

void lab_close_model(lab *l);
