/* list: THE list of experiments, in the order in which they run: first what the others rest on. */
#include "experiment.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define EXPERIMENTS(X)                                                                             \
    X(bandwidth)                                                                                   \
    X(dispatch_overhead)                                                                           \
    X(split_dispatch)                                                                              \
    X(small_matrix)                                                                                \
    X(matvec_ladder)                                                                               \
    X(fusion)                                                                                      \
    X(batch_scaling)                                                                               \
    X(roofline)                                                                                    \
    X(op_breakdown)                                                                                \
    X(command_buffers)                                                                             \
    X(storage_modes)                                                                               \
    X(argmax_readback)                                                                             \
    X(prefill)                                                                                     \
    X(decode)                                                                                      \
    X(async_decode)

#define DECLARE(name) extern const experiment experiment_##name;
#define LIST(name) &experiment_##name,
EXPERIMENTS(DECLARE)
const experiment *const experiments[] = {EXPERIMENTS(LIST)};
const size_t experiment_count = sizeof experiments / sizeof *experiments;

const experiment *experiment_find(const char *name) {
    for (size_t i = 0; i < experiment_count; i++)
        if (strcmp(experiments[i]->name, name) == 0)
            return experiments[i];
    return NULL;
}

static void add_notes(const experiment *x, lab *l, sheet *s) {
    roof *r = NULL;
    sheet_add_note(s, "experiment", "%s", x->name);
    sheet_add_note(s, "question", "%s", x->question);
    sheet_add_note(s, "claim", "%s", x->claim);
    sheet_add_note(s, "how", "%s", x->how);
    sheet_add_note(s, "level", "%s", lab_get_level_name(lab_get_level(l)));
    if (lab_find_roof(l, &r, NULL) && r) {
        const roof_facts *f = roof_get_facts(r);
        sheet_add_note(s, "cache", "%zu bytes (%s)", f->cache_bytes, f->source);
    }
    if (x->has_model)
        sheet_add_note(s, "model", "%s", lab_get_model_name(l));
}

bool experiment_run(const experiment *x, lab *l, const char *version, const char *folder,
                    sheet **out, err *e) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s.csv", folder, x->name) >= (int)sizeof path)
        return err_set(e, EXIT_USAGE, "the path of the results folder is too long");
    results_meta meta = results_meta_new(version, lab_get_facts(l), lab_get_seed(l));
    sheet *s = sheet_new();
    bool ok = x->run(l, s, e);
    if (ok) {
        add_notes(x, l, s);
        x->conclude(s);
        ok = sheet_write(s, &meta, path, e);
    }
    if (ok && out)
        *out = s;
    else
        sheet_free(s);
    return ok;
}
