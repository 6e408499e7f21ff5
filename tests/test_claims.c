/* Tests of report/claims and report/store, and of `assay claims`. */
#include <greatest.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "experiments/experiment.h"
#include "report/claims.h"
#include "results_fixture.h"
#include "support.h"

SUITE(claims_suite);

static err e;
static store stored;
static claim_list claims;

static void end(void) {
    claims_free(&claims);
    store_free(&stored);
    fixture_clear();
    e = (err){.code = EXIT_OK};
}

/* The answer to the only claim of a row, from the only file of a folder. */
static claim_answer judge(const char *head, const char *metrics, const char *row) {
    char text[2048];
    claim_answer none = {.verdict = CLAIM_VERDICTS};
    claims_free(&claims);
    store_free(&stored);
    snprintf(text, sizeof text,
             "%s# experiment: speed\n%s"
             "a,b\n1,2\n",
             head, metrics);
    if (!fixture_put("d/speed.csv", text))
        return none;
    snprintf(text, sizeof text, FIXTURE_CLAIMS "%s\n", row);
    if (!fixture_put("claims.csv", text) ||
        !claims_read(fixture_get_path("claims.csv"), &claims, &e))
        return none;
    const char *folder = fixture_get_path("d");
    if (!store_read(&folder, 1, false, &stored, &e) || !store_admit_skipped(&stored, &e))
        return none;
    return claim_judge(&claims.items[0], &stored.folders[0]);
}

#define ABOUT_100 "x,text,about,100,,us,10,time,,,Apple M4,speed,it_us,"

