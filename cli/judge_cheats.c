#include "judge_cheats.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/json.h"
#include "harness/base/os.h"
#include "harness/base/path.h"
#include "harness/base/table.h"
#include "harness/check/suite.h"
#include "kernels/ops.h"
#include "output.h"
#include "report.h"

typedef struct {
    char name[96], path[PATH_MAX];
    char base[96], stages[64], because[160]; /* stages "": an honest kernel */
} subject;

typedef struct {
    subject *items;
    size_t count, room;
} subject_list;

static bool is_wanted(const cheat_query *q, const char *name) {
    bool wanted = q->filter_count == 0;
    for (size_t i = 0; i < q->filter_count; i++)
        wanted |= strstr(name, q->filters[i]) != NULL;
    return wanted;
}

static void read_line(const char *text, const char *key, char *out, size_t size) {
    const char *at = strstr(text, key);
    at = at ? at + strlen(key) : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
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
    free(text);
    if (!s.base[0] || !s.stages[0] || !s.because[0])
        return err_set(e, EXIT_CANNOT, "the cheat %.80s does not say why it must be refused", name);
    *ARRAY_ADD(l->items, l->count, l->room) = s;
    return true;
}

/* In a project there are other ops, which the cheats are not for. */
static bool add_cheats(subject_list *l, const cheat_query *q, err *e) {
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
        const char *name = entries[i]->d_name, *dot = strrchr(name, '.');
        if (ok && dot && strcmp(dot, ".metal") == 0 && is_wanted(q, name))
            ok = add_cheat(l, folder, name, e);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

static bool add_honest(subject_list *l, const cheat_query *q, const device_facts *f,
                       const device_facts *soft, err *e) {
    library *lib = library_new(NULL, NULL, e);
    bool ok = lib != NULL;
    for (size_t i = 0; ok && i < registry_count; i++) {
        size_t taken = 0;
        for (size_t k = 0; ok && k < registry[i]->kernel_count; k++) {
            const kernel *x = &registry[i]->kernels[k];
            subject s = {.base = ""};
            if (!is_wanted(q, x->name) || !device_offers(f, x->needs, NULL) ||
                !device_offers(soft, x->needs, NULL) || (taken > 0 && !q->all_kernels))
                continue;
            taken++;
            snprintf(s.name, sizeof s.name, "%s", x->name);
            snprintf(s.base, sizeof s.base, "%s", x->name);
            ok = library_find_path(lib, x->file, s.path, sizeof s.path, e);
            *ARRAY_ADD(l->items, l->count, l->room) = s;
        }
    }
    library_free(lib);
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

static void print_json(const judge_settings *s, const device_facts *f, const subject_list *l,
                       const judge_answer *answers) {
    output_start_json(stdout, "judge", f, s->seed);
    fputs(",\n  \"subjects\": [", stdout);
    for (size_t i = 0; i < l->count; i++) {
        const subject *x = &l->items[i];
        const judge_answer *a = &answers[i];
        const char *mistake = find_mistake(x, a);
        printf("%s\n    {", i ? "," : "");
        json_print_field(stdout, "name", x->name);
        json_add_field(stdout, "kind", x->stages[0] ? "cheat" : "honest");
        json_add_field(stdout, "expected", x->stages[0] ? x->stages : "accepted");
        json_add_field(stdout, "stage", a->is_right ? "accepted" : judge_get_stage_name(a->stage));
        json_add_field(stdout, "reason", a->is_our_failure ? a->error.text : a->reason);
        json_add_field(stdout, "mistake", mistake ? mistake : "");
        putchar('}');
    }
    puts("\n  ]\n}");
}

static exit_code report_answers(const judge_settings *s, const cheat_query *q,
                                const device_facts *f, const subject_list *l,
                                const judge_answer *answers, err *e) {
    FILE *out = q->json ? stderr : stdout;
    size_t cheats = 0, honest = 0, accepted = 0, refused = 0, mistakes = 0;
    for (size_t i = 0; i < l->count; i++) {
        const char *mistake = find_mistake(&l->items[i], &answers[i]);
        bool is_cheat = l->items[i].stages[0] != 0;
        *(is_cheat ? &cheats : &honest) += 1;
        accepted += is_cheat && answers[i].is_right && !answers[i].is_our_failure;
        refused += !is_cheat && !answers[i].is_right;
        mistakes += mistake != NULL;
        if (is_cheat || mistake)
            print_row(out, &l->items[i], &answers[i], mistake);
    }
    if (q->json)
        print_json(s, f, l, answers);
    fprintf(
        out,
        "%zu cheats, %zu accepted; %zu honest kernels, %zu refused; %zu verdicts not as expected\n",
        cheats, accepted, honest, refused, mistakes);
    return mistakes == 0
               ? EXIT_OK
               : err_code(e, EXIT_WRONG, "the judge does not work: %zu of %zu verdicts are wrong",
                          mistakes, l->count);
}

exit_code judge_cheats_run(const judge_settings *s, const cheat_query *q, const device_facts *f,
                           err *e) {
    subject_list l = {.count = 0};
    device_facts soft;
    const suite software = {.device = "soft"};
    bool ok = suite_find_device(&software, &soft, e) && add_cheats(&l, q, e) &&
              add_honest(&l, q, f, &soft, e);
    if (ok && l.count == 0)
        ok = err_set(e, EXIT_USAGE, "no cheat and no kernel has such a name");
    judge_candidate *given = array_new(l.count + 1, sizeof *given);
    judge_answer *answers = array_new(l.count + 1, sizeof *answers);
    for (size_t i = 0; i < l.count; i++) {
        const subject *x = &l.items[i];
        given[i] = (judge_candidate){x->path, x->stages[0] ? NULL : x->base, x->base};
    }
    if (ok && !q->json)
        report_print_header(f, s->seed);
    fflush(stdout);
    ok = ok && judge_run(s, given, l.count, answers, e);
    exit_code code = ok ? report_answers(s, q, f, &l, answers, e) : e->code;
    free(given);
    free(answers);
    free(l.items);
    return code;
}
