/* Arrays in and out of numpy's .npy and .npz files: little-endian, C order; zip members are read
   stored or deflated, written stored. The first fault is kept as a text in the file that has it;
   nothing is printed here. Needs libc only; included by main programs, never by a model itself. */
#ifndef GT_NPY_H
#define GT_NPY_H

#include "inflate.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NPY_RANK 16
#define NPY_NAME 256

/* One array: `data` lies in the file that it was read from, or is the caller's. */
typedef struct {
    char name[NPY_NAME]; /* of the member, without .npy; empty in an .npy file */
    char type[8];        /* numpy's: f4, i8, b1; V2 for what numpy cannot name */
    int rank;
    int64_t shape[NPY_RANK];
    int64_t bytes;
    const unsigned char *data;
} npy_array;

/* A file in memory and the arrays in it. */
typedef struct {
    unsigned char *memory;
    int64_t size;
    npy_array *arrays;
    int count;
    char fault[512];
} npy_file;

static inline int npy_fault(npy_file *f, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    if (!f->fault[0]) vsnprintf(f->fault, sizeof f->fault, format, rest);
    va_end(rest);
    return -1;
}

static inline uint32_t npy_u16(const unsigned char *p) { return p[0] | (uint32_t)p[1] << 8; }

static inline uint32_t npy_u32(const unsigned char *p)
{
    return npy_u16(p) | npy_u16(p + 2) << 16;
}

static inline uint64_t npy_u64(const unsigned char *p)
{
    return npy_u32(p) | (uint64_t)npy_u32(p + 4) << 32;
}

/* The value of a key in the header's dict, behind the colon; NULL where there is none. */
static inline const char *npy_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':' || *at == '\'' || *at == '"') at++;
    return at;
}

/* shape: (2, 3) as numbers; -1 where it is none */
static inline int npy_shape(const char *at, npy_array *a)
{
    if (*at++ != '(') return -1;
    for (a->rank = 0;; a->rank++) {
        while (*at == ' ' || *at == ',') at++;
        if (*at == ')') return 0;
        if (*at < '0' || *at > '9' || a->rank == NPY_RANK) return -1;
        int64_t n = 0;
        while (*at >= '0' && *at <= '9') {
            if (n > INT64_MAX / 20) return -1;
            n = n * 10 + (*at++ - '0');
        }
        a->shape[a->rank] = n;
    }
}

/* The array in `size` bytes at p, which are a whole .npy file. */
static inline int npy_parse(npy_file *f, const unsigned char *p, int64_t size, npy_array *a)
{
    const char *who = a->name[0] ? a->name : "the file";
    if (size < 12 || memcmp(p, "\x93NUMPY", 6) != 0)
        return npy_fault(f, "%s is not an .npy array", who);
    const int64_t start = p[6] == 1 ? 10 : 12;
    const int64_t length = p[6] == 1 ? npy_u16(p + 8) : npy_u32(p + 8);
    char header[4096];
    if (length >= (int64_t)sizeof header || start + length > size)
        return npy_fault(f, "%s is cut short", who);
    memcpy(header, p + start, (size_t)length);
    header[length] = 0;
    const char *type = npy_key(header, "'descr'"), *order = npy_key(header, "'fortran_order'");
    const char *shape = npy_key(header, "'shape'");
    if (!type || !order || !shape || npy_shape(shape, a))
        return npy_fault(f, "%s has a header that cannot be read", who);
    if (*type == '>') return npy_fault(f, "%s is big-endian, little-endian expected", who);
    if (*order == 'T') return npy_fault(f, "%s is in Fortran order, C order expected", who);
    if (*type == '<' || *type == '|' || *type == '=') type++;
    size_t n = strcspn(type, "'\"");
    if (n >= sizeof a->type) return npy_fault(f, "%s has a type that is not a number", who);
    memcpy(a->type, type, n);
    a->type[n] = 0;
    a->bytes = atoi(a->type + 1);
    if (a->bytes < 1 || a->bytes > 16)
        return npy_fault(f, "%s has the type %s, a number expected", who, a->type);
    for (int i = 0; i < a->rank; i++) {
        if (a->shape[i] && a->bytes > INT64_MAX / 2 / a->shape[i])
            return npy_fault(f, "%s is too large", who);
        a->bytes *= a->shape[i];
    }
    if (start + length + a->bytes > size) return npy_fault(f, "%s is cut short", who);
    a->data = p + start + length;
    /* an array may start anywhere in a zip file: move it to where C may read it */
    if ((uintptr_t)a->data % 16 && a->bytes) {
        unsigned char *copy = malloc((size_t)a->bytes);
        if (!copy) return npy_fault(f, "out of memory");
        a->data = memcpy(copy, a->data, (size_t)a->bytes);
    }
    return 0;
}

static inline uint32_t npy_crc(uint32_t crc, const unsigned char *p, int64_t n)
{
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320 ^ c >> 1 : c >> 1;
            table[i] = c;
        }
    crc = ~crc;
    for (int64_t i = 0; i < n; i++) crc = table[(crc ^ p[i]) & 255] ^ crc >> 8;
    return ~crc;
}

