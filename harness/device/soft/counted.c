/* counted: see counted.h.
 *
 * Lanes run one after the other, each until the next meeting; what each of them did at each site is kept
 * until all have stopped, and then folded: the n-th time of a site in all lanes is one instruction of the
 * simdgroup. Sites are folded in the order in which the first lane came to them, all first times before
 * all second times, which is about the order in which a GPU goes through a loop.
 *
 * The caches have 16 ways, replace the sector that was used least recently, and see sectors in the order in
 * which the software device runs simdgroups, one after the other: 8 KB that are empty when a threadgroup
 * begins; what misses there goes to 64 KB, and from there to 8 MB, both empty when the launch begins. */
#include "counted.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"

/* Memory: what one access of a simdgroup does to it ------------------------------------------------ */

enum { ACCESS_LANES = 32 };

/* One access of a simdgroup. */
typedef struct {
    uint64_t at[ACCESS_LANES];  /* of the lanes that take part, in order */
    uint8_t lane[ACCESS_LANES]; /* which these are */
    int lanes;
    uint32_t bytes; /* of each lane */
    bool is_load, is_atomic;
} simd_access;

enum { WAYS = 16, CACHES = 3, MOST_BUFFERS = SOFT_BUFFERS };
static const uint64_t cache_bytes[CACHES] = {8 << 10, 64 << 10, 8 << 20};

/* A buffer that is_once and was loaded: at which site, by how many simdgroups and lanes. */
typedef struct {
    uint32_t site;
    uint64_t simdgroups, lanes;
} counted_once;

/* Who has loaded which bytes of a sector: a bit each. */
typedef struct {
    uint32_t grid, group, simd;
    uint32_t group_turn, simd_turn; /* when the masks are of: older ones count as 0 */
} reads;

typedef struct {
    uint64_t begin, end;
    count_space space;
    reads *reads;    /* of each sector; untouched pages take no memory */
    uint32_t number; /* of its first sector: caches do not depend on where memory happens to be */
    bool is_once;
    uint32_t had; /* a bit for each simdgroup of the threadgroup that has loaded it */
    counted_once once;
} region;

typedef struct {
    region regions[MOST_BUFFERS];
    int count, last;        /* the one that was found last */
    uint32_t next_number;   /* of the sectors of the next region */
    uint64_t elsewhere;     /* the first sector that was touched in no region; 0: none was */
    uint32_t *tags[CACHES]; /* (sets, ways), the most recent first: number + 1 */
    bool has_once;
    uint32_t simd; /* which goes on, of its threadgroup */
    uint32_t group_turn, simd_turn, next_simd_turn;
    uint32_t simd_turns[SOFT_MAX_GROUPS]; /* of the simdgroups of the threadgroup */
} counted_memory;

static void forget_regions(counted_memory *m) {
    for (int i = 0; i < m->count; i++)
        free(m->regions[i].reads);
    m->count = m->last = 0;
}

static void empty_cache(counted_memory *m, int i) {
    memset(m->tags[i], 0, cache_bytes[i] / COUNT_SECTOR * sizeof **m->tags);
}

/* A launch begins, with no buffers. */
static void memory_begin(counted_memory *m) {
    forget_regions(m);
    for (int i = 0; i < CACHES; i++)
        empty_cache(m, i);
    m->group_turn = m->next_simd_turn = m->next_number = 0;
    m->elsewhere = 0;
    m->has_once = false;
}

static void memory_add(counted_memory *m, uint64_t begin, uint64_t bytes, count_space space,
                       bool is_once) {
    region r = {.begin = begin,
                .end = begin + bytes,
                .space = space,
                .number = m->next_number,
                .is_once = is_once};
    uint64_t first = begin / COUNT_SECTOR, sectors = (r.end + COUNT_SECTOR) / COUNT_SECTOR - first;
    for (int i = 0; i < m->count; i++)
        if (m->regions[i].begin <= begin && r.end <= m->regions[i].end)
            return;                             /* bound twice */
    r.reads = calloc(sectors, sizeof *r.reads); /* NULL: bytes read again are not known */
    m->next_number += (uint32_t)sectors;
    m->has_once |= is_once;
    m->regions[m->count++] = r;
}

static void memory_begin_group(counted_memory *m) {
    empty_cache(m, 0);
    m->group_turn++;
    for (int i = 0; i < m->count; i++)
        m->regions[i].had = 0;
    for (int i = 0; i < SOFT_MAX_GROUPS; i++)
        m->simd_turns[i] = 0;
}

