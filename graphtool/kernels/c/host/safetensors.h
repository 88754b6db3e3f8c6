/* Arrays in and out of .safetensors files, to the bytes of the Python library. Writes to a file
   beside the one meant, and renames: a program killed at any moment leaves a whole one. */
#ifndef GT_SAFETENSORS_H
#define GT_SAFETENSORS_H

#include "json.h"
#include "program.h"

#define SAFE_NAME 1024

/* One array of a file; `type` is F32 and the like. */
typedef struct {
    const char *name, *type;
    int rank;
    int64_t shape[NPY_RANK], bytes;
    void *data;
    int seen; /* in the file that was read */
} safe_array;

/* numpy's name for the floats of an array; NULL for other types. */
static const char *safe_floats(const char *type)
{
    static const char *const names[][2] = {{"F64", "f8"}, {"F32", "f4"}, {"C64", "f4"},
                                           {"F16", "f2"}, {"BF16", "V2"}};
    for (int i = 0; i < 5; i++)
        if (strcmp(type, names[i][0]) == 0) return names[i][1];
    return NULL;
}

/* What an array's entry says: {"dtype":…,"shape":[…],"data_offsets":[from,to]}. */
typedef struct {
    char type[16];
    int rank;
    int64_t shape[NPY_RANK], from, to;
} safe_entry;

/* The bytes of a file, mapped where the system can; NULL if it cannot be read. */
static const unsigned char *main_file(const char *path, int64_t *size)
{
#if MAIN_MAPS
    struct stat about;
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about) || about.st_size < 8) return NULL;
    *size = about.st_size;
    void *p = mmap(NULL, (size_t)*size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (p != MAP_FAILED) main_ask_huge(p, (size_t)*size);
    return p == MAP_FAILED ? NULL : p;
#else
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END)) return NULL;
    *size = ftell(in);
    rewind(in);
    unsigned char *p = *size < 8 ? NULL : main_aligned((size_t)*size);
    if (p && fread(p, 1, (size_t)*size, in) != (size_t)*size) p = NULL;
    fclose(in);
    return p;
#endif
}

static int safe_list(json *j, int64_t *out, int room)
{
    int n = 0;
    if (!json_take(j, '[')) return -1;
    while (!json_take(j, ']')) {
        double v;
        json_take(j, ',');
        if (n == room || !json_number(j, &v) || !(v >= 0 && v < 9e15)) return -1;
        out[n++] = (int64_t)v;
    }
    return n;
}

static int safe_read_entry(json *j, safe_entry *e)
{
    char key[64];
    int64_t span[2] = {0};
    int seen = 0;
    if (!json_take(j, '{')) return 0;
    while (json_key(j, key, sizeof key)) {
        int good = 0;
        if (strcmp(key, "dtype") == 0) good = json_string(j, e->type, sizeof e->type);
        if (strcmp(key, "shape") == 0) good = (e->rank = safe_list(j, e->shape, NPY_RANK)) >= 0;
        if (strcmp(key, "data_offsets") == 0) good = safe_list(j, span, 2) == 2;
        if (!good) return 0;
        seen++;
    }
    e->from = span[0], e->to = span[1];
    return seen == 3 && e->from <= e->to;
}

static safe_array *safe_find(safe_array *arrays, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(arrays[i].name, name) == 0) return &arrays[i];
    return NULL;
}

static int safe_fits(const safe_array *a, const safe_entry *e)
{
    return strcmp(a->type, e->type) == 0 && a->rank == e->rank && a->bytes == e->to - e->from
        && memcmp(a->shape, e->shape, sizeof(int64_t) * (size_t)a->rank) == 0;
}

/* What became of a reading: SAFE_ODD with the name of an array that is not as expected. */
enum { SAFE_FINE, SAFE_CUT, SAFE_ODD };

typedef struct {
    char *metadata; /* in: the key of the text that is wanted; out: the text */
    size_t room;
    char odd[SAFE_NAME];
    int seen; /* of the arrays */
} safe_report;