/* Sizes and place that did not fit 32 bits stand in the extra field of type 1, in this order. */
static inline void npy_zip64(const unsigned char *extra, int64_t length, uint64_t *size,
                             uint64_t *packed, uint64_t *at)
{
    for (; length >= 4; length -= 4 + npy_u16(extra + 2), extra += 4 + npy_u16(extra + 2)) {
        if (npy_u16(extra) != 1) continue;
        const unsigned char *p = extra + 4, *end = p + npy_u16(extra + 2);
        if (end > extra + length) return;
        uint64_t *fields[3] = {size, packed, at};
        for (int i = 0; i < 3 && p + 8 <= end; i++)
            if (*fields[i] == 0xffffffff) *fields[i] = npy_u64(p), p += 8;
        return;
    }
}

/* A deflated member, unpacked; NULL where it is damaged. It stays: the arrays lie in it. */
static inline const unsigned char *npy_unpack(const unsigned char *p, int64_t packed, int64_t size)
{
    if (size / 1040 > packed) return NULL; /* deflate does not pack tighter than that */
    unsigned char *out = malloc((size_t)size + 64);
    if (out && inflate(p, packed, out, size) == 0) return out;
    free(out);
    return NULL;
}

/* The member of the zip file whose directory entry is at p, `left` bytes before the end. */
static inline int npy_member(npy_file *f, const unsigned char *p, int64_t left, npy_array *a)
{
    if (left < 46 || npy_u32(p) != 0x02014b50)
        return npy_fault(f, "the zip directory is damaged");
    const int64_t named = npy_u16(p + 28), extra = npy_u16(p + 30);
    if (46 + named + extra > left || named >= NPY_NAME)
        return npy_fault(f, "the zip directory is damaged");
    memcpy(a->name, p + 46, (size_t)named);
    a->name[named] = 0;
    if (named > 4 && strcmp(a->name + named - 4, ".npy") == 0) a->name[named - 4] = 0;
    if (npy_u16(p + 8) & 1) return npy_fault(f, "%s is encrypted", a->name);
    const int deflated = npy_u16(p + 10) == 8;
    if (npy_u16(p + 10) != 0 && !deflated)
        return npy_fault(f, "%s is packed in a way that numpy does not use", a->name);
    uint64_t packed = npy_u32(p + 20), size = npy_u32(p + 24), at = npy_u32(p + 42);
    npy_zip64(p + 46 + named, extra, &size, &packed, &at);
    const uint64_t total = (uint64_t)f->size;
    if ((size != packed && !deflated) || size > INT64_MAX / 2 || at > total || total - at < 30
        || npy_u32(f->memory + at) != 0x04034b50)
        return npy_fault(f, "%s is damaged", a->name);
    at += 30 + npy_u16(f->memory + at + 26) + npy_u16(f->memory + at + 28);
    if (at > total || total - at < packed) return npy_fault(f, "%s is cut short", a->name);
    const unsigned char *data = f->memory + at;
    if (deflated) data = npy_unpack(data, (int64_t)packed, (int64_t)size);
    if (!data) return npy_fault(f, "%s is damaged: it cannot be unpacked", a->name);
    if (npy_crc(0, data, (int64_t)size) != npy_u32(p + 16))
        return npy_fault(f, "%s is damaged: its checksum differs", a->name);
    return npy_parse(f, data, (int64_t)size, a);
}

static inline int npy_zip(npy_file *f)
{
    int64_t end = f->size - 22;
    while (end >= 0 && f->size - end < 66000 && npy_u32(f->memory + end) != 0x06054b50) end--;
    if (end < 0 || npy_u32(f->memory + end) != 0x06054b50)
        return npy_fault(f, "neither an .npy nor an .npz file, or cut short");
    const int count = (int)npy_u16(f->memory + end + 10);
    int64_t at = npy_u32(f->memory + end + 16);
    if (count == 0xffff || at == 0xffffffff)
        return npy_fault(f, "too large an .npz file; give .npy files");
    f->arrays = calloc((size_t)count + 1, sizeof *f->arrays);
    if (!f->arrays) return npy_fault(f, "out of memory");
    for (; f->count < count; f->count++) {
        if (at > end) return npy_fault(f, "the zip directory is damaged");
        const unsigned char *p = f->memory + at;
        if (npy_member(f, p, end - at, &f->arrays[f->count])) return -1;
        at += 46 + npy_u16(p + 28) + npy_u16(p + 30) + npy_u16(p + 32);
    }
    return 0;
}

/* All of a file in memory, which the system gives aligned. */
static inline int npy_slurp(npy_file *f, const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in) return npy_fault(f, "cannot be opened");
    if (fseek(in, 0, SEEK_END) == 0) f->size = ftell(in);
    rewind(in);
    if (f->size >= 0) f->memory = malloc((size_t)f->size + 64);
    const int whole = f->memory && fread(f->memory, 1, (size_t)f->size, in) == (size_t)f->size;
    fclose(in);
    return whole ? 0 : npy_fault(f, "cannot be read");
}

