/* Kernels of the registry against their oracles: the list is the registry, nothing is named here.
 * A case with more elements than a test has time for is left to `assay check`. */
#include <greatest.h>
#include <stdio.h>
#include <string.h>

#include "cli/cases.h"
#include "harness/check/check.h"
#include "kernels/kernels.h"
#include "support.h"

SUITE_EXTERN(kernels_suite);

static const double most_elements = 1e6;

static library *project_kernels;

static bool is_small(const shape *s) {
    double elements = 1;
    for (int i = 0; i < SHAPE_DIMS; i++)
        elements *= s->dim[i] ? s->dim[i] : 1;
    return elements <= most_elements;
}

TEST kernel_agrees_with_its_oracle_in_every_case(const char *name) {
    static char text[800];
    err e;
    if (!project_kernels && support_get_device())
        project_kernels = library_new(support_get_device(), NULL, &e);
    ASSERT(project_kernels);
    const device_facts *d = device_get_facts(support_get_device());
    const kernel *k = registry_find_kernel(name, NULL);
    if (!device_offers(d, k->needs, &e))
        SKIPm(e.text);
    case_query query = {.filters = &name, .filter_count = 1};
    case_list cases;
    ASSERT(cases_find(&query, &cases, &e));
    size_t ran = 0;
    for (size_t i = 0; i < cases.count; i++) {
        const kernel_case *c = &cases.items[i];
        check_result r;
        if (strcmp(c->kernel->name, name) != 0 || !is_small(&c->shape))
            continue;
        ran++;
        bool made = check_case(project_kernels, c, NULL, 1, &r, &e);
        if (made && r.verdict == CHECK_PASS)
            continue;
        snprintf(text, sizeof text, "%s: %s", c->name, made ? r.message : e.text);
        cases_free(&cases);
        FAILm(text);
    }
    cases_free(&cases);
    ASSERT(ran > 0);
    PASS();
}

/* Is it the template of an earlier kernel in another format? */
static bool is_repeated(const op *o, const kernel *k) {
    for (const kernel *first = o->kernels; first < k; first++)
        if (first->format != k->format && first->variant && k->variant &&
            strcmp(first->variant, k->variant) == 0 && !first->tokens == !k->tokens)
            return true;
    return false;
}

/* A kernel that adds to its output is the template of one that does not; and on the software device every
 * second variant is tested, in one format: run_all.sh compiles and checks all of them there. */
SUITE(kernels_suite) {
    const device *d = support_get_device();
    bool has_all = !d || device_get_facts(d)->kind != DEVICE_SOFT;
    size_t count = 0;
    for (size_t i = 0; i < registry_count; i++)
        for (size_t k = 0; k < registry[i]->kernel_count; k++) {
            const kernel *one = &registry[i]->kernels[k];
            if (!one->accumulates &&
                (has_all || (!is_repeated(registry[i], one) && count++ % 2 == 0)))
                RUN_TESTp(kernel_agrees_with_its_oracle_in_every_case, one->name);
        }
    library_free(project_kernels);
}