static void memory_begin_simdgroup(counted_memory *m, uint32_t index) {
    if (!m->simd_turns[index])
        m->simd_turns[index] = ++m->next_simd_turn;
    m->simd_turn = m->simd_turns[index];
    m->simd = index;
}

static region *find_region(counted_memory *m, uint64_t at) {
    region *last = &m->regions[m->last];
    if (m->count > 0 && at >= last->begin && at < last->end)
        return last;
    for (int i = 0; i < m->count; i++)
        if (at >= m->regions[i].begin && at < m->regions[i].end)
            return &m->regions[m->last = i];
    return NULL;
}

/* A load of a buffer that is_once, whose value the simdgroup has already? Else it has from now on. */
static bool is_had(counted_memory *m, uint64_t at, uint32_t site, int lanes) {
    region *r = m->has_once ? find_region(m, at) : NULL;
    if (!r || !r->is_once)
        return false;
    static_assert(SOFT_MAX_GROUPS <= 32, "a bit each");
    const uint32_t bit = UINT32_C(1) << m->simd;
    if (r->had & bit)
        return true;
    r->had |= bit;
    r->once.site = r->once.simdgroups ? r->once.site : site;
    r->once.simdgroups++;
    r->once.lanes += (uint64_t)lanes;
    return false;
}

/* Sectors of all regions in their order; what is in none, a table of the kernel, from the middle on. */
static uint32_t number_sector(counted_memory *m, const region *r, uint64_t sector) {
    if (r)
        return r->number + (uint32_t)(sector - r->begin / COUNT_SECTOR);
    m->elsewhere = m->elsewhere ? m->elsewhere : sector;
    return UINT32_C(0x80000000) + (uint32_t)(sector - m->elsewhere);
}

/* Where the tag is among the ways; WAYS - 1, the oldest, if it is not. All at a time: most time is spent here. */
static int find_way(const uint32_t *set, uint32_t tag) {
    typedef uint32_t four __attribute__((vector_size(16)));
    four hits = {0}, bits = {1, 2, 4, 8};
    for (int i = 0; i < WAYS / 4; i++, bits <<= 4) {
        four ways;
        memcpy(&ways, set + 4 * i, sizeof ways);
        hits |= (four)(ways == tag) & bits;
    }
    const uint32_t found = hits[0] | hits[1] | hits[2] | hits[3];
    return found ? __builtin_ctz(found) : WAYS - 1;
}

/* Is the sector of this number in the cache? It is from now on. */
static bool touch(counted_memory *m, int cache, uint32_t number) {
    const uint32_t sets = (uint32_t)(cache_bytes[cache] / COUNT_SECTOR / WAYS);
    uint32_t *set = m->tags[cache] + ((number ^ number / sets) & (sets - 1)) * WAYS;
    const uint32_t tag = number + 1;
    if (set[0] == tag)
        return true;
    const int at = find_way(set, tag);
    const bool found = set[at] == tag;
    for (int i = at; i > 0; i--)
        set[i] = set[i - 1];
    set[0] = tag;
    return found;
}

/* The bytes of one sector that an access asks for. */
typedef struct {
    uint64_t sector;
    uint32_t mask;
} piece;

/* Lanes mostly go up: a sector above all others is new, another is looked for from the last one back. */
static int add_piece(piece *pieces, int count, uint64_t *most, uint64_t sector, uint32_t mask) {
    const bool is_new = sector > *most;
    *most = is_new ? sector : *most;
    for (int i = is_new ? -1 : count - 1; i >= 0; i--)
        if (pieces[i].sector == sector) {
            pieces[i].mask |= mask;
            return count;
        }
    pieces[count] = (piece){sector, mask};
    return count + 1;
}

static int cut(const simd_access *a, piece *pieces) {
    int count = 0;
    uint64_t most = 0;
    for (int i = 0; i < a->lanes; i++)
        for (uint64_t at = a->at[i], end = at + a->bytes; at < end;) {
            uint64_t next = (at / COUNT_SECTOR + 1) * COUNT_SECTOR, to = next < end ? next : end;
            uint32_t bits = to - at == 32 ? ~0u : (1u << (to - at)) - 1;
            count = add_piece(pieces, count, &most, at / COUNT_SECTOR, bits << at % COUNT_SECTOR);
            at = to;
        }
    return count;
}

