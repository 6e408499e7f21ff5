/* Tests of harness/base/child, and of harness/base/worker with tasks that answer, crash, hang and lie.
 *
 * The worker that worker_run starts is this test program itself: a constructor notices, serves, and
 * never reaches main. */
#include <greatest.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/child.h"
#include "harness/base/os.h"
#include "harness/base/worker.h"

SUITE(worker_suite);

#define ROLE "ASSAY_TEST_WORKER"

static void nap(long ms) {
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* The answer is the task's text and this process's number. */
static void *run_task(void *context, const char *task, size_t *bytes, bool *retire) {
    (void)context;
    const char *what = strrchr(task, '/') + 1;
    /* Sanitizers catch these; here they must kill. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    if (strcmp(what, "crash") == 0)
        raise(SIGSEGV);
    if (strcmp(what, "abort") == 0)
        raise(SIGABRT);
    if (strcmp(what, "leave") == 0)
        _exit(7);
    if (strcmp(what, "fault") == 0 && CHILD_FAULT > 0) { /* for the sanitizers to find */
        char *volatile one = calloc(1, 1);
        one[1] = 0;
    }
    for (volatile bool forever = strcmp(what, "hang") == 0; forever;)
        nap(1000);
    if (strcmp(what, "compile") == 0) {
        worker_note(WORKER_COMPILER);
        nap(3000);
        worker_note("");
    }
    if (strcmp(what, "lie") == 0 && write(WORKER_OUT, "nonsense that is no frame", 25) < 0)
        _exit(8);
    if (strcmp(what, "slow") == 0)
        nap(50);
    *retire = strcmp(what, "retire") == 0;
    size_t room = strcmp(what, "large") == 0 ? 3000000 : 128;
    char *answer = calloc(1, room);
    snprintf(answer, room, "%s %ld", task, (long)getpid());
    *bytes = room;
    return answer;
}

__attribute__((constructor)) static void serve_if_started_as_worker(void) {
    if (!getenv(ROLE))
        return;
    err e = {.code = EXIT_OK};
    _exit(worker_serve(run_task, NULL, &e) ? 0 : (int)e.code);
}

enum { MAX_TASKS = 64 };

typedef struct {
    size_t delivered, stop_after;
    progress shown;
    bool in_order;
    char text[MAX_TASKS][200]; /* the failure, or the answer */
    size_t bytes[MAX_TASKS];
} record;

static bool deliver(void *context, size_t task, const worker_outcome *o, err *e) {
    record *r = context;
    r->in_order = r->in_order && task == r->delivered;
    r->delivered++;
    r->bytes[task] = o->bytes;
    snprintf(r->text[task], sizeof r->text[task], "%s",
             o->failure[0] ? o->failure : (const char *)o->answer);
    return r->delivered != r->stop_after || err_set(e, EXIT_CANNOT, "enough");
}

static err e;

static bool run_tasks(const char *const *tasks, size_t count, int jobs, double timeout_s,
                      record *r) {
    static const char *const arguments[] = {"--ignored", NULL};
    r->in_order = true;
    e = (err){.code = EXIT_OK};
    worker_plan plan = {.arguments = arguments,
                        .tasks = tasks,
                        .count = count,
                        .jobs = jobs,
                        .timeout_s = timeout_s,
                        .deliver = deliver,
                        .context = r,
                        .progress = &r->shown};
    setenv(ROLE, "1", 1);
    bool ok = worker_run(&plan, &e);
    unsetenv(ROLE);
    return ok;
}

static long get_pid(const char *text) {
    const char *space = strrchr(text, ' ');
    return space ? strtol(space, NULL, 10) : 0;
}

/* Nothing that we started is left, as a process or as a zombie. */
static bool has_no_children(void) {
    return waitpid(-1, NULL, WNOHANG) < 0;
}