static int safe_metadata(json *j, safe_report *r)
{
    char key[SAFE_NAME], wanted[64];
    snprintf(wanted, sizeof wanted, "%s", r->metadata ? r->metadata : "");
    if (!json_take(j, '{')) return 0;
    while (json_key(j, key, sizeof key)) {
        const int found = r->metadata && strcmp(key, wanted) == 0;
        if (!(found ? json_string(j, r->metadata, r->room) : json_skip(j))) return 0;
    }
    return 1;
}

/* Fills the arrays from the file; names that are not among them count if `strict`. */
static int safe_read(const char *path, safe_array *arrays, int count, int strict,
                     safe_report *r)
{
    int64_t size = 0;
    const unsigned char *p = main_file(path, &size);
    if (!p || npy_u64(p) > (uint64_t)size - 8) return SAFE_CUT;
    const int64_t header = (int64_t)npy_u64(p), start = 8 + header;
    json j = {(const char *)p + 8, (const char *)p + start};
    if (!json_take(&j, '{')) return SAFE_CUT;
    char name[SAFE_NAME];
    for (r->seen = 0; json_key(&j, name, sizeof name);) {
        safe_entry e = {0};
        if (strcmp(name, "__metadata__") == 0) {
            if (!safe_metadata(&j, r)) return SAFE_CUT;
            continue;
        }
        if (!safe_read_entry(&j, &e) || e.to > size - start) return SAFE_CUT;
        safe_array *a = safe_find(arrays, count, name);
        snprintf(r->odd, sizeof r->odd, "%s", name);
        if (!a && strict) return SAFE_ODD;
        if (!a) continue;
        if (!safe_fits(a, &e)) return SAFE_ODD;
        memcpy(a->data, p + start + e.from, (size_t)a->bytes);
        a->seen = 1;
        r->seen++;
    }
    json_space(&j);
    return j.at == j.end ? SAFE_FINE : SAFE_CUT;
}

/* ---- writing ---- */

/* A string of JSON with its quotes. */
static void safe_quoted(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text < 32) fprintf(out, "\\u%04x", *text);
        else fputc(*text, out);
    }
    fputc('"', out);
}

static void safe_header(FILE *out, const safe_array *arrays, int count, const char *key,
                        const char *value)
{
    int64_t at = 0;
    fputs("{\"__metadata__\":{", out);
    safe_quoted(out, key);
    fputc(':', out);
    safe_quoted(out, value);
    fputc('}', out);
    for (int i = 0; i < count; i++) {
        const safe_array *a = &arrays[i];
        fputc(',', out);
        safe_quoted(out, a->name);
        fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", a->type);
        for (int k = 0; k < a->rank; k++)
            fprintf(out, "%s%" PRId64, k ? "," : "", a->shape[k]);
        fprintf(out, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", at, at + a->bytes);
        at += a->bytes;
    }
    fputc('}', out);
}

/* On disk before it is renamed, else a crash of the machine could leave an empty file. */
static int safe_settled(FILE *out)
{
    int bad = fflush(out) != 0;
#if MAIN_MAPS
    bad |= fsync(fileno(out)) != 0;
#endif
    return (fclose(out) != 0) | bad ? -1 : 0;
}

/* The arrays in this order, and one entry of metadata; -1 where the file cannot be written. */
static int safe_write(const char *path, const safe_array *arrays, int count, const char *key,
                      const char *value)
{
    char beside[4200];
    if ((size_t)snprintf(beside, sizeof beside, "%s.tmp", path) >= sizeof beside) return -1;
    FILE *out = fopen(beside, "wb");
    if (!out) return -1;
    unsigned char length[8] = {0};
    int bad = fwrite(length, 8, 1, out) != 1;
    safe_header(out, arrays, count, key, value);
    long end = ftell(out);
    for (; end % 8; end++) fputc(' ', out);
    for (int i = 0; i < count; i++)
        bad |= arrays[i].bytes && fwrite(arrays[i].data, (size_t)arrays[i].bytes, 1, out) != 1;
    npy_put(length, (uint64_t)end - 8, 8);
    bad |= fseek(out, 0, SEEK_SET) != 0 || fwrite(length, 8, 1, out) != 1 || ferror(out);
    bad |= safe_settled(out) != 0;
    if (!bad && rename(beside, path) == 0) return 0;
    remove(beside);
    return -1;
}

#endif
