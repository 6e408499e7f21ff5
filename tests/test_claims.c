/* The published claims; transcripts/claims.txt has how claims are judged. */
#include <greatest.h>
#include <math.h>
#include <string.h>

#include "experiments/experiment.h"
#include "report/claims.h"
#include "support.h"
#include "transcript.h"

SUITE(claims_suite);

static err e;
static claim_list claims;

TEST the_published_claims_can_be_read_and_have_names_of_their_own(void) {
    ASSERTm(e.text, claims_read(support_get_path("results/claims.csv"), &claims, &e));
    ASSERT(claims.count >= 20);
    for (size_t i = 0; i < claims.count; i++) {
        const claim *c = &claims.items[i];
        ASSERTm(c->id, c->id[0] && c->text[0] && c->device[0] && c->experiment[0] && c->metric[0]);
        ASSERTm(c->id, isfinite(c->value) && c->tolerance_pct >= 0);
        ASSERTm(c->id, experiment_find(c->experiment) || strcmp(c->experiment, "check") == 0);
        /* A time of a chip is never held against another chip. */
        ASSERTm(c->id, c->kind != CLAIM_TIME || strcmp(c->device, "Apple M4") == 0);
        for (size_t k = 0; k < i; k++)
            ASSERTm(c->id, strcmp(c->id, claims.items[k].id) != 0);
    }
    claims_free(&claims);
    PASS();
}

SUITE(claims_suite) {
    RUN_TEST(the_published_claims_can_be_read_and_have_names_of_their_own);
    transcript_run("claims");
}