TEST one_worker_takes_many_tasks(void) {
    const char *const tasks[] = {"a/1", "a/2", "b/3"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 3, 1, 20, &r));
    ASSERT(r.delivered == 3 && r.in_order && r.shown.done == 3);
    ASSERTm(r.text[1], strncmp(r.text[1], "a/2 ", 4) == 0);
    ASSERT(get_pid(r.text[0]) > 0 && get_pid(r.text[0]) == get_pid(r.text[2]));
    ASSERT(has_no_children());
    PASS();
}

TEST a_crash_fails_its_task_and_no_other(void) {
    const char *const tasks[] = {"a/1", "a/crash", "a/2", "a/abort", "a/leave", "a/3"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 6, 1, 20, &r));
    ASSERT(r.delivered == 6 && r.in_order);
    ASSERT_STR_EQ("crashed: SIGSEGV", r.text[1]);
    ASSERT_STR_EQ("crashed: SIGABRT", r.text[3]);
    ASSERTm(r.text[4], strstr(r.text[4], "status 7"));
    ASSERTm(r.text[2], strncmp(r.text[2], "a/2 ", 4) == 0);
    ASSERTm(r.text[5], strncmp(r.text[5], "a/3 ", 4) == 0);
    ASSERT(has_no_children());
    PASS();
}

TEST a_fault_of_ours_is_none_of_the_task(void) {
    const char *const tasks[] = {"a/1", "a/fault", "a/2"};
    record r = {0};
    const bool is_sanitized = CHILD_FAULT > 0;
    ASSERTm(e.text, run_tasks(tasks, 3, 1, 20, &r) == !is_sanitized);
    ASSERT(r.delivered == (is_sanitized ? 1 : 3) && e.code == (is_sanitized ? EXIT_CANNOT : 0));
    PASS();
}

TEST a_compiler_may_take_longer_than_a_kernel(void) {
    const char *const tasks[] = {"a/compile", "b/hang"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 2, 2, 1.5, &r));
    ASSERTm(r.text[0], strncmp(r.text[0], "a/compile ", 10) == 0);
    ASSERT_STR_EQ("timed out after 1.5 s", r.text[1]);
    PASS();
}

TEST a_hang_is_given_up_and_the_rest_goes_on(void) {
    const char *const tasks[] = {"a/1", "a/hang", "a/2", "b/hang", "b/3", "c/4"};
    record r = {0};
    uint64_t start = os_now_ns();
    ASSERTm(e.text, run_tasks(tasks, 6, 2, 0.5, &r));
    ASSERT((double)(os_now_ns() - start) < 10e9);
    ASSERT_STR_EQ("timed out after 0.5 s", r.text[1]);
    ASSERT_STR_EQ("timed out after 0.5 s", r.text[3]);
    /* What hangs once is not tried again with the rest of its group. */
    ASSERT_STR_EQ("not run: b/hang timed out", r.text[4]);
    ASSERTm(r.text[5], strncmp(r.text[5], "c/4 ", 4) == 0);
    ASSERT(has_no_children());
    PASS();
}

TEST an_answer_that_makes_no_sense_is_a_failure(void) {
    const char *const tasks[] = {"a/lie", "a/1"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 2, 1, 20, &r));
    ASSERTm(r.text[0], strstr(r.text[0], "is malformed"));
    ASSERTm(r.text[1], strncmp(r.text[1], "a/1 ", 4) == 0);
    PASS();
}

TEST a_worker_that_retires_is_followed_by_a_fresh_one(void) {
    const char *const tasks[] = {"a/1", "a/retire", "a/2"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 3, 1, 20, &r));
    ASSERT(get_pid(r.text[0]) == get_pid(r.text[1]));
    ASSERT(get_pid(r.text[1]) != get_pid(r.text[2]));
    PASS();
}

