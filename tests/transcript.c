/* transcript: see transcript.h. */
#include "transcript.h"

#include <greatest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "harness/base/os.h"
#include "support.h"

enum { LONGEST = 1 << 16 };

static const char *prelude;
static bool is_for_device;

static char *take_line(char **at) {
    char *line = *at, *end = strchr(line, '\n');
    if (!*line)
        return NULL;
    *at = end ? end + 1 : line + strlen(line);
    if (end)
        *end = 0;
    return line;
}

/* "\n" becomes the end of a line. */
static const char *unescape(char *text) {
    for (char *p; (p = strstr(text, "\\n"));) {
        *p = '\n';
        memmove(p + 1, p + 2, strlen(p + 2) + 1);
    }
    return text;
}

static long count_text(const char *out, const char *text) {
    long count = 0;
    for (const char *p = out; *text && (p = strstr(p, text)); p += strlen(text))
        count++;
    return count;
}

/* Does the output of the last command agree with this line? */
static bool agrees(char *line) {
    static char kept[LONGEST];
    const char *out = command_get_output(), *text = line[0] ? unescape(line + 1) : "";
    char *end;
    text += *text == ' ';
    switch (line[0]) {
    case ':':
        return strstr(out, text) != NULL;
    case '!':
        return strstr(out, text) == NULL;
    case '^':
        return strncmp(out, text, strlen(text)) == 0;
    case '|':
        return strcmp(out, text) == 0;
    case '*': {
        long wanted = strtol(text, &end, 10);
        return count_text(out, end + 1) == wanted;
    }
    case '~':
        if (strcmp(text, "keep") == 0)
            snprintf(kept, sizeof kept, "%s", out);
        return (strcmp(kept, out) == 0) == (strcmp(text, "other") != 0);
    default:
        return !line[0] || line[0] == '#';
    }
}

TEST section(char *text) {
    static char command[LONGEST], message[LONGEST];
    char *line = take_line(&text);
    if (!is_for_device)
        SKIPm("not for this device");
    while (line) {
        if (line[0] == '$') {
            size_t used = (size_t)snprintf(command, sizeof command, "%s\n%s", prelude, line + 2);
            while ((line = take_line(&text)) && strncmp(line, "  ", 2) == 0 && used < LONGEST)
                used += (size_t)snprintf(command + used, LONGEST - used, "\n%s", line + 2);
            int status = line && line[0] == '?' ? atoi(line + 1) : 0;
            if (line && line[0] == '?')
                line = take_line(&text);
            ASSERTm("a command is too long", used < LONGEST);
            ASSERT_RUN(command, status);
            continue;
        }
        if (line[0] == '%') {
            snprintf(command, sizeof command, "%s\n%s", prelude, line + 2);
            if (command_run(command) != 0)
                SKIPm(line + 2);
        }
        bool is_met = line[0] == '%' || agrees(line);
        snprintf(message, sizeof message, "%s, which the output does not meet: %s", line,
                 command_get_output());
        ASSERTm(message, is_met);
        line = take_line(&text);
    }
    PASS();
}

/* Cuts off the tags; is the device one that they take? */
static bool takes_device(char *head) {
    char *tags = strchr(head, '@');
    bool is_soft = strcmp(support_get_device_name(), "soft") == 0;
    if (!tags)
        return true;
    tags[-1] = 0;
    return !(strstr(tags, "@soft") && !is_soft) &&
           !(strstr(tags, "@emulated") && !support_is_emulated()) &&
           !(strstr(tags, "@gpu") && support_is_emulated()) &&
           !(strstr(tags, "@not-mac") && support_is_mac());
}

void transcript_run(const char *suite) {
    char path[128];
    err e;
    snprintf(path, sizeof path, "tests/transcripts/%s.txt", suite);
    char *text = os_read_file(support_get_path(path), NULL, &e);
    char *next = text ? strstr(text, "\n== ") : NULL;
    if (!next) {
        fprintf(stderr, "no tests in %s\n", path);
        return;
    }
    prelude = text;
    while (next) {
        char *head = next + 4;
        *next = 0;
        next = strstr(head, "\n== ");
        if (next)
            *next = 0;
        char *at = head;
        take_line(&at);
        is_for_device = takes_device(head);
        printf("%s: ", head);
        RUN_TESTp(section, at);
        if (next)
            next[0] = '\n';
    }
    free(text);
    command_run("rm -rf $T $T.*");
}

/* Suites that have nothing but a transcript ------------------------------------------------------ */

#define TRANSCRIPT(name)                                                                           \
    SUITE(name##_suite);                                                                           \
    SUITE(name##_suite) {                                                                          \
        transcript_run(#name);                                                                     \
    }
TRANSCRIPT(arrows)
TRANSCRIPT(attack)
TRANSCRIPT(bench)
TRANSCRIPT(ci)
TRANSCRIPT(describe)
TRANSCRIPT(docs)
TRANSCRIPT(doctor)
TRANSCRIPT(failures)
TRANSCRIPT(faults)
TRANSCRIPT(changes)
TRANSCRIPT(gate)
TRANSCRIPT(import)
TRANSCRIPT(install)
TRANSCRIPT(launch)
TRANSCRIPT(lint)
TRANSCRIPT(page)
TRANSCRIPT(project)
TRANSCRIPT(run)
TRANSCRIPT(run_all)
TRANSCRIPT(shipped)
TRANSCRIPT(tune_verb)