TEST a_number_within_the_allowance_holds(void) {
    claim_answer a = judge(FIXTURE_M4, "# metric: it_us = 109.9 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    ASSERT(a.has_value && a.value == 109.9);
    ASSERT_STR_EQ("109.9 us against 100 us, give or take 10 %", a.reason);
    a = judge(FIXTURE_M4, "# metric: it_us = 110.1 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_FAILS, a.verdict, "%d");
    a = judge(FIXTURE_M4, "# metric: it_us = 89.9 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_FAILS, a.verdict, "%d");
    end();
    PASS();
}

TEST every_relation_has_its_bounds(void) {
    static const struct {
        const char *row, *metric;
        claim_verdict verdict;
    } cases[] = {
        {"x,t,at least,200,,GB/s,5,time,,,Apple M4,speed,m,", "190", CLAIM_HOLDS},
        {"x,t,at least,200,,GB/s,5,time,,,Apple M4,speed,m,", "9000", CLAIM_HOLDS},
        {"x,t,at least,200,,GB/s,5,time,,,Apple M4,speed,m,", "189.9", CLAIM_FAILS},
        {"x,t,at most,200,,GB/s,5,time,,,Apple M4,speed,m,", "210", CLAIM_HOLDS},
        {"x,t,at most,200,,GB/s,5,time,,,Apple M4,speed,m,", "210.1", CLAIM_FAILS},
        {"x,t,between,100,200,GB/s,0,time,,,Apple M4,speed,m,", "100", CLAIM_HOLDS},
        {"x,t,between,100,200,GB/s,0,time,,,Apple M4,speed,m,", "200", CLAIM_HOLDS},
        {"x,t,between,100,200,GB/s,0,time,,,Apple M4,speed,m,", "200.1", CLAIM_FAILS},
        {"x,t,between,100,200,GB/s,0,time,,,Apple M4,speed,m,", "99.9", CLAIM_FAILS},
        {"x,t,about,-10,,GB/s,10,time,,,Apple M4,speed,m,", "-10.9", CLAIM_HOLDS},
        {"x,t,about,-10,,GB/s,10,time,,,Apple M4,speed,m,", "10", CLAIM_FAILS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char metric[64];
        snprintf(metric, sizeof metric, "# metric: m = %s GB/s\n", cases[i].metric);
        claim_answer a = judge(FIXTURE_M4, metric, cases[i].row);
        ASSERT_EQ_FMTm(cases[i].row, cases[i].verdict, a.verdict, "%d");
    }
    end();
    PASS();
}

TEST a_number_that_is_not_one_is_no_answer(void) {
    claim_answer a = judge(FIXTURE_M4, "# metric: it_us = nan us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(!a.has_value);
    end();
    PASS();
}

TEST times_of_the_software_device_decide_nothing(void) {
    claim_answer a = judge(FIXTURE_SOFT, "# metric: it_us = 100 us\n", ABOUT_100);
    char text[96];
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(a.has_value && strstr(a.reason, "nothing about a GPU"));
    claim_get_measured(&claims.items[0], &a, true, text, sizeof text);
    ASSERT_STR_EQ("100 us (emulated)", text);
    end();
    PASS();
}

TEST a_file_is_known_to_be_emulated_by_its_api(void) {
    claim_answer a =
        judge("# schema: 2\n# device: d\n# api: soft\n", "# metric: it_us = 100 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    end();
    PASS();
}

TEST the_software_device_counts_as_well_as_any(void) {
    static const char row[] = "x,t,about,4032,,count,0,count,,,any device,speed,norms,";
    claim_answer a = judge(FIXTURE_SOFT, "# metric: norms = 4032 count\n", row);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    a = judge(FIXTURE_SOFT, "# metric: norms = 4031 count\n", row);
    ASSERT_EQ_FMT(CLAIM_FAILS, a.verdict, "%d");
    ASSERT_STR_EQ("4031 against 4032", a.reason);
    end();
    PASS();
}

TEST another_unit_is_no_answer(void) {
    claim_answer a = judge(FIXTURE_M4, "# metric: it_us = 100 ms\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(!a.has_value && strstr(a.reason, "'ms'") && strstr(a.reason, "'us'"));
    end();
    PASS();
}

TEST another_model_is_no_answer(void) {
    static const char row[] = "x,t,about,100,,us,10,time,,smollm 135m,Apple M4,speed,it_us,";
    claim_answer a = judge(FIXTURE_M4, "# model: assay-tiny.gguf\n# metric: it_us = 100 us\n", row);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(!a.has_value && strstr(a.reason, "assay-tiny.gguf"));
    a = judge(FIXTURE_M4, "# model: SmolLM2-135M-Instruct.gguf\n# metric: it_us = 100 us\n", row);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    end();
    PASS();
}

TEST a_smoke_run_is_no_answer(void) {
    claim_answer a = judge(FIXTURE_M4, "# level: smoke\n# metric: it_us = 100 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(strstr(a.reason, "smoke"));
    end();
    PASS();
}

TEST what_is_missing_is_named_with_what_makes_it(void) {
    claim_answer a = judge(FIXTURE_M4, "# metric: it_us = 100 us\n",
                           "x,t,about,1,,us,1,time,,,Apple M4,other,it_us,");
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT(strstr(a.reason, "`assay experiment other`"));
    a = judge(FIXTURE_M4, "# metric: it_us = 100 us\n",
              "x,t,about,1,,us,1,time,,,Apple M4,speed,that_us,");
    ASSERT(strstr(a.reason, "that_us"));
    a = judge(FIXTURE_M4, "# metric: it_us = 100 us\n",
              "x,t,about,100,,us,1,time,,,Apple M4,speed,it_us,It cannot be.");
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERT_STR_EQ("It cannot be.", a.reason);
    end();
    PASS();
}

#define FIXTURE_H200                                                                               \
    "# schema: 2\n# device: NVIDIA H200\n# api: cuda\n# emulated: no\n" FIXTURE_ORIGIN

TEST another_chip_measures_a_claim_and_does_not_judge_it(void) {
    claim_answer a = judge(FIXTURE_H200, "# metric: it_us = 95 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_ELSEWHERE, a.verdict, "%d");
    ASSERT_STR_EQ("published for the Apple M4: 100 us; here 95 us, 5 % less: agrees within 10 %",
                  a.reason);
    a = judge(FIXTURE_H200, "# metric: it_us = 880 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_ELSEWHERE, a.verdict, "%d");
    ASSERT(!a.agrees);
    ASSERT_STR_EQ("published for the Apple M4: 100 us; here 880 us, 8.8 times as much", a.reason);
    a = judge(FIXTURE_H200, "# metric: it_us = 199.9 us\n", ABOUT_100);
    ASSERT_STR_EQ("published for the Apple M4: 100 us; here 199.9 us, 2 times as much", a.reason);
    a = judge("# schema: 2\n# device: Apple M4 Pro\n# api: metal\n# emulated: no\n",
              "# metric: it_us = 100 us\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_ELSEWHERE, a.verdict, "%d");
    claim_counts c = claims_count(&claims, &stored.folders[0]);
    ASSERT(c.of[CLAIM_ELSEWHERE] == 1 && c.agree == 1);
    end();
    PASS();
}

/* A larger chip meets the bounds of a smaller one whatever its kernels are like. */
TEST a_bound_of_another_chip_is_not_agreed_with(void) {
    static const char row[] = "x,t,at least,200,,GB/s,5,time,,,Apple M4,speed,m,";
    claim_answer a = judge(FIXTURE_H200, "# metric: m = 3737 GB/s\n", row);
    ASSERT_EQ_FMT(CLAIM_ELSEWHERE, a.verdict, "%d");
    ASSERT(!a.agrees);
    ASSERT_STR_EQ(
        "published for the Apple M4: at least 200 GB/s; here 3737 GB/s, 18.7 times as much",
        a.reason);
    ASSERT_EQ(CLAIM_ELSEWHERE, judge(FIXTURE_H200, "# metric: m = 20 GB/s\n", row).verdict);
    ASSERT_EQ_FMT((size_t)0, claims_count(&claims, &stored.folders[0]).agree, "%zu");
    end();
    PASS();
}

#define CHECKED "op,kernel,input,verdict,nmse,nonfinite,unwritten,margin,max_ulp,message\n"

/* Judges a claim about errors by a file of checked cases. */
static claim_answer judge_errors(const char *rows, const char *name) {
    char text[512];
    claim_answer none = {.verdict = CLAIM_VERDICTS};
    claims_free(&claims);
    store_free(&stored);
    fixture_clear();
    snprintf(text, sizeof text,
             FIXTURE_CLAIMS "x,t,at most,0.01,,%%,0,count,,,any device,check,%s,\n", name);
    if (!fixture_put("claims.csv", text) ||
        !claims_read(fixture_get_path("claims.csv"), &claims, &e))
        return none;
    snprintf(text, sizeof text, FIXTURE_SOFT CHECKED "%s", rows);
    if (rows ? !fixture_put("d/check.csv", text)
             : !fixture_put("d/a.csv", FIXTURE_SOFT "# experiment: a\na,b\n1,2\n"))
        return none;
    const char *folder = fixture_get_path("d");
    if (!store_read(&folder, 1, false, &stored, &e))
        return none;
    return claim_judge(&claims.items[0], &stored.folders[0]);
}

TEST claims_about_errors_are_decided_by_checked_cases(void) {
    static const char good[] = "mv,mv_f16,normal,pass,1e-10,0,0,0.1,1,\n"
                               "mv,mv_f16,large,fail,1,0,0,9,1,\n"
                               "other,bf16,normal,fail,1,0,0,9,1,\n";
    claim_answer a = judge_errors(good, "rms_pct:mv");
    ASSERT_EQ_FMTm(a.reason, CLAIM_HOLDS, a.verdict, "%d");
    ASSERT_IN_RANGE(0.001, a.value, 1e-9);
    ASSERT_EQ_FMT(CLAIM_HOLDS, judge_errors(good, "rms_pct:_f16").verdict, "%d");
    a = judge_errors("mv,a,normal,pass,1e-10,0,0,0.1,1,\nmv,b,normal,pass,1e-6,0,0,0.9,1,\n",
                     "rms_pct:mv");
    ASSERT_EQ_FMTm(a.reason, CLAIM_FAILS, a.verdict, "%d");
    a = judge_errors("mv,a,normal,fail,1e-10,1,0,0.1,1,\n", "rms_pct:mv"); /* a NaN */
    ASSERT_EQ_FMTm(a.reason, CLAIM_FAILS, a.verdict, "%d");
    a = judge_errors("mv,a,normal,skip,0,0,0,0,0,\n", "rms_pct:mv");
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERTm(a.reason, strstr(a.reason, "check did not give rms_pct:mv"));
    a = judge_errors(NULL, "rms_pct:mv");
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERTm(a.reason, strstr(a.reason, "not measured yet: `assay check --csv"));
    end();
    PASS();
}

TEST what_is_said_of_all_gpus_is_judged_on_each(void) {
    static const char row[] = "x,t,at least,3.9,,x,10,time,,,any GPU,speed,m,";
    claim_answer a = judge(FIXTURE_H200, "# metric: m = 1.5 x\n", row);
    ASSERT_EQ_FMT(CLAIM_FAILS, a.verdict, "%d");
    a = judge(FIXTURE_H200, "# metric: m = 4 x\n", row);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    a = judge(FIXTURE_SOFT, "# metric: m = 4 x\n", row);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    end();
    PASS();
}

TEST a_spread_across_the_allowance_cannot_be_told(void) {
    claim_answer a =
        judge(FIXTURE_M4, "# metric: it_us = 108 us\n# spread: it_us = 104 to 114\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_UNCLEAR, a.verdict, "%d");
    ASSERTm(a.reason, strstr(a.reason, "104 to 114"));
    a = judge(FIXTURE_M4, "# metric: it_us = 108 us\n# spread: it_us = 107 to 109\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    a = judge(FIXTURE_M4, "# metric: it_us = 120 us\n# spread: it_us = 115 to 130\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_FAILS, a.verdict, "%d");
    a = judge(FIXTURE_M4, "# metric: it_us = 1 us\n# spread: other = 1 to 2\n", ABOUT_100);
    ASSERT_EQ_FMT(CLAIM_VERDICTS, a.verdict, "%d");
    ASSERTm(e.text, strstr(e.text, "a spread is NAME = LOW to HIGH"));
    end();
    PASS();
}

TEST numbers_that_contradict_each_other_are_found_without_a_measurement(void) {
    static const char rows[] = "a,t,about,207,,tok/s,1,time,,,Apple M4,speed,m,\n"
                               "b,t,about,55,,tok/s,1,time,,,Apple M4,speed,m,\n"
                               "c,t,about,4.78,,x,10,derived,,,Apple M4,speed,a / b,\n"
                               "d,t,about,3.76,,x,1,derived,,,Apple M4,speed,a / b,";
    judge(FIXTURE_SOFT, "", rows);
    ASSERT_EQ_FMTm(e.text, (size_t)4, claims.count, "%zu");
    claim_answer a = claim_judge(&claims.items[2], &stored.folders[0]);
    ASSERT_EQ_FMT(CLAIM_CONTRADICTED, a.verdict, "%d");
    ASSERTm(a.reason, strstr(a.reason, "a / b is 3.76; published is 4.78 x"));
    ASSERT_EQ(CLAIM_HOLDS, claim_judge(&claims.items[3], &stored.folders[0]).verdict);
    judge(FIXTURE_SOFT, "", "c,t,about,4.78,,x,10,derived,,,Apple M4,speed,a / b,");
    ASSERTm(e.text, strstr(e.text, "'a' is neither a claim nor a number"));
    end();
    PASS();
}

TEST the_type_of_weights_is_part_of_a_model(void) {
    static const char row[] = "x,t,about,100,,us,10,time,,smollm 135m q4_0,Apple M4,speed,it_us,";
    claim_answer a =
        judge(FIXTURE_M4, "# model: smollm2-135m-q8_0.gguf\n# metric: it_us = 100 us\n", row);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    a = judge(FIXTURE_M4, "# model: smollm2-135m.gguf\n# weights: Q4_0\n# metric: it_us = 100 us\n",
              row);
    ASSERT_EQ_FMT(CLAIM_HOLDS, a.verdict, "%d");
    /* What is in the file counts, not what it is called. */
    a = judge(FIXTURE_M4,
              "# model: smollm2-135m-q4_0.gguf\n# weights: Q8_0\n# metric: it_us = 100 us\n", row);
    ASSERT_EQ_FMT(CLAIM_UNKNOWN, a.verdict, "%d");
    ASSERTm(a.reason, strstr(a.reason, "weights Q8_0"));
    end();
    PASS();
}

TEST files_of_another_device_than_their_folder_are_left_out(void) {
    fixture_put("m/a.csv", FIXTURE_M4 "# experiment: a\nx,y\n1,2\n");
    fixture_put("m/b.csv", FIXTURE_SOFT "# experiment: b\nx,y\n1,2\n");
    fixture_put("m/c.csv", FIXTURE_SOFT "# experiment: c\nx,y\n1,2\n");
    char folder[512];
    snprintf(folder, sizeof folder, "%s", fixture_get_path("m"));
    const char *path = folder;
    ASSERTm(e.text, store_read(&path, 1, false, &stored, &e));
    ASSERT_EQ_FMT((size_t)2, stored.folders[0].count, "%zu");
    ASSERT_STR_EQ("software Metal device", stored.folders[0].device);
    ASSERT_EQ_FMT((size_t)1, stored.skipped_count, "%zu");
    ASSERTm(stored.skipped[0], strstr(stored.skipped[0], "its device is 'Apple M4', and 'software "
                                                         "Metal device' in the other files"));
    ASSERT_FALSE(store_admit_skipped(&stored, &e));
    ASSERT_EQ_FMT(EXIT_USAGE, e.code, "%d");
    end();
    fixture_put("m/a.csv", FIXTURE_M4 "# experiment: a\nx,device\n1,Apple M4\n2,Apple M1\n");
    ASSERTm(e.text, store_read(&path, 1, false, &stored, &e));
    ASSERT_EQ_FMT((size_t)0, stored.folders[0].count, "%zu");
    ASSERTm(stored.skipped[0],
            strstr(stored.skipped[0], "a row of Apple M1 in a file of Apple M4"));
    end();
    PASS();
}

TEST a_malformed_claim_is_named_with_its_line(void) {
    static const char *const rows[][2] = {
        {"x,t,roughly,1,,us,1,time,,,d,speed,m,", "claims.csv:2: no relation 'roughly'"},
        {"x,t,about,fast,,us,1,time,,,d,speed,m,", "claims.csv:2: 'fast' in column 'value'"},
        {"x,t,between,1,,us,1,time,,,d,speed,m,",
         "claims.csv:2: 'between' takes a number in column 'high'"},
        {"x,t,about,1,,us,1,feeling,,,d,speed,m,",
         "claims.csv:2: no kind 'feeling' (valid: time, count, derived)"},
        {"x,t,about,1", "claims.csv:2: 4 fields"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        e = (err){.code = EXIT_OK};
        claim_answer a = judge(FIXTURE_M4, "", rows[i][0]);
        ASSERT_EQ(CLAIM_VERDICTS, a.verdict);
        ASSERT_EQ_FMT(EXIT_USAGE, e.code, "%d");
        ASSERTm(e.text, strstr(e.text, rows[i][1]));
    }
    end();
    PASS();
}

TEST a_malformed_metric_is_named_with_its_line(void) {
    static const char *const lines[] = {"# metric: it_us\n", "# metric: it_us = fast us\n",
                                        "# metric:  = 1 us\n", "# metric: it_us = 1us\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        e = (err){.code = EXIT_OK};
        judge("# schema: 2\n# device: d\n", lines[i], ABOUT_100);
        ASSERT_EQ_FMTm(lines[i], EXIT_USAGE, e.code, "%d");
        ASSERTm(e.text, strstr(e.text, "speed.csv:4: "));
    }
    end();
    PASS();
}

TEST results_of_another_schema_are_refused(void) {
    static const char *const heads[][2] = {
        {"# schema: 1\n# device: d\n", "d/speed.csv:1: schema 1, but this assay reads schema 2"},
        {"# schema: 3\n# device: d\n", "schema 3, but this assay reads schema 2"},
        {"# device: d\n", "d/speed.csv:1: no line '# schema: 2'"},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        e = (err){.code = EXIT_OK};
        judge(heads[i][0], "", ABOUT_100);
        ASSERT_EQ_FMTm(heads[i][1], EXIT_USAGE, e.code, "%d");
        ASSERTm(e.text, strstr(e.text, heads[i][1]));
    }
    end();
    PASS();
}

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
    end();
    PASS();
}

/* Runs `assay claims` over a software device and an Apple GPU. */
static int run_claims(const char *options) {
    char line[512];
    fixture_put("soft/speed.csv",
                FIXTURE_SOFT FIXTURE_EXPERIMENT("speed", "# metric: it_us = 7 us\n") "a,b\n1,2\n");
    fixture_put("m4/speed.csv",
                FIXTURE_M4 FIXTURE_EXPERIMENT("speed", "# metric: it_us = 101 us\n") "a,b\n1,2\n");
    fixture_put("claims.csv",
                FIXTURE_CLAIMS "quick,It is quick,about,100,,us,10,time,,,Apple M4,speed,it_us,\n");
    snprintf(line, sizeof line, "cd \"$T\" && \"$A\" claims --claims claims.csv %s", options);
    return command_run(line);
}

TEST the_table_has_claim_number_verdict_and_reason(void) {
    ASSERT_EQ_FMTm(command_get_output(), 0, run_claims("m4"), "%d");
    ASSERT_SAYS("# device: Apple M4\n");
    ASSERT_SAYS("Holds: It is quick (quick)\n    101 µs against 100 µs, give or take 10 %\n");
    ASSERT_SAYS("1 hold, 0 do not hold, 0 cannot be measured here\n");
    ASSERT_EQ_FMTm(command_get_output(), 0, run_claims("soft m4"), "%d");
    ASSERT_SAYS("# device: software Metal device (emulated)\nCannot be measured here: It is quick");
    ASSERT_SAYS("\n\n# device: Apple M4\nHolds: ");
    end();
    PASS();
}

TEST equal_obstacles_are_one_sentence(void) {
    char rows[1024] = FIXTURE_CLAIMS;
    for (int i = 0; i < 4; i++)
        snprintf(rows + strlen(rows), sizeof rows - strlen(rows),
                 "id%d,t,about,100,,us,10,time,,,Apple M4,speed,it_us,\n", i);
    ASSERT_EQ_FMTm(command_get_output(), 0, run_claims("soft"), "%d");
    ASSERT(fixture_put("many.csv", rows));
    ASSERT_EQ_FMT(0, command_run("cd \"$T\" && \"$A\" claims --claims many.csv soft"), "%d");
    ASSERT_SAYS("Cannot be measured here: 4 claims\n    ");
    ASSERT_EQ(NULL, strstr(command_get_output(), "id0"));
    ASSERT_EQ_FMT(0, command_run("cd \"$T\" && \"$A\" claims --claims many.csv soft --json"), "%d");
    ASSERT_SAYS("\"id\": \"id3\"");
    end();
    PASS();
}

TEST claims_are_given_in_other_forms_too(void) {
    ASSERT_EQ_FMTm(command_get_output(), 0, run_claims("m4 --json | python3 -m json.tool"), "%d");
    ASSERT_SAYS("\"measured\": 101");
    ASSERT_SAYS("\"verdict\": \"holds\"");
    ASSERT_EQ_FMTm(command_get_output(), 0, run_claims("m4 --md"), "%d");
    ASSERT_SAYS("| Apple M4 | quick | 100 us | 101 us | holds |");
    ASSERT_EQ_FMTm(command_get_output(), 0,
                   run_claims("m4 --csv out.csv > /dev/null && cat out.csv"), "%d");
    ASSERT_SAYS("Apple M4,quick,It is quick,100 us,101 us,holds,");
    end();
    PASS();
}

TEST folders_without_results_are_usage_errors(void) {
    ASSERT_EQ_FMT(2, run_claims("nowhere"), "%d");
    ASSERT_SAYS("there is no folder nowhere");
    ASSERT_EQ_FMT(2, run_claims("soft/ 2>&1; mkdir -p none && \"$A\" claims none"), "%d");
    ASSERT_SAYS("there are no results in none");
    end();
    PASS();
}

SUITE(claims_suite) {
    RUN_TEST(a_number_within_the_allowance_holds);
    RUN_TEST(every_relation_has_its_bounds);
    RUN_TEST(a_number_that_is_not_one_is_no_answer);
    RUN_TEST(times_of_the_software_device_decide_nothing);
    RUN_TEST(a_file_is_known_to_be_emulated_by_its_api);
    RUN_TEST(the_software_device_counts_as_well_as_any);
    RUN_TEST(another_unit_is_no_answer);
    RUN_TEST(another_model_is_no_answer);
    RUN_TEST(a_smoke_run_is_no_answer);
    RUN_TEST(what_is_missing_is_named_with_what_makes_it);
    RUN_TEST(another_chip_measures_a_claim_and_does_not_judge_it);
    RUN_TEST(a_bound_of_another_chip_is_not_agreed_with);
    RUN_TEST(claims_about_errors_are_decided_by_checked_cases);
    RUN_TEST(what_is_said_of_all_gpus_is_judged_on_each);
    RUN_TEST(a_spread_across_the_allowance_cannot_be_told);
    RUN_TEST(numbers_that_contradict_each_other_are_found_without_a_measurement);
    RUN_TEST(the_type_of_weights_is_part_of_a_model);
    RUN_TEST(files_of_another_device_than_their_folder_are_left_out);
    RUN_TEST(equal_obstacles_are_one_sentence);
    RUN_TEST(a_malformed_claim_is_named_with_its_line);
    RUN_TEST(a_malformed_metric_is_named_with_its_line);
    RUN_TEST(results_of_another_schema_are_refused);
    RUN_TEST(the_published_claims_can_be_read_and_have_names_of_their_own);
    RUN_TEST(the_table_has_claim_number_verdict_and_reason);
    RUN_TEST(claims_are_given_in_other_forms_too);
    RUN_TEST(folders_without_results_are_usage_errors);
}