TEST outcomes_come_in_order_from_workers_in_parallel(void) {
    static char names[MAX_TASKS][32];
    const char *tasks[MAX_TASKS];
    for (int i = 0; i < MAX_TASKS; i++) {
        snprintf(names[i], sizeof names[i], "k%d/%s", i % 7, i % 3 ? "fast" : "slow");
        tasks[i] = names[i];
    }
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, MAX_TASKS, 4, 20, &r));
    ASSERT(r.delivered == MAX_TASKS && r.in_order);
    bool has_several = false;
    for (int i = 0; i < MAX_TASKS; i++) {
        ASSERT(strncmp(r.text[i], names[i], strlen(names[i])) == 0);
        has_several = has_several || get_pid(r.text[i]) != get_pid(r.text[0]);
    }
    ASSERT(has_several);
    PASS();
}

TEST a_large_answer_arrives_whole(void) {
    const char *const tasks[] = {"a/large", "a/1"};
    record r = {0};
    ASSERTm(e.text, run_tasks(tasks, 2, 1, 20, &r));
    ASSERT(r.bytes[0] == 3000000 && r.bytes[1] == 128);
    PASS();
}

TEST no_tasks_need_no_workers(void) {
    record r = {0};
    ASSERTm(e.text, run_tasks(NULL, 0, 2, 20, &r));
    ASSERT(r.delivered == 0);
    PASS();
}

TEST the_one_who_is_delivered_to_can_stop_the_run(void) {
    const char *const tasks[] = {"a/1", "a/2", "a/3", "b/hang"};
    record r = {.stop_after = 2};
    ASSERT_FALSE(run_tasks(tasks, 4, 2, 20, &r));
    ASSERT_STR_EQ("enough", e.text);
    ASSERT(r.delivered == 2 && has_no_children());
    PASS();
}

static void interrupt_ourselves(int number) {
    (void)number;
    raise(SIGINT);
}

TEST an_interrupt_ends_the_workers_and_the_run(void) {
    const char *const tasks[] = {"a/1", "b/hang", "c/hang"};
    record r = {0};
    struct sigaction on_alarm = {.sa_handler = interrupt_ourselves}, old;
    /* a job in the background is started with interrupts ignored, and would go on */
    struct sigaction heeded = {.sa_handler = SIG_DFL}, ignored;
    sigemptyset(&on_alarm.sa_mask);
    sigemptyset(&heeded.sa_mask);
    sigaction(SIGALRM, &on_alarm, &old);
    sigaction(SIGINT, &heeded, &ignored);
    alarm(1);
    bool is_done = run_tasks(tasks, 3, 3, 60, &r);
    sigaction(SIGALRM, &old, NULL);
    sigaction(SIGINT, &ignored, NULL);
    ASSERT_FALSE(is_done);
    ASSERT_EQ(EXIT_INTERRUPTED, e.code);
    ASSERTm(e.text, strstr(e.text, "after 1 of 3"));
    ASSERT(has_no_children());
    PASS();
}

TEST a_worker_started_by_hand_says_so(void) {
    int in = dup(WORKER_IN); /* whatever is there, it is not the pipe of a worker */
    close(WORKER_IN);
    bool is_refused = !worker_serve(run_task, NULL, &e);
    if (in >= 0) {
        dup2(in, WORKER_IN);
        close(in);
    }
    ASSERT(is_refused);
    ASSERTm(e.text, strstr(e.text, "not by hand"));
    PASS();
}

/* Programs ------------------------------------------------------------------------------------- */

