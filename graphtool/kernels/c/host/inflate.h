/* Unpacks deflated data (RFC 1951), such as the members of a compressed .npz file. Reads and writes
   nothing outside the two ranges it is given, whatever the data are. Needs libc only. */
#ifndef GT_INFLATE_H
#define GT_INFLATE_H

#include <stdint.h>
#include <string.h>

typedef struct {
    const unsigned char *in;
    int64_t size, at;
    uint64_t held; /* bits read from `in` and not yet used, the first one lowest */
    int count, bad;
} inflate_bits;

/* The next n ≤ 16 bits; after the end zeros, and `bad` is set. */
static inline uint32_t inflate_take(inflate_bits *b, int n)
{
    while (b->count < n) {
        if (b->at < b->size) b->held |= (uint64_t)b->in[b->at++] << b->count;
        else b->bad = 1;
        b->count += 8;
    }
    const uint32_t v = (uint32_t)(b->held & ((1u << n) - 1));
    b->held >>= n;
    b->count -= n;
    return v;
}

/* A canonical Huffman code: how many words have each length, and their symbols in order. */
typedef struct {
    uint16_t count[16], symbol[288];
} inflate_code;

/* From the length of each symbol's word; -1 where the lengths are more than there are words. */
static inline int inflate_build(inflate_code *c, const unsigned char *lengths, int n)
{
    uint16_t start[16];
    int left = 1;
    memset(c->count, 0, sizeof c->count);
    for (int i = 0; i < n; i++) c->count[lengths[i]]++;
    c->count[0] = 0;
    start[1] = 0;
    for (int k = 1; k < 16; k++) {
        left = left * 2 - c->count[k];
        if (left < 0) return -1;
        if (k < 15) start[k + 1] = (uint16_t)(start[k] + c->count[k]);
    }
    for (int i = 0; i < n; i++)
        if (lengths[i]) c->symbol[start[lengths[i]]++] = (uint16_t)i;
    return 0;
}

static inline int inflate_symbol(inflate_bits *b, const inflate_code *c)
{
    int word = 0, first = 0, at = 0;
    for (int k = 1; k < 16 && !b->bad; k++) {
        word |= (int)inflate_take(b, 1);
        if (word - first < c->count[k]) return c->symbol[at + word - first];
        at += c->count[k];
        first = (first + c->count[k]) << 1;
        word <<= 1;
    }
    b->bad = 1;
    return 0;
}

/* The codes before a block, which are themselves coded. */
static inline int inflate_codes(inflate_bits *b, inflate_code *literals, inflate_code *distances)
{
    static const unsigned char order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                            11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned char lengths[320] = {0};
    const int n = (int)inflate_take(b, 5) + 257, m = (int)inflate_take(b, 5) + 1;
    const int words = (int)inflate_take(b, 4) + 4;
    for (int i = 0; i < words; i++) lengths[order[i]] = (unsigned char)inflate_take(b, 3);
    if (n > 286 || inflate_build(literals, lengths, 19)) return -1;
    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < n + m && !b->bad;) {
        const int s = inflate_symbol(b, literals);
        if (s < 16) {
            lengths[i++] = (unsigned char)s;
            continue;
        }
        if (s == 16 && i == 0) return -1;
        const unsigned char value = s == 16 ? lengths[i - 1] : 0;
        int times = s == 16 ? 3 + (int)inflate_take(b, 2)
                  : s == 17 ? 3 + (int)inflate_take(b, 3) : 11 + (int)inflate_take(b, 7);
        if (i + times > n + m) return -1;
        while (times--) lengths[i++] = value;
    }
    return inflate_build(literals, lengths, n) || inflate_build(distances, lengths + n, m);
}

/* The codes of a block that does not contain its own. */
static inline void inflate_fixed(inflate_code *literals, inflate_code *distances)
{
    unsigned char lengths[288];
    for (int i = 0; i < 288; i++)
        lengths[i] = (unsigned char)(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    inflate_build(literals, lengths, 288);
    memset(lengths, 5, 30);
    inflate_build(distances, lengths, 30);
}

/* One block of literals and copies from before; the place in `out` behind it, or -1. */
static inline int64_t inflate_block(inflate_bits *b, unsigned char *out, int64_t at, int64_t room,
                                    const inflate_code *literals, const inflate_code *distances)
{
    static const uint16_t base[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23,
                                      27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227,
                                      258};
    static const unsigned char more[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                           2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    for (;;) {
        const int s = inflate_symbol(b, literals);
        if (b->bad) return -1;
        if (s == 256) return at;
        if (s < 256) {
            if (at >= room) return -1;
            out[at++] = (unsigned char)s;
            continue;
        }
        if (s > 285) return -1;
        const int64_t length = base[s - 257] + (int64_t)inflate_take(b, more[s - 257]);
        const int d = inflate_symbol(b, distances);
        if (b->bad || d > 29) return -1;
        const int bits = d < 4 ? 0 : d / 2 - 1;
        const int64_t back = (d < 4 ? d + 1 : ((2 + (d & 1)) << bits) + 1)
                           + (int64_t)inflate_take(b, bits);
        if (back > at || length > room - at) return -1;
        for (int64_t i = 0; i < length; i++, at++) out[at] = out[at - back];
    }
}

/* Fills `out` with what the `size` bytes at `in` hold; -1 unless it is `room` bytes exactly. */
static inline int inflate(const unsigned char *in, int64_t size, unsigned char *out, int64_t room)
{
    inflate_bits b = {in, size, 0, 0, 0, 0};
    inflate_code literals, distances;
    int64_t at = 0;
    for (int last = 0; !last;) {
        last = (int)inflate_take(&b, 1);
        const int kind = (int)inflate_take(&b, 2);
        if (b.bad || kind == 3) return -1;
        if (kind == 0) { /* stored: its length, and its complement, from the next byte on */
            b.at -= b.count / 8;
            b.count = 0, b.held = 0;
            if (b.at + 4 > size) return -1;
            const int64_t n = in[b.at] | in[b.at + 1] << 8;
            if ((n ^ 0xffff) != (in[b.at + 2] | in[b.at + 3] << 8)) return -1;
            b.at += 4;
            if (n > size - b.at || n > room - at) return -1;
            if (n) memcpy(out + at, in + b.at, (size_t)n);
            at += n, b.at += n;
            continue;
        }
        if (kind == 1) inflate_fixed(&literals, &distances);
        else if (inflate_codes(&b, &literals, &distances)) return -1;
        at = inflate_block(&b, out, at, room, &literals, &distances);
        if (at < 0) return -1;
    }
    return at == room ? 0 : -1;
}

#endif