/* Reads an .npy file (one array without a name) or an .npz file; -1 with a fault. */
static inline int npy_read(npy_file *f, const char *path)
{
    memset(f, 0, sizeof *f);
    if (npy_slurp(f, path)) return -1;
    if (f->size < 6 || memcmp(f->memory, "\x93NUMPY", 6) != 0) return npy_zip(f);
    f->arrays = calloc(1, sizeof *f->arrays);
    if (!f->arrays) return npy_fault(f, "out of memory");
    f->count = 1;
    return npy_parse(f, f->memory, f->size, f->arrays);
}

/* ---- writing ---- */

/* The .npy header of an array, padded to 64 bytes; its length. */
static inline int npy_header(const npy_array *a, char *out, size_t room)
{
    char shape[NPY_RANK * 22 + 4] = "(";
    size_t n = 1;
    for (int i = 0; i < a->rank; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%lld,%s", (long long)a->shape[i],
                              i + 1 < a->rank ? " " : "");
    if (a->rank > 1) n--;
    snprintf(shape + n, sizeof shape - n, ")");
    const int narrow = a->type[0] == 'V' || strcmp(a->type + 1, "1") == 0;
    int length = snprintf(out + 10, room - 10, "{'descr': '%s%s', 'fortran_order': False, "
                          "'shape': %s, }", narrow ? "|" : "<", a->type, shape);
    while ((10 + length + 1) % 64) out[10 + length++] = ' ';
    out[10 + length++] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(length & 255), out[9] = (char)(length >> 8);
    return 10 + length;
}

/* `bytes` bytes of v, the lowest first */
static inline unsigned char *npy_put(unsigned char *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) *p++ = (unsigned char)(v >> (8 * i));
    return p;
}

/* The fields that a member's own header and its directory entry share, from the version on. */
static inline unsigned char *npy_entry(unsigned char *p, uint32_t crc, uint64_t size, size_t named)
{
    p = npy_put(p, 20, 2), p = npy_put(p, 0, 2), p = npy_put(p, 0, 2);
    p = npy_put(p, 0, 2), p = npy_put(p, 0x21, 2); /* 1980-01-01 00:00 */
    p = npy_put(p, crc, 4), p = npy_put(p, size, 4), p = npy_put(p, size, 4);
    return npy_put(npy_put(p, named, 2), 0, 2);
}

/* An .npy file if there is no name to give, else an .npz file; -1 if it cannot be written. */
static inline int npy_write(const char *path, const npy_array *arrays, int count, int zip)
{
    FILE *out = fopen(path, "wb");
    unsigned char *directory = malloc((size_t)count * (50 + NPY_NAME + 4) + 1), *entry = directory;
    uint64_t at = 0;
    int bad = !out || !directory;
    for (int i = 0; i < count && !bad; i++) {
        const npy_array *a = &arrays[i];
        char header[1024], name[NPY_NAME + 5];
        const int length = npy_header(a, header, sizeof header);
        const uint64_t size = (uint64_t)length + (uint64_t)a->bytes;
        const size_t named = (size_t)snprintf(name, sizeof name, "%s.npy", a->name);
        unsigned char local[30];
        if (zip) {
            const uint32_t crc = npy_crc(npy_crc(0, (const unsigned char *)header, length),
                                         a->data, a->bytes);
            npy_entry(npy_put(local, 0x04034b50, 4), crc, size, named);
            bad |= fwrite(local, 30, 1, out) != 1 || fwrite(name, named, 1, out) != 1;
            entry = npy_put(npy_put(entry, 0x02014b50, 4), 20, 2);
            entry = npy_entry(entry, crc, size, named);
            entry = npy_put(npy_put(npy_put(entry, 0, 2), 0, 4), 0, 4); /* disk, attributes */
            entry = npy_put(entry, at, 4);
            memcpy(entry, name, named);
            entry += named;
            at += 30 + named + size;
            bad |= at > 0xfffffff0; /* beyond this the format is another one */
        }
        bad |= fwrite(header, (size_t)length, 1, out) != 1;
        bad |= a->bytes && fwrite(a->data, (size_t)a->bytes, 1, out) != 1;
    }
    if (zip && !bad) {
        unsigned char end[22];
        const uint64_t size = (uint64_t)(entry - directory), n = (uint64_t)count;
        unsigned char *p = npy_put(npy_put(end, 0x06054b50, 4), 0, 4);
        p = npy_put(npy_put(p, n, 2), n, 2);
        npy_put(npy_put(npy_put(p, size, 4), at, 4), 0, 2);
        bad |= size && fwrite(directory, (size_t)size, 1, out) != 1;
        bad |= fwrite(end, sizeof end, 1, out) != 1;
    }
    if (out) bad |= fclose(out) != 0;
    free(directory);
    return bad ? -1 : 0;
}

#endif
