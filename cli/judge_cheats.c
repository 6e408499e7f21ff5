#include "judge_cheats.h"

#include <dirent.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "axes.h"
#include "harness/base/array.h"
#include "harness/base/csv_read.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/sha256.h"
#include "harness/base/table.h"
#include "harness/check/suite.h"
#include "harness/measure/made_of.h"
#include "kernels/ops.h"
#include "output.h"
#include "report.h"

typedef enum { NOT_JUDGED, JUDGED_BEFORE, JUDGED_NOW } progress_of;

typedef struct {
    char name[96], path[PATH_MAX];
    char base[96], stages[64], because[160]; /* stages "": an honest kernel */
    char made_of[MADE_OF];                   /* its text */
    progress_of state;
    judge_answer answer; /* JUDGED_NOW */
} subject;

typedef struct {
    const cheat_query *query;
    subject *items;
    size_t count, room;
    char *skipped; /* kernels that this device cannot run, ", " between them */
    size_t skipped_count;
    size_t left_out; /* cheats for ops of this program, which a project does not have */
    bool *used;      /* the filters that matched something */
    size_t *asked;   /* the subject of each candidate */
    const device_facts *facts;
    csv *file; /* NULL if none is kept */
    uint64_t seed;
} subject_list;

/* `also`: another name that it has, the op's, or NULL. */
static bool is_wanted(const subject_list *l, const char *name, const char *also) {
    const cheat_query *q = l->query;
    bool wanted = q->filter_count == 0;
    for (size_t i = 0; i < q->filter_count; i++)
        if (fnmatch(q->filters[i], name, 0) == 0 || (also && fnmatch(q->filters[i], also, 0) == 0))
            wanted = l->used[i] = true;
    return wanted;
}

static void read_line(const char *text, const char *key, char *out, size_t size) {
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
}

/* In a project there are other ops than those that the cheats are for. */
static bool is_here(const char *base) {
    bool is_found = false;
    for (size_t i = 0; i < registry_count; i++)
        is_found = is_found || op_find_kernel(registry[i], base);
    return is_found;
}

static bool add_cheat(subject_list *l, const char *folder, const char *name, err *e) {
    subject s = {.base = ""};
    if (!path_join(s.path, sizeof s.path, e, folder, name))
        return false;
    char *text = os_read_plain(s.path, 1 << 20, NULL, e);
    if (!text)
        return false;
    snprintf(s.name, sizeof s.name, "%.*s", (int)strcspn(name, "."), name);
    read_line(text, "// base: ", s.base, sizeof s.base);
    read_line(text, "// refused: ", s.stages, sizeof s.stages);
    read_line(text, "// because: ", s.because, sizeof s.because);
    sha256 h;
    char hex[65];
    sha256_start(&h);
    sha256_add(&h, text, strlen(text));
    sha256_finish(&h, hex);
    snprintf(s.made_of, sizeof s.made_of, "text=%.16s", hex);
    free(text);
    if (!s.base[0] || !s.stages[0] || !s.because[0])
        return err_set(e, EXIT_CANNOT, "the cheat %.80s does not say why it must be refused", name);
    if (is_here(s.base))
        *ARRAY_ADD(l->items, l->count, l->room) = s;
    else
        l->left_out++;
    return true;
}