static void note_reads(const counted_memory *m, const region *r, const piece *p, uint64_t *n) {
    reads *x = &r->reads[p->sector - r->begin / COUNT_SECTOR];
    if (x->group_turn != m->group_turn)
        x->group = 0;
    if (x->simd_turn != m->simd_turn)
        x->simd = 0;
    n[COUNT_NEW_GRID] += (uint64_t)__builtin_popcount(p->mask & ~x->grid);
    n[COUNT_NEW_GROUP] += (uint64_t)__builtin_popcount(p->mask & ~x->group);
    n[COUNT_NEW_SIMD] += (uint64_t)__builtin_popcount(p->mask & ~x->simd);
    x->grid |= p->mask;
    x->group |= p->mask;
    x->simd |= p->mask;
    x->group_turn = m->group_turn;
    x->simd_turn = m->simd_turn;
}

static void find_contention(const simd_access *a, uint64_t *n) {
    for (int i = 1; i < a->lanes; i++)
        for (int k = 0; k < i; k++)
            if (a->at[k] == a->at[i]) {
                n[COUNT_CONTENTION]++;
                break;
            }
}

static void count_device(counted_memory *m, const simd_access *a, uint64_t n[COUNT_FIELDS]) {
    piece pieces[ACCESS_LANES * 4];
    const int count = cut(a, pieces);
    uint64_t lines = 0, last = 0;
    n[COUNT_SECTORS] += (uint64_t)count;
    for (int i = 0; i < count; i++) {
        const uint64_t line = pieces[i].sector / (COUNT_LINE / COUNT_SECTOR);
        bool is_new = true;
        for (int k = line > last ? -1 : i - 1; k >= 0 && is_new; k--)
            is_new = pieces[k].sector / (COUNT_LINE / COUNT_SECTOR) != line;
        lines += is_new;
        last = line > last ? line : last;
        n[COUNT_USED] += (uint64_t)__builtin_popcount(pieces[i].mask);
        const region *r = find_region(m, pieces[i].sector * COUNT_SECTOR);
        r = r ? r : find_region(m, pieces[i].sector * COUNT_SECTOR + COUNT_SECTOR - 1);
        r = r || count > 1 ? r : find_region(m, a->at[0]); /* smaller than a sector */
        if (a->is_load && r && r->reads)
            note_reads(m, r, &pieces[i], n);
        const uint32_t number = number_sector(m, r, pieces[i].sector);
        for (int k = 0; k < CACHES && !touch(m, k, number); k++)
            n[COUNT_MISS_8K + k] += a->is_load;
    }
    n[COUNT_LINES] += lines;
    if (a->is_atomic)
        find_contention(a, n);
}

/* Cycles of some lanes: the bank that has most words to give. */
static uint64_t count_cycles(const simd_access *a, int from, int to) {
    uint64_t words[ACCESS_LANES * 4], most = 0;
    uint8_t in_bank[COUNT_BANKS] = {0};
    int count = 0;
    for (int i = from; i < to; i++)
        for (uint64_t w = a->at[i] / 4; w <= (a->at[i] + a->bytes - 1) / 4; w++) {
            int k = count - 1;
            while (k >= 0 && words[k] != w)
                k--;
            if (k >= 0 || count == ACCESS_LANES * 4)
                continue;
            words[count++] = w;
            uint8_t have = ++in_bank[w % COUNT_BANKS];
            most = have > most ? have : most;
        }
    return most;
}

/* Does each lane with an even number ask for the same as the next one? */
static bool is_in_pairs(const simd_access *a) {
    bool is = a->lanes % 2 == 0;
    for (int i = 0; i < a->lanes && is; i += 2)
        is = a->at[i] == a->at[i + 1] && a->lane[i] + 1 == a->lane[i + 1] && a->lane[i] % 2 == 0;
    return is;
}

/* Lanes that ask for 8 or 16 bytes are served a half or a quarter of the simdgroup at a time; all at once if
 * pairs of them ask for the same 8 bytes, which an H200 then counts as conflicts where it takes two cycles. */
static void count_threadgroup(const simd_access *a, uint64_t n[COUNT_FIELDS]) {
    const int step = a->bytes > 8 ? 8 : a->bytes > 4 && !is_in_pairs(a) ? 16 : 32;
    for (int i = 0, end; i < a->lanes; i = end) {
        for (end = i; end < a->lanes && a->lane[end] / step == a->lane[i] / step;)
            end++;
        uint64_t cycles = count_cycles(a, i, end);
        n[COUNT_CONFLICTS] += cycles > 1 ? cycles - 1 : 0;
    }
    if (a->is_atomic)
        find_contention(a, n);
}

