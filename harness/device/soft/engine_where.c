/* engine_where: at which line a kernel is that takes long. The program asks by a signal; the engine
 * notes the addresses that it finds on the fiber that it interrupts, and the program looks them up in
 * the line table of the kernel that it loaded. */
#include "engine_program.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/macro_place.h"
#include "harness/base/worker.h"
#include "object.h"
#include "rescue.h"

enum { WAIT_MS = 2, IMAGE_BYTES = 1 << 24 /* far larger than any kernel's object */ };

/* The engine's side ---------------------------------------------------------------------------- */

static engine_notes *notes;
static const soft_pool *pool;

/* Frames of the interrupted fiber, as far as its stack goes. */
static int note_frames(rescue_place p, uintptr_t *at) {
    const uintptr_t end = (p.sp / SOFT_STACK_BYTES + 1) * SOFT_STACK_BYTES;
    int n = 0;
    at[n++] = p.pc + 1; /* as if it were where a call returns to */
    while (n < ENGINE_FRAMES && p.fp >= p.sp && p.fp <= end - 16 && p.fp % 8 == 0) {
        uintptr_t frame[2];
        memcpy(frame, (const void *)p.fp, sizeof frame);
        at[n++] = frame[1];
        if (frame[0] <= p.fp)
            break;
        p.fp = frame[0];
    }
    return n;
}

static void note_place(int number, siginfo_t *info, void *context) {
    const rescue_place p = rescue_get_place(context);
    if (soft_pool_has_fiber(pool, p.sp)) {
        notes->frame_count = note_frames(p, notes->frames);
    } else if (info->si_code == SI_USER) {
        soft_pool_signal_helpers(pool, number); /* one of them may be in the kernel */
    }
}

void engine_note_places(engine_notes *n, const soft_pool *p) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    notes = n;
    pool = p;
    action.sa_sigaction = note_place;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

/* The program's side --------------------------------------------------------------------------- */

static bool spell_place(const engine_image *image, uintptr_t at, char *text, size_t size) {
    char file[128] = "";
    int line = 0;
    const uintptr_t offset = at - 1 - image->begin;
    if (offset >= IMAGE_BYTES || !soft_find_line(image->object, offset, file, sizeof file, &line) ||
        line <= 0 || !strchr(file, '.') || strncmp(file, DWARF_SHIM, strlen(DWARF_SHIM)) == 0)
        return false;
    macro_place_cut(file, &(macro_place){.line = 0});
    snprintf(text, size, "%.40s:%d", file, line);
    return true;
}

bool engine_look_where(const soft_engine *g) {
    const engine_image *image = engine_find_running(g);
    char text[WORKER_NOTE_BYTES * 2];
    engine_notes *n = g->side.notes;
    if (!image || !worker_is_served())
        return false;
    n->frame_count = 0;
    kill(g->process.pid, SIGUSR1);
    poll(NULL, 0, WAIT_MS);
    const int count = n->frame_count < ENGINE_FRAMES ? n->frame_count : ENGINE_FRAMES;
    for (int i = 0; i < count; i++)
        if (spell_place(image, n->frames[i], text, sizeof text)) {
            worker_note_place(text);
            return true;
        }
    return false;
}