static bool add_cheats(subject_list *l, err *e) {
    char home[PATH_MAX], folder[PATH_MAX];
    struct dirent **entries;
    if (!os_find_home(home, sizeof home, e) ||
        !path_join(folder, sizeof folder, e, home, "harness/check/cheats"))
        return false;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0)
        return err_set(e, EXIT_CANNOT, "cannot read the folder %.200s", folder);
    bool ok = true;
    for (int i = 0; i < n; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s", entries[i]->d_name);
        char *dot = strrchr(name, '.');
        bool is_cheat = dot && strcmp(dot, ".metal") == 0;
        if (is_cheat)
            *dot = 0;
        if (ok && is_cheat && is_wanted(l, name, NULL))
            ok = add_cheat(l, folder, entries[i]->d_name, e);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static void add_skipped(subject_list *l, const char *name) {
    size_t used = l->skipped ? strlen(l->skipped) : 0, size = used + strlen(name) + 3;
    char *more = array_new(1, size);
    snprintf(more, size, "%s%s%s", used ? l->skipped : "", used ? ", " : "", name);
    free(l->skipped);
    l->skipped = more;
    l->skipped_count++;
}

static bool add_honest(subject_list *l, const device_facts *soft, err *e) {
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib != NULL;
    for (size_t i = 0; ok && i < registry_count; i++) {
        size_t taken = 0;
        for (size_t k = 0; ok && k < registry[i]->kernel_count; k++) {
            const kernel *x = &registry[i]->kernels[k];
            subject s = {.base = ""};
            if (!is_wanted(l, x->name, registry[i]->name) || (taken > 0 && !l->query->all_kernels))
                continue;
            if (!device_offers(l->facts, x->needs, NULL) || !device_offers(soft, x->needs, NULL)) {
                add_skipped(l, x->name);
                continue;
            }
            taken++;
            snprintf(s.name, sizeof s.name, "%s", x->name);
            snprintf(s.base, sizeof s.base, "%s", x->name);
            ok = library_find_path(lib, x->file, s.path, sizeof s.path, e) &&
                 made_of_add_one(s.made_of, lib, "kernel", x->file, e);
            *ARRAY_ADD(l->items, l->count, l->room) = s;
        }
    }
    library_free(lib);
    return ok;
}

static bool find_subjects(subject_list *l, err *e) {
    const cheat_query *q = l->query;
    device_facts soft;
    const suite software = {.device = "soft"};
    l->used = array_new(q->filter_count + 1, sizeof *l->used);
    bool ok = suite_find_device(&software, &soft, e) && add_cheats(l, e) && add_honest(l, &soft, e);
    for (size_t i = 0; ok && i < q->filter_count; i++)
        if (!l->used[i])
            ok = axes_refuse_name("op, kernel or cheat", q->filters[i], e);
    if (ok && l->count == 0)
        ok = err_set(e, EXIT_CANNOT,
                     l->left_out ? "the cheats are for ops that are not in this project"
                                 : "this device cannot run any of them");
    return ok;
}

/* NULL, or what is wrong with the verdict. */
static const char *find_mistake(const subject *s, const judge_answer *a) {
    if (a->is_our_failure)
        return a->error.text;
    if (!s->stages[0])
        return a->is_right ? NULL : "honest, and refused";
    if (a->is_right)
        return "ACCEPTED";
    if (!strstr(s->stages, judge_get_stage_name(a->stage)))
        return "refused by another stage";
    char because[sizeof s->because], *rest = because, *one;
    snprintf(because, sizeof because, "%s", s->because);
    while ((one = strtok_r(rest, "|", &rest)))
        if (strstr(a->reason, one) || strstr(a->class, one) || strstr(a->detail, one))
            return NULL;
    return "refused for another reason";
}

static void print_row(FILE *out, const subject *s, const judge_answer *a, const char *mistake) {
    char text[1024];
    snprintf(text, sizeof text, "%-24s %s%s%s%s%s%s%s%.300s", s->name,
             mistake ? mistake : "refused", mistake ? ", expected " : "",
             mistake ? (s->stages[0] ? s->stages : "accepted") : "", mistake ? ": " : " by ",
             a->is_right ? "" : judge_get_stage_name(a->stage), a->class[0] ? ", " : "", a->class,
             "");
    if (mistake)
        snprintf(text + strlen(text), sizeof text - strlen(text), ": %.300s (%s)",
                 a->is_our_failure ? a->error.text : a->reason, a->case_name);
    fprintf(out, "%s\n", text);
}

/* Verdicts that are kept ------------------------------------------------------------------------- */

static const char *const titles[] = {"name",   "expected", "verdict", "mistake",
                                     "reason", "seed",     "made_of"};
enum { TITLES = sizeof titles / sizeof *titles };

static const char *get_expected(const subject *s) {
    return s->stages[0] ? s->stages : "accepted";
}

static const char *get_verdict(const judge_answer *a) {
    return a->is_our_failure ? "not judged"
           : a->is_right     ? "accepted"
                             : judge_get_stage_name(a->stage);
}

static const char *get_reason(const judge_answer *a) {
    return a->is_our_failure ? a->error.text : a->is_right ? "" : a->reason;
}

/* A file that is not there is begun. */
static bool open_kept(subject_list *l, err *e) {
    const char *path = l->query->csv;
    if (!path)
        return true;
    if (access(path, F_OK) != 0) {
        csv *file = report_start_csv(l->facts, l->seed);
        csv_add_row(file, titles, TITLES);
        bool ok = csv_write(file, path, e);
        csv_free(file);
        l->file = csv_new();
        return ok;
    }
    csv_file *f = csv_read(path, e);
    size_t name, mistake, made_of;
    bool ok = f && csv_count_columns(f) == TITLES && csv_find_column(f, "name", &name, e) &&
              csv_find_column(f, "mistake", &mistake, e) &&
              csv_find_column(f, "made_of", &made_of, e);
    if (f && !ok)
        err_set(e, EXIT_USAGE, "%.160s is not a file of verdicts: remove it", path);
    for (size_t r = 0; ok && r < csv_count_rows(f); r++)
        for (size_t i = 0; i < l->count; i++)
            if (strcmp(csv_get_text(f, r, name), l->items[i].name) == 0 &&
                strcmp(csv_get_text(f, r, made_of), l->items[i].made_of) == 0 &&
                csv_get_text(f, r, mistake)[0] == 0)
                l->items[i].state = JUDGED_BEFORE;
    csv_file_free(f);
    l->file = csv_new();
    return ok;
}

static bool keep_answer(void *context, size_t candidate, const judge_answer *a, err *e) {
    subject_list *l = context;
    subject *s = &l->items[l->asked[candidate]];
    s->answer = *a;
    s->state = JUDGED_NOW;
    if (!l->file)
        return true;
    const char *mistake = find_mistake(s, a);
    char seed[24];
    snprintf(seed, sizeof seed, "%" PRIu64, l->seed);
    const char *const cells[TITLES] = {
        s->name, get_expected(s), get_verdict(a), mistake ? mistake : "", get_reason(a),
        seed,    s->made_of};
    csv_add_row(l->file, cells, TITLES);
    return csv_append(l->file, l->query->csv, e);
}

/* The report ------------------------------------------------------------------------------------- */

static void print_json(const subject_list *l) {
    bool is_next = false;
    output_start_json(stdout, "judge", l->facts, l->seed);
    fputs(",\n  \"subjects\": [", stdout);
    for (size_t i = 0; i < l->count; i++) {
        const subject *x = &l->items[i];
        if (x->state != JUDGED_NOW)
            continue;
        const char *mistake = find_mistake(x, &x->answer);
        printf("%s\n    {", is_next ? "," : "");
        is_next = true;
        json_print_field(stdout, "name", x->name);
        json_add_field(stdout, "kind", x->stages[0] ? "cheat" : "honest");
        json_add_field(stdout, "expected", get_expected(x));
        json_add_field(stdout, "stage", get_verdict(&x->answer));
        json_add_field(stdout, "reason", get_reason(&x->answer));
        json_add_field(stdout, "mistake", mistake ? mistake : "");
        putchar('}');
    }
    puts("\n  ]\n}");
}

static void print_skipped(FILE *out, const subject_list *l) {
    size_t size = 100 + (l->skipped ? strlen(l->skipped) : 0);
    char *text = array_new(1, size);
    if (l->skipped_count > 0) {
        snprintf(text, size, "%zu kernels are skipped, which this device cannot run: %s",
                 l->skipped_count, l->skipped);
        table_print_text(out, table_find_limit(out) > 0 ? table_find_limit(out) : 100, 0, text);
    }
    free(text);
    if (l->left_out > 0)
        fprintf(out, "%zu cheats are left out: their ops are not in this project\n", l->left_out);
}

static exit_code report_answers(const subject_list *l, err *e) {
    FILE *out = l->query->json ? stderr : stdout;
    size_t cheats = 0, honest = 0, accepted = 0, refused = 0, mistakes = 0, before = 0, left = 0;
    for (size_t i = 0; i < l->count; i++) {
        const subject *s = &l->items[i];
        const char *mistake = s->state == JUDGED_NOW ? find_mistake(s, &s->answer) : NULL;
        bool is_cheat = s->stages[0] != 0, is_right = s->answer.is_right;
        left += s->state == NOT_JUDGED;
        before += s->state == JUDGED_BEFORE;
        *(is_cheat ? &cheats : &honest) += s->state != NOT_JUDGED;
        accepted += mistake && is_cheat && is_right && !s->answer.is_our_failure;
        refused += mistake && !is_cheat && !is_right;
        mistakes += mistake != NULL;
        if (s->state == JUDGED_NOW && (is_cheat || mistake))
            print_row(out, s, &s->answer, mistake);
    }
    if (l->query->json)
        print_json(l);
    print_skipped(out, l);
    if (before > 0)
        fprintf(out, "%zu of these verdicts are from %s\n", before, l->query->csv);
    fprintf(
        out,
        "%zu cheats, %zu accepted; %zu honest kernels, %zu refused; %zu verdicts not as expected\n",
        cheats, accepted, honest, refused, mistakes);
    if (mistakes > 0)
        return err_code(e, EXIT_WRONG, "the judge does not work: %zu of %zu verdicts are wrong",
                        mistakes, l->count - left);
    return left == 0 ? EXIT_OK
                     : err_code(e, EXIT_INCONCLUSIVE, "%zu of %zu remain to be judged%s", left,
                                l->count, l->query->csv ? ": the same command continues" : "");
}

exit_code judge_cheats_run(const judge_settings *s, const cheat_query *q, const device_facts *f,
                           err *e) {
    subject_list l = {.query = q, .facts = f, .seed = s->seed};
    bool ok = find_subjects(&l, e) && open_kept(&l, e);
    judge_candidate *given = array_new(l.count + 1, sizeof *given);
    size_t count = 0;
    l.asked = array_new(l.count + 1, sizeof *l.asked);
    for (size_t i = 0; i < l.count; i++) {
        const subject *x = &l.items[i];
        if (x->state == JUDGED_BEFORE)
            continue;
        l.asked[count] = i;
        given[count++] = (judge_candidate){x->path, x->stages[0] ? NULL : x->base, x->base};
    }
    if (ok && !q->json)
        report_print_header(f, s->seed);
    fflush(stdout);
    ok = ok && judge_run(s, given, count, keep_answer, &l, e);
    exit_code code = ok ? report_answers(&l, e) : e->code;
    csv_free(l.file);
    free(given);
    free(l.asked);
    free(l.used);
    free(l.skipped);
    free(l.items);
    return code;
}