/* Sites ------------------------------------------------------------------------------------------- */

/* Accesses of a lane between two meetings that are kept; all sites together have less than 1 GB. */
enum { FIRST_ROOM = 64, MOST_ROOM = 1 << 20, MOST_SITES = 1 << 20 };
#define MOST_BYTES (UINT64_C(1) << 30)

typedef struct {
    char kind;
    uint32_t bytes;  /* of an access; of a block: its instructions */
    uint32_t shared; /* bytes of an access to threadgroup memory */
    uint32_t most;   /* while it is folded; of a block 0 */
    uint64_t n[SPACES][COUNT_FIELDS];
} site;

struct soft_counter {
    soft_counts hooks; /* first: the kernel's own */
    soft_worker *worker;
    counted_memory memory;
    site *sites;
    size_t count;
    uint64_t kept_bytes;
    uint32_t barrier;               /* the site that was reached last */
    uint64_t work[SOFT_MAX_GROUPS]; /* instructions of each simdgroup since the last barrier */
    uint64_t simdgroups, lanes;     /* that the launch had so far */
    counted_row *rows;
    size_t row_count, row_room;
};

static soft_counter *counter_of(soft_worker *w) {
    return (soft_counter *)(void *)w->counts;
}

/* Where an access goes; SPACES: into the device's own memory, or to a value that comes with the launch. */
static count_space find_space(soft_counter *c, uint64_t at) {
    const soft_worker *w = c->worker;
    uint64_t inside = at - (uint64_t)(uintptr_t)w;
    if (inside < SOFT_REGION_BYTES) {
        uint64_t shared = at - (uint64_t)(uintptr_t)w->threadgroup_memory;
        return inside >= SOFT_STACKS_AT                ? SPACE_PRIVATE
               : shared < sizeof w->threadgroup_memory ? SPACE_THREADGROUP
                                                       : SPACES;
    }
    const region *r = find_region(&c->memory, at);
    if (r)
        return r->space;
    const uint64_t in_launch = at - (uint64_t)(uintptr_t)w->launch;
    return in_launch < sizeof *w->launch ? SPACES : SPACE_CONSTANT; /* a table of the kernel */
}

/* Bytes from each lane to the next, if they are the same for all lanes at all times. */
static void note_stride(const simd_access *a, uint64_t *n) {
    const uint64_t step = a->lanes > 1 ? a->at[1] - a->at[0] : 0;
    bool is_same = a->lanes > 1;
    for (int i = 1; i < a->lanes && is_same; i++)
        is_same = a->at[i] - a->at[i - 1] == step;
    const bool is_first = n[COUNT_TIMES] == 1;
    if (a->lanes > 1)
        n[COUNT_STRIDE] = is_same && (is_first || n[COUNT_STRIDE] == step) ? step : COUNT_MIXED;
}

static void fold_access(soft_counter *c, site *s, const soft_site *kept, uint32_t n) {
    simd_access a = {
        .bytes = s->bytes, .is_load = s->kind == PLACE_LOAD, .is_atomic = s->kind == PLACE_ATOMIC};
    for (int lane = 0; lane < SOFT_LANES; lane++)
        if (kept->times[lane] > n) {
            a.lane[a.lanes] = (uint8_t)lane;
            a.at[a.lanes++] = kept->at[(size_t)lane * kept->room + n];
        }
    count_space space = find_space(c, a.at[0]);
    if (space == SPACE_THREADGROUP)
        a.bytes = s->shared;
    if (space == SPACES || a.bytes == 0 ||
        (a.is_load && is_had(&c->memory, a.at[0], (uint32_t)(s - c->sites), a.lanes)))
        return;
    uint64_t *sum = s->n[space];
    sum[COUNT_TIMES]++;
    sum[COUNT_LANES] += (uint64_t)a.lanes;
    sum[COUNT_BYTES] += (uint64_t)a.lanes * a.bytes;
    note_stride(&a, sum);
    if (space == SPACE_THREADGROUP)
        count_threadgroup(&a, sum);
    else if (space != SPACE_PRIVATE)
        count_device(&c->memory, &a, sum);
}

