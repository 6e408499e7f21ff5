/* suite_options: what `check` and `validate` take on the command line. */
#pragma once

#include "cases.h"
#include "harness/check/suite.h"
#include "options.h"

typedef struct {
    suite run;
    const char *csv, *shapes, *extra, *input;
    axes_query axes;
    bool quick, skipped, quiet, verbose, ops, worker;
    bool json;
    const char *junit;
} suite_settings;

/* Options that both verbs have, for their tables. */
/* clang-format off */
#define HELD_OUT_OPTION(value) \
    {"shapes", OPTION_TEXT, value, "random:N", "also N shapes per kernel, drawn from the seed, that its op does not list", 0, 0}
#define SUITE_OPTIONS(settings) \
    RANDOM_SEED_OPTION(&(settings).run.seed, "the inputs"), \
    {"shape", OPTION_TEXT, &(settings).shapes, "S,...", "only cases of these shapes, such as 3x576", 0, 0}, \
    HELD_OUT_OPTION(&(settings).extra), \
    AXES_OPTIONS((settings).axes), \
    {"input", OPTION_TEXT, &(settings).input, "D", \
     "only this input: normal, zeros, denormals, large, negative", 0, 0}, \
    {"quick", OPTION_FLAG, &(settings).quick, NULL, \
     "only the edge shapes of each kernel, and one shape with every input", 0, 0}, \
    {"skipped", OPTION_FLAG, &(settings).skipped, NULL, \
     "also list the cases that are skipped, and why", 0, 0}, \
    {"v|verbose", OPTION_FLAG, &(settings).verbose, NULL, "a row per case instead of a line per kernel", 0, 0}, \
    {"ops", OPTION_FLAG, &(settings).ops, NULL, "a line per op instead of a line per kernel", 0, 0}, \
    {"q|quiet", OPTION_FLAG, &(settings).quiet, NULL, "only the failures and the counts", 0, 0}, \
    {"json", OPTION_FLAG, &(settings).json, NULL, \
     "print one JSON object instead of the table", 0, 0}, \
    {"junit", OPTION_TEXT, &(settings).junit, "FILE.xml", \
     "also write the cases as JUnit XML", 0, 0}, \
    DEVICE_OPTION(&(settings).run.device), \
    {"jobs", OPTION_NUMBER, &(settings).run.jobs, "N", \
     "workers at the same time (default: one per CPU, up to 16)", 1, 256}, \
    {"timeout", OPTION_SECONDS, &(settings).run.timeout_s, "S", \
     "give up on a case after this many seconds, not counting compilation (default 60)", 0, 0}, \
    {"worker", OPTION_FLAG, &(settings).worker, NULL, NULL, 0, 0}

/* The cases that they ask for. */
#define SUITE_QUERY(settings, names, count) \
    {.filters = names, .filter_count = count, .shapes = (settings).shapes, .input = (settings).input, \
     .axes = (settings).axes, .quick = (settings).quick, .extra = (settings).extra, \
     .seed = (settings).run.seed, .with_skips = true}
/* clang-format on */
