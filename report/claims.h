/* claims: published numbers, and what the results of a device say about them.
 *
 * results/claims.csv has one row per claim; the number that tests it is a metric of an experiment, or
 * an error of the checked cases, rms_pct:NAME.
 * A verdict is a rule and two numbers: it holds if the measured number is as large (as small, as
 * near) as published. A number that was published for one chip is neither proved nor refuted by
 * another: such an answer is "measured on another chip", with both numbers. It agrees if it is as near as
 * the allowance; a bound ("at least 200 GB/s") that a larger chip meets is not agreement. A device that cannot
 * measure it gives no verdict, only the reason.
 *
 * A result in another unit is rejected: MiB taken for MB was one of the published mistakes. */
#pragma once

#include "store.h"

typedef enum {
    CLAIM_ABOUT,    /* within tolerance_pct of the value */
    CLAIM_AT_LEAST, /* no further below the value than the tolerance */
    CLAIM_AT_MOST,
    CLAIM_BETWEEN /* value and high, with the tolerance on both sides */
} claim_relation;

typedef enum {
    CLAIM_TIME,   /* needs a real GPU */
    CLAIM_COUNT,  /* a number of things, or an error: a software device has them as well */
    CLAIM_DERIVED /* follows from other published numbers: metric says how, nothing is measured */
} claim_kind;

/* Texts belong to the file. */
typedef struct {
    const char *id, *text, *unit, *conditions, *model, *device, *experiment, *metric;
    /* device: that the number was published for; "any GPU" for what is said of all of them. model:
     * words that the name of the measured model must contain, its weights' type among them */
    const char *obstacle; /* why no device can answer here, or "" */
    claim_relation relation;
    claim_kind kind;
    double value, high, tolerance_pct;
    double derived; /* of CLAIM_DERIVED: what the other published numbers give */
} claim;

typedef struct {
    csv_file *file;
    claim *items;
    size_t count;
} claim_list;

typedef enum {
    CLAIM_HOLDS,
    CLAIM_FAILS,
    CLAIM_ELSEWHERE,    /* measured on another chip than it was published for */
    CLAIM_UNCLEAR,      /* the spread of the measurement reaches across the allowance */
    CLAIM_CONTRADICTED, /* by other numbers of the same publications */
    CLAIM_UNKNOWN,
    CLAIM_VERDICTS
} claim_verdict;

typedef struct {
    claim_verdict verdict;
    bool has_value;
    bool agrees;       /* of CLAIM_ELSEWHERE: this chip gives the published number, too */
    double value;      /* measured here */
    const char *doubt; /* "stale", "uncommitted" or "of unknown origin"; "" for none */
    char reason[320];
} claim_answer;

/* How the claims of a folder were answered. */
typedef struct {
    size_t of[CLAIM_VERDICTS];
    size_t agree; /* among those measured on another chip */
} claim_counts;

/* Malformed files are one sentence with file and line, EXIT_USAGE. */
bool claims_read(const char *path, claim_list *out, err *e);
/* The claims of a file (NULL: results/claims.csv of the root, else those that come with Assay,
 * which say nothing about a user's project) and the results of some folders (none: all of the
 * root's, which may be empty), as verbs take them. The caller frees both, also on failure. */
bool claims_open(const char *file, const char *const *folders, size_t count, claim_list *claims,
                 store *results, err *e);
void claims_free(claim_list *l);

claim_answer claim_judge(const claim *c, const store_folder *f);

claim_counts claims_count(const claim_list *l, const store_folder *f);
/* How many claims cannot be measured for the same reason as this answer. From three on they are
 * shown as one. */
enum { CLAIMS_FOLDED = 3 };
size_t claims_count_same(const claim_list *l, const store_folder *f, const claim_answer *a);
/* "2 hold, 1 do not hold, 20 measured on another chip (3 agree), 5 cannot be measured here" */
void claim_format_counts(const claim_counts *c, char *text, size_t size);

const char *claim_get_verdict_name(claim_verdict v); /* "holds" */
/* "at least 200 GB/s", "462 to 491 tok/s" */
void claim_get_published(const claim *c, char *text, size_t size);
/* "12.3 tok/s (emulated, stale)", or "-" */
void claim_get_measured(const claim *c, const claim_answer *a, bool emulated, char *text,
                        size_t size);
