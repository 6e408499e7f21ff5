#include "share.h"

#include <pthread.h>

#include "os.h"

enum { MOST = 16 };

typedef struct {
    share_fn *part;
    void *context;
    size_t from, to;
} piece;

static void *run_piece(void *context) {
    const piece *p = context;
    p->part(p->context, p->from, p->to);
    return NULL;
}

void share_run(size_t count, size_t least, share_fn *part, void *context) {
    size_t pieces = count / (least ? least : 1), cores = (size_t)os_count_cpus();
    pieces = pieces < cores ? pieces : cores;
    pieces = pieces < MOST ? pieces : MOST;
    pieces = pieces ? pieces : 1;
    piece list[MOST];
    pthread_t threads[MOST];
    size_t started = 1; /* the first piece is the caller's */
    for (size_t i = 0; i < pieces; i++)
        list[i] = (piece){part, context, count * i / pieces, count * (i + 1) / pieces};
    while (started < pieces &&
           pthread_create(&threads[started], NULL, run_piece, &list[started]) == 0)
        started++;
    run_piece(&list[0]);
    for (size_t i = started; i < pieces; i++)
        run_piece(&list[i]);
    for (size_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
}
