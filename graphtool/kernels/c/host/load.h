/* Brings the weights of a model into memory: 8 bytes give the length of the file's header, the data
   follow it. The file is mapped where its data are aligned, and read into memory otherwise. Large
   weights are read too, into huge pages if the system has them: all of them are read at each run,
   and looking up the small pages of a mapped file can take half of the time. */
#ifndef GT_LOAD_H
#define GT_LOAD_H

#include <stddef.h>
#include <stdint.h>

enum { GT_ALIGN = 64, GT_READ_FROM = 32 << 20 };
enum { GT_LOADED = 0, GT_NO_FILE = -5, GT_BAD_FILE = -6, GT_NO_MEMORY = -7 };

/* Where the data of a file of `size` bytes start, from its first 8 bytes; 0 if there are not
   `wanted` bytes of them. */
static inline uint64_t gt_data_start(const unsigned char *first, uint64_t size, uint64_t wanted)
{
    uint64_t header = 0;
    for (int i = 0; i < 8; i++) header |= (uint64_t)first[i] << 8 * i;
    return size < 8 || header > size - 8 || size - 8 - header < wanted ? 0 : 8 + header;
}

#if defined __unix__ || defined __APPLE__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int gt_read(int file, unsigned char *to, uint64_t count, uint64_t from)
{
    while (count) {
        const ssize_t n = pread(file, to, (size_t)count, (off_t)from);
        if (n <= 0) return 0;
        to += n, from += (uint64_t)n, count -= (uint64_t)n;
    }
    return 1;
}

static inline int gt_load_open(int file, uint64_t wanted, const void **data, void **memory,
                               size_t *bytes)
{
    struct stat about;
    unsigned char first[8];
    if (fstat(file, &about)) return GT_NO_FILE;
    const uint64_t size = (uint64_t)about.st_size;
    if (size < 8 || !gt_read(file, first, 8, 0)) return GT_BAD_FILE;
    const uint64_t start = gt_data_start(first, size, wanted);
    if (!start) return GT_BAD_FILE;
    int aligned = start % GT_ALIGN == 0;
#ifdef MADV_HUGEPAGE
    aligned = aligned && wanted < GT_READ_FROM;
#endif
    *bytes = (size_t)(aligned ? size : wanted);
    void *p = aligned ? mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, file, 0)
                      : mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                             -1, 0);
    if (p == MAP_FAILED) return GT_NO_MEMORY;
    *memory = p;
    *data = aligned ? (const char *)p + start : (const char *)p;
#ifdef MADV_HUGEPAGE
    if (*bytes >= (size_t)4 << 20) (void)!madvise(p, *bytes, MADV_HUGEPAGE);
#endif
    if (aligned || gt_read(file, (unsigned char *)p, wanted, start)) return GT_LOADED;
    munmap(p, *bytes);
    return GT_NO_FILE;
}

static inline int gt_load_weights(const char *path, uint64_t wanted, const void **data,
                                  void **memory, size_t *bytes)
{
    const int file = open(path, O_RDONLY);
    if (file < 0) return GT_NO_FILE;
    const int status = gt_load_open(file, wanted, data, memory, bytes);
    close(file);
    return status;
}

static inline void gt_free_weights(void *memory, size_t bytes)
{
    if (memory) munmap(memory, bytes);
}
#else
#include <stdio.h>
#include <stdlib.h>
#ifdef _WIN32
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#undef far
#undef near
#endif

/* A path is UTF-8, in Windows too, whose fopen would take it for text in the code page. */
static inline FILE *gt_open(const char *path)
{
#ifdef _WIN32
    wchar_t wide[4096];
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, 4096))
        return _wfopen(wide, L"rb");
#endif
    return fopen(path, "rb");
}

static inline int gt_load_weights(const char *path, uint64_t wanted, const void **data,
                                  void **memory, size_t *bytes)
{
    unsigned char first[8];
    FILE *file = gt_open(path);
    if (!file) return GT_NO_FILE;
    int status = GT_BAD_FILE;
    if (fread(first, 1, 8, file) == 8) {
        const uint64_t start = gt_data_start(first, UINT64_MAX, wanted);
        *bytes = (size_t)wanted + GT_ALIGN;
        *memory = start && start < (uint64_t)1 << 30 ? malloc(*bytes) : NULL;
        status = start && !*memory ? GT_NO_MEMORY : GT_BAD_FILE;
        if (*memory) {
            char *at = (char *)*memory + (GT_ALIGN - (uintptr_t)*memory % GT_ALIGN) % GT_ALIGN;
            *data = at;
            if (!fseek(file, (long)start, SEEK_SET) && fread(at, 1, (size_t)wanted, file) == wanted)
                status = GT_LOADED;
        }
    }
    fclose(file);
    if (status && *memory) free(*memory);
    return status;
}

static inline void gt_free_weights(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}
#endif

#endif