TEST a_program_is_run_to_its_end_or_a_limit(void) {
    static const struct {
        const char *script, *output; /* what it begins with */
        double seconds;
        int status;
        bool is_late, is_profuse;
    } cases[] = {
        {"echo out; echo talk >&2; exit 7", "out\ntalk\n", 60, 7, false, false},
        {"kill -SEGV $$", "", 60, 128 + SIGSEGV, false, false},
        {"echo begun; sleep 600 & wait", "begun\n", 0.5, 128 + SIGTERM, true, false},
        {"echo left; sleep 600 & exit 0", "left\n", 60, 0, false, false},
        {"trap '' TERM; while :; do sleep 0.1; done", "", 0.3, 128 + SIGKILL, true, false},
        {"while :; do echo and so on and so on and so on; done", "and so on", 60, 128 + SIGTERM,
         false, true},
        {"exec >&- 2>&-; exec sleep 600", "", 0.5, 128 + SIGTERM, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const child_limits limits = {
            .seconds = cases[i].seconds, .output_bytes = 100000, .leads_group = true};
        const char *const argv[] = {"sh", "-c", cases[i].script, NULL};
        char *output = NULL;
        child_end end;
        ASSERTm(e.text, child_run_within(argv, &limits, &output, &end, &e));
        ASSERT_EQ_FMTm(cases[i].script, cases[i].status, end.status, "%d");
        ASSERTm(cases[i].script, strncmp(output, cases[i].output, strlen(cases[i].output)) == 0);
        ASSERTm(cases[i].script, end.is_late == cases[i].is_late);
        ASSERTm(cases[i].script, end.is_profuse == cases[i].is_profuse);
        ASSERTm(cases[i].script, end.seconds < 30 && has_no_children());
        free(output);
    }
    PASS();
}

TEST all_that_a_program_started_ends_with_it(void) {
    const child_limits limits = {.seconds = 0.5, .leads_group = true};
    const char *const argv[] = {"sh", "-c", "sleep 600 & echo $!; wait", NULL};
    char *output = NULL;
    child_end end;
    ASSERTm(e.text, child_run_within(argv, &limits, &output, &end, &e));
    const pid_t other = (pid_t)atoi(output);
    free(output);
    ASSERT(other > 1);
    int tries = 0; /* whoever reaps orphans here may take a moment */
    for (char path[64], state = 'R'; state != 'Z' && kill(other, 0) == 0 && tries < 50; tries++) {
        snprintf(path, sizeof path, "/proc/%ld/stat", (long)other);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
            state = 'R';
        if (f)
            fclose(f);
        nap(100);
    }
    ASSERT(tries < 50);
    PASS();
}

TEST a_program_that_is_not_there_is_an_error(void) {
    const char *const argv[] = {"/nowhere/at/all", NULL};
    int status;
    ASSERT(!child_run(argv, NULL, &status, &e));
    ASSERTm(e.text, strstr(e.text, "/nowhere/at/all"));
    const char *const slow[] = {"sleep", "600", NULL};
    ASSERT(!child_run_for(slow, 1, NULL, &status, &e));
    ASSERT_STR_EQ("sleep was stopped after 1 s", e.text);
    ASSERT(has_no_children());
    PASS();
}

SUITE(worker_suite) {
    RUN_TEST(a_program_is_run_to_its_end_or_a_limit);
    RUN_TEST(all_that_a_program_started_ends_with_it);
    RUN_TEST(a_program_that_is_not_there_is_an_error);
    RUN_TEST(one_worker_takes_many_tasks);
    RUN_TEST(a_crash_fails_its_task_and_no_other);
    RUN_TEST(a_hang_is_given_up_and_the_rest_goes_on);
    RUN_TEST(a_fault_of_ours_is_none_of_the_task);
    RUN_TEST(a_compiler_may_take_longer_than_a_kernel);
    RUN_TEST(an_answer_that_makes_no_sense_is_a_failure);
    RUN_TEST(a_worker_that_retires_is_followed_by_a_fresh_one);
    RUN_TEST(outcomes_come_in_order_from_workers_in_parallel);
    RUN_TEST(a_large_answer_arrives_whole);
    RUN_TEST(no_tasks_need_no_workers);
    RUN_TEST(the_one_who_is_delivered_to_can_stop_the_run);
    RUN_TEST(an_interrupt_ends_the_workers_and_the_run);
    RUN_TEST(a_worker_started_by_hand_says_so);
}
