/* gguf/write: see write.h. Owns the layout of what is written and the temporary file next to its name.
 *
 * Running out of memory while metadata is added is remembered and reported by
 * gguf_writer_finish_header, so that adding needs no checks. */
#include "write.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "harness/base/array.h"
#include "harness/base/os.h"
#include "harness/base/share.h"
#include "harness/base/size.h"

enum { PATH_BYTES = 512 };

typedef struct {
    uint8_t *data;
    size_t bytes, room;
} byte_list;

struct gguf_writer {
    char path[PATH_BYTES], beside[PATH_BYTES + 32];
    FILE *file;                     /* NULL before the header is written and after the end */
    byte_list values, infos, sizes; /* sizes: a uint64_t a tensor */
    uint64_t value_count, tensor_count, data_bytes;
    uint32_t alignment;
    uint64_t tensor, wrote; /* the tensor being written, and how much of it is */
};

gguf_writer *gguf_writer_new(const char *path, err *e) {
    gguf_writer *w = array_new(1, sizeof *w);
    struct stat s;
    if (strlen(path) >= sizeof w->path)
        err_set(e, EXIT_USAGE, "the path %.100s... is longer than %d bytes", path, PATH_BYTES - 1);
    else if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        err_set(e, EXIT_USAGE, "cannot write %.160s: it is %s", path,
                S_ISDIR(s.st_mode) ? "a folder" : "not a file");
    else {
        strcpy(w->path, path);
        snprintf(w->beside, sizeof w->beside, "%s.%ld.tmp", path, (long)getpid());
        w->alignment = 32;
        return w;
    }
    free(w);
    return NULL;
}

void gguf_writer_free(gguf_writer *w) {
    if (!w)
        return;
    if (w->file) {
        fclose(w->file);
        unlink(w->beside);
    }
    free(w->values.data);
    free(w->infos.data);
    free(w->sizes.data);
    free(w);
}

/* --- what is added --- */

static void put(byte_list *list, const void *data, size_t bytes) {
    if (bytes > list->room - list->bytes) {
        list->room = 2 * list->room + bytes;
        list->data = realloc(list->data, list->room);
        assert(list->data);
    }
    if (bytes)
        memcpy(list->data + list->bytes, data, bytes);
    list->bytes += bytes;
}

static void put_u32(byte_list *list, uint32_t value) {
    put(list, &value, sizeof value);
}

static void put_u64(byte_list *list, uint64_t value) {
    put(list, &value, sizeof value);
}

static void put_text(byte_list *list, gguf_text text) {
    put_u64(list, text.bytes);
    put(list, text.data, text.bytes);
}

static void put_key(gguf_writer *w, gguf_text key, gguf_value_type type) {
    put_text(&w->values, key);
    put_u32(&w->values, (uint32_t)type);
    w->value_count++;
}

static void put_array(gguf_writer *w, gguf_text key, gguf_value_type element, size_t count) {
    put_key(w, key, GGUF_ARRAY);
    put_u32(&w->values, (uint32_t)element);
    put_u64(&w->values, count);
}

void gguf_writer_add_u32(gguf_writer *w, const char *key, uint32_t value) {
    put_key(w, gguf_to_text(key), GGUF_U32);
    put_u32(&w->values, value);
}

void gguf_writer_add_f32(gguf_writer *w, const char *key, float value) {
    put_key(w, gguf_to_text(key), GGUF_F32);
    put(&w->values, &value, sizeof value);
}

void gguf_writer_add_bool(gguf_writer *w, const char *key, bool value) {
    put_key(w, gguf_to_text(key), GGUF_BOOL);
    put(&w->values, &(uint8_t){value}, 1);
}

void gguf_writer_add_text(gguf_writer *w, const char *key, gguf_text value) {
    put_key(w, gguf_to_text(key), GGUF_STRING);
    put_text(&w->values, value);
}