/* More accesses than there is room for: the lanes are known, not where they went. */
static void fold_unseen(site *s, const soft_site *kept) {
    for (int lane = 0; lane < SOFT_LANES; lane++)
        if (kept->times[lane] > kept->room) {
            uint64_t more = kept->times[lane] - kept->room;
            s->n[SPACE_DEVICE][COUNT_UNSEEN] += more;
            s->n[SPACE_DEVICE][COUNT_LANES] += more;
            s->n[SPACE_DEVICE][COUNT_BYTES] += more * s->bytes;
        }
}

static void fold_block(soft_counter *c, site *s, const soft_site *kept) {
    uint32_t most = 0;
    for (int lane = 0; lane < SOFT_LANES; lane++) {
        most = kept->times[lane] > most ? kept->times[lane] : most;
        s->n[0][COUNT_LANES] += kept->times[lane];
    }
    s->n[0][COUNT_TIMES] += most;
    c->work[c->worker->running->index] += (uint64_t)most * s->bytes;
    if (s->kind == PLACE_BARRIER)
        c->barrier = (uint32_t)(s - c->sites);
}

/* How often a lane came to the site at most, of the times that are kept; the larger of that and `most`. */
static uint32_t find_most(site *s, const soft_site *kept, uint32_t most) {
    s->most = 0;
    for (int lane = 0; lane < SOFT_LANES; lane++)
        s->most = kept->times[lane] > s->most ? kept->times[lane] : s->most;
    s->most = s->most < kept->room ? s->most : kept->room;
    return s->most > most ? s->most : most;
}

void soft_counter_fold(soft_worker *w) {
    soft_counter *c = counter_of(w);
    const soft_counts *h = &c->hooks;
    uint32_t most = 0;
    memory_begin_simdgroup(&c->memory, w->running->index);
    for (soft_u32 i = 0; i < h->used_count; i++) {
        const soft_u32 at = h->used[i];
        const soft_site *kept = &h->sites[at];
        if (c->sites[at].kind == PLACE_LOAD || c->sites[at].kind == PLACE_STORE ||
            c->sites[at].kind == PLACE_ATOMIC)
            most = find_most(&c->sites[at], kept, most);
        else
            fold_block(c, &c->sites[at], kept);
    }
    for (uint32_t n = 0; n < most; n++)
        for (soft_u32 i = 0; i < h->used_count; i++) {
            const soft_site *kept = &h->sites[h->used[i]];
            if (n < c->sites[h->used[i]].most)
                fold_access(c, &c->sites[h->used[i]], kept, n);
        }
    for (soft_u32 i = 0; i < h->used_count; i++) {
        soft_site *kept = &h->sites[h->used[i]];
        if (kept->at)
            fold_unseen(&c->sites[h->used[i]], kept);
        memset(kept->times, 0, sizeof kept->times);
        kept->is_used = 0;
    }
    c->hooks.used_count = 0;
    c->hooks.last = 0;
}

static soft_u32 grow(soft_worker *w, soft_u32 at, soft_u32 n) {
    soft_counter *c = counter_of(w);
    soft_site *s = &c->hooks.sites[at];
    uint32_t room = s->room ? 2 * s->room : FIRST_ROOM;
    uint64_t more = (uint64_t)(room - s->room) * SOFT_LANES * sizeof *s->at;
    if (n >= MOST_ROOM || c->kept_bytes + more > MOST_BYTES)
        return 0;
    soft_u64 *moved = array_new((size_t)room * SOFT_LANES, sizeof *moved);
    for (size_t lane = 0; lane < SOFT_LANES && s->at; lane++)
        memcpy(moved + lane * room, s->at + lane * s->room, s->room * sizeof *moved);
    free(s->at);
    s->at = moved;
    s->room = room;
    c->kept_bytes += more;
    return 1;
}

/* Launches ------------------------------------------------------------------------------------- */

soft_counter *soft_counter_new(soft_worker *w) {
    soft_counter *c = array_new(1, sizeof *c);
    c->worker = w;
    for (int i = 0; i < CACHES; i++)
        c->memory.tags[i] = array_new(cache_bytes[i] / COUNT_SECTOR, sizeof **c->memory.tags);
    c->hooks.fold = soft_counter_fold;
    c->hooks.grow = grow;
    w->counts = &c->hooks;
    return c;
}

static void forget_sites(soft_counter *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->hooks.sites[i].at);
    free(c->hooks.sites);
    free(c->hooks.used);
    free(c->sites);
    c->hooks.sites = NULL;
    c->hooks.used = NULL;
    c->sites = NULL;
    c->count = 0;
    c->kept_bytes = 0;
}

