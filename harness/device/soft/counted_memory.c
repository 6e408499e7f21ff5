/* counted_memory: see counted_memory.h. */
#include "counted_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "harness/base/array.h"

enum { WAYS = 16, CACHES = 3, MOST_BUFFERS = SOFT_BUFFERS };
static const uint64_t cache_bytes[CACHES] = {8 << 10, 64 << 10, 8 << 20};

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

struct counted_memory {
    region regions[MOST_BUFFERS];
    int count, last;        /* the one that was found last */
    uint32_t next_number;   /* of the sectors of the next region */
    uint64_t elsewhere;     /* the first sector that was touched in no region; 0: none was */
    uint32_t *tags[CACHES]; /* (sets, ways), the most recent first: number + 1 */
    bool has_once;
    uint32_t simd; /* which goes on, of its threadgroup */
    uint32_t group_turn, simd_turn, next_simd_turn;
    uint32_t simd_turns[SOFT_MAX_GROUPS]; /* of the simdgroups of the threadgroup */
};

counted_memory *counted_memory_new(void) {
    counted_memory *m = array_new(1, sizeof *m);
    for (int i = 0; i < CACHES; i++)
        m->tags[i] = array_new(cache_bytes[i] / COUNT_SECTOR, sizeof **m->tags);
    return m;
}

static void forget_regions(counted_memory *m) {
    for (int i = 0; i < m->count; i++)
        free(m->regions[i].reads);
    m->count = m->last = 0;
}

void counted_memory_free(counted_memory *m) {
    if (!m)
        return;
    forget_regions(m);
    for (int i = 0; i < CACHES; i++)
        free(m->tags[i]);
    free(m);
}

static void empty_cache(counted_memory *m, int i) {
    memset(m->tags[i], 0, cache_bytes[i] / COUNT_SECTOR * sizeof **m->tags);
}

void counted_memory_begin(counted_memory *m) {
    forget_regions(m);
    for (int i = 0; i < CACHES; i++)
        empty_cache(m, i);
    m->group_turn = m->next_simd_turn = m->next_number = 0;
    m->elsewhere = 0;
    m->has_once = false;
}

void counted_memory_add(counted_memory *m, uint64_t begin, uint64_t bytes, count_space space,
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

void counted_memory_begin_group(counted_memory *m) {
    empty_cache(m, 0);
    m->group_turn++;
    for (int i = 0; i < m->count; i++)
        m->regions[i].had = 0;
    for (int i = 0; i < SOFT_MAX_GROUPS; i++)
        m->simd_turns[i] = 0;
}

void counted_memory_begin_simdgroup(counted_memory *m, uint32_t index) {
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

bool counted_memory_find(counted_memory *m, uint64_t at, count_space *space) {
    const region *r = find_region(m, at);
    *space = r ? r->space : SPACES;
    return r != NULL;
}

bool counted_memory_is_had(counted_memory *m, uint64_t at, uint32_t site, int lanes) {
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

bool counted_memory_get_once(const counted_memory *m, int i, counted_once *out) {
    for (int k = 0; k < m->count; k++)
        if (m->regions[k].once.simdgroups && i-- == 0) {
            *out = m->regions[k].once;
            return true;
        }
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

void counted_memory_device(counted_memory *m, const simd_access *a, uint64_t n[COUNT_FIELDS]) {
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
void counted_memory_threadgroup(const simd_access *a, uint64_t n[COUNT_FIELDS]) {
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