void gguf_writer_add_texts(gguf_writer *w, const char *key, const gguf_text *values, size_t count) {
    put_array(w, gguf_to_text(key), GGUF_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_text(&w->values, values[i]);
}

void gguf_writer_add_i32s(gguf_writer *w, const char *key, const int32_t *values, size_t count) {
    put_array(w, gguf_to_text(key), GGUF_I32, count);
    put(&w->values, values, size_multiply(count, sizeof *values));
}

/* The alignment of another file becomes that of this one: what the metadata says must hold. */
void gguf_writer_add_copy(gguf_writer *w, const gguf_value *value) {
    if (value->type == GGUF_ARRAY)
        put_array(w, value->key, value->element, value->count);
    else
        put_key(w, value->key, value->type);
    put(&w->values, value->data, value->bytes);
    if (gguf_text_equals(value->key, "general.alignment")) {
        assert(w->tensor_count == 0 && value->type == GGUF_U32);
        memcpy(&w->alignment, value->data, sizeof w->alignment);
    }
}

void gguf_writer_add_tensor(gguf_writer *w, const char *name, const gguf_type *type,
                            const uint64_t *dim, uint32_t dims) {
    assert(dims >= 1 && dims <= GGUF_DIMS && dim[0] % type->values == 0);
    assert(strlen(name) < GGUF_NAME_BYTES);
    put_text(&w->infos, gguf_to_text(name));
    put_u32(&w->infos, dims);
    uint64_t bytes = dim[0] / type->values * type->bytes;
    for (uint32_t i = 0; i < dims; i++) {
        put_u64(&w->infos, dim[i]);
        bytes *= i ? dim[i] : 1;
    }
    put_u32(&w->infos, type->id);
    put_u64(&w->infos, w->data_bytes);
    put_u64(&w->sizes, bytes);
    w->data_bytes += gguf_round_up(bytes, w->alignment);
    w->tensor_count++;
}

/* --- what is written --- */

static bool refuse(const gguf_writer *w, int why, err *e) {
    return os_refuse_write(w->path, why, e);
}

static bool write_bytes(gguf_writer *w, const void *data, size_t bytes, err *e) {
    return bytes == 0 || fwrite(data, 1, bytes, w->file) == bytes || refuse(w, errno, e);
}

static bool write_zeros(gguf_writer *w, uint64_t bytes, err *e) {
    static const uint8_t zeros[4096];
    for (; bytes > sizeof zeros; bytes -= sizeof zeros)
        if (!write_bytes(w, zeros, sizeof zeros, e))
            return false;
    return write_bytes(w, zeros, (size_t)bytes, e);
}

/* Minutes of work should not end in a full disk: it is asked first. */
static bool check_room(const gguf_writer *w, uint64_t bytes, err *e) {
    struct statvfs s;
    if (fstatvfs(fileno(w->file), &s) != 0)
        return true; /* then writing will tell */
    double room = (double)s.f_bavail * (double)s.f_frsize;
    return (double)bytes <= room ||
           err_set(e, EXIT_CANNOT, "cannot write %.140s: it takes %.1f MB, and %.1f MB are free",
                   w->path, (double)bytes * 1e-6, room * 1e-6);
}

bool gguf_writer_finish_header(gguf_writer *w, err *e) {
    assert(!w->file);
    w->file = fopen(w->beside, "wb");
    if (!w->file)
        return refuse(w, errno, e);
    uint32_t version = 3;
    uint64_t header = 24 + w->values.bytes + w->infos.bytes;
    uint64_t padding = w->tensor_count ? gguf_round_up(header, w->alignment) - header : 0;
    return check_room(w, header + padding + w->data_bytes, e) && write_bytes(w, "GGUF", 4, e) &&
           write_bytes(w, &version, 4, e) && write_bytes(w, &w->tensor_count, 8, e) &&
           write_bytes(w, &w->value_count, 8, e) &&
           write_bytes(w, w->values.data, w->values.bytes, e) &&
           write_bytes(w, w->infos.data, w->infos.bytes, e) && write_zeros(w, padding, e);
}

static uint64_t get_size(const gguf_writer *w, uint64_t tensor) {
    uint64_t size;
    memcpy(&size, w->sizes.data + 8 * tensor, sizeof size);
    return size;
}

bool gguf_writer_write(gguf_writer *w, const void *data, size_t bytes, err *e) {
    const uint8_t *from = data;
    while (bytes > 0) {
        assert(w->file && w->tensor < w->tensor_count);
        uint64_t size = get_size(w, w->tensor), left = size - w->wrote;
        size_t part = bytes < left ? bytes : (size_t)left;
        if (!write_bytes(w, from, part, e))
            return false;
        from += part;
        bytes -= part;
        w->wrote += part;
        if (w->wrote < size)
            continue;
        if (!write_zeros(w, gguf_round_up(size, w->alignment) - size, e))
            return false;
        w->tensor++;
        w->wrote = 0;
    }
    return true;
}

bool gguf_writer_finish(gguf_writer *w, err *e) {
    assert(w->file);
    if (w->tensor < w->tensor_count)
        return err_set(e, EXIT_CANNOT, "cannot write %.160s: the bytes of tensor %llu are missing",
                       w->path, (unsigned long long)w->tensor + 1);
    FILE *file = w->file;
    w->file = NULL;
    if (fclose(file) == 0 && os_sync(w->beside, e) && os_settle(w->beside, w->path, true, e))
        return true;
    int why = errno;
    unlink(w->beside);
    return refuse(w, why, e);
}

/* --- weights --- */

bool weight_stream_open(weight_stream *s, const char *path, weight_watch watch, void *context,
                        err *e) {
    *s = (weight_stream){.values = array_new(WEIGHT_PIECE, sizeof *s->values),
                         .blocks = array_new(WEIGHT_PIECE, sizeof(float)), /* F32 takes the most */
                         .watch = watch,
                         .context = context};
    return (s->file = gguf_writer_new(path, e)) != NULL;
}

void weight_stream_close(weight_stream *s) {
    gguf_writer_free(s->file);
    free(s->values);
    free(s->blocks);
}

void weight_stream_add(weight_stream *s, const char *name, const gguf_type *type,
                       const uint64_t *dim, uint32_t dims) {
    uint64_t bytes = type->bytes;
    for (uint32_t i = 0; i < dims; i++)
        bytes *= i ? dim[i] : dim[0] / type->values;
    s->total += bytes;
    gguf_writer_add_tensor(s->file, name, type, dim, dims);
}

bool weight_stream_write(weight_stream *s, const void *data, size_t bytes, err *e) {
    if (!gguf_writer_write(s->file, data, bytes, e))
        return false;
    s->done += bytes;
    return !s->watch || s->watch(s->context, s->done, s->total) ||
           err_set(e, EXIT_INTERRUPTED, "stopped; nothing was written");
}

typedef struct {
    const weight_format *format;
    const float *values;
    uint8_t *blocks;
} encoding;

static void encode_blocks(void *context, size_t from, size_t to) {
    const encoding *c = context;
    for (size_t i = from; i < to; i++)
        c->format->encode(c->values + i * c->format->values, c->blocks + i * c->format->bytes);
}

bool weight_stream_encode(weight_stream *s, const gguf_type *type, size_t count, err *e) {
    enum { WORTH_A_THREAD = 32768 };
    const weight_format *f = type->format;
    encoding c = {f, s->values, s->blocks};
    size_t blocks = count / f->values;
    share_run(blocks, WORTH_A_THREAD / f->values, encode_blocks, &c);
    return weight_stream_write(s, s->blocks, blocks * f->bytes, e);
}