void soft_counter_free(soft_counter *c) {
    if (!c)
        return;
    c->worker->counts = NULL;
    forget_sites(c);
    forget_regions(&c->memory);
    for (int i = 0; i < CACHES; i++)
        free(c->memory.tags[i]);
    free(c->rows);
    free(c);
}

/* What the engine must know of the sites; the program reads the rest. */
static bool read_sites(soft_counter *c, const char *text) {
    unsigned long count = 0;
    if (!text || sscanf(text, SITES_HEAD "%lu", &count) != 1 || count > MOST_SITES)
        return false;
    c->count = count;
    c->sites = array_new(count + 1, sizeof *c->sites);
    c->hooks.sites = array_new(count + 1, sizeof *c->hooks.sites);
    c->hooks.used = array_new(count + 1, sizeof *c->hooks.used);
    for (text = strchr(text, '\n'); text && text[1]; text = strchr(text + 1, '\n')) {
        size_t at;
        count_row r;
        if (!count_read_site(text + 1, &at, &r) || at >= count || r.kind == PLACE_ARRAY)
            continue;
        c->sites[at].kind = (char)r.kind;
        c->sites[at].bytes += r.kind == PLACE_BLOCK ? r.work[WORK_ALL] : r.work[0];
        c->sites[at].shared = r.work[1];
    }
    return true;
}

bool soft_counter_begin(soft_counter *c, const char *sites, const soft_bound bound[SOFT_BUFFERS]) {
    forget_sites(c);
    memory_begin(&c->memory);
    c->hooks.used_count = c->hooks.last = 0;
    memset(c->work, 0, sizeof c->work);
    c->simdgroups = c->lanes = 0;
    for (int i = 0; i < SOFT_BUFFERS; i++)
        if (bound[i].is_bound && bound[i].bytes)
            memory_add(&c->memory, (uint64_t)(uintptr_t)bound[i].begin,
                       bound[i].is_once ? bound[i].element_bytes : bound[i].bytes,
                       bound[i].is_value      ? SPACES
                       : bound[i].is_constant ? SPACE_CONSTANT
                                              : SPACE_DEVICE,
                       bound[i].is_once);
    return read_sites(c, sites);
}

/* Simdgroups that did not need a constant have loaded it too. */
static void add_idle_loads(soft_counter *c) {
    for (int i = 0; i < c->memory.count; i++) {
        const counted_once *once = &c->memory.regions[i].once;
        if (!once->simdgroups)
            continue;
        const uint64_t idle = c->simdgroups - once->simdgroups, lanes = c->lanes - once->lanes;
        const uint64_t bytes = c->sites[once->site].bytes;
        uint64_t *n = c->sites[once->site].n[SPACE_CONSTANT];
        n[COUNT_TIMES] += idle;
        n[COUNT_SECTORS] += idle;
        n[COUNT_LINES] += idle;
        n[COUNT_LANES] += lanes;
        n[COUNT_BYTES] += lanes * bytes;
        n[COUNT_USED] += idle * bytes;
        n[COUNT_NEW_SIMD] += idle * bytes;
    }
}

const counted_row *soft_counter_end(soft_counter *c, size_t *count) {
    c->row_count = 0;
    add_idle_loads(c);
    for (size_t i = 0; i < c->count; i++)
        for (uint32_t k = 0; k < SPACES; k++) {
            const uint64_t *n = c->sites[i].n[k];
            if (!n[COUNT_LANES])
                continue;
            counted_row *r = ARRAY_ADD(c->rows, c->row_count, c->row_room);
            *r = (counted_row){.site = (uint32_t)i, .space = k};
            memcpy(r->n, n, sizeof r->n);
        }
    *count = c->row_count;
    return c->rows;
}

void soft_counter_begin_group(soft_worker *w) {
    soft_counter *c = counter_of(w);
    memory_begin_group(&c->memory);
    c->simdgroups += (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
    c->lanes += w->group_total;
}

void soft_counter_end_phase(soft_worker *w) {
    soft_counter *c = counter_of(w);
    const uint32_t groups = (w->group_total + SOFT_LANES - 1) / SOFT_LANES;
    uint64_t most = 0, sum = 0, *n = c->sites[c->barrier].n[0];
    for (uint32_t i = 0; i < groups; i++) {
        most = c->work[i] > most ? c->work[i] : most;
        sum += c->work[i];
        c->work[i] = 0;
    }
    n[COUNT_WORK_MOST] += most;
    n[COUNT_WORK_MEAN] += sum / groups;
}
