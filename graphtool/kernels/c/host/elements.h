/* Elements of numpy's types as numbers, and from one type to another. Needs libc only. */
#ifndef GT_ELEMENTS_H
#define GT_ELEMENTS_H

#include "npy.h"

#include <math.h>

static inline float real_of_half(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    const float small = (float)rest * 0x1p-24f; /* subnormal, also 0 */
    const uint32_t bits = rest >= 0x7c00 ? 0x7f800000u | (rest & 0x3ff) << 13
                                         : (rest << 13) + (112u << 23);
    float out;
    memcpy(&out, &bits, sizeof out);
    if (rest < 0x400) out = small;
    return sign ? -out : out;
}

/* Element i of an array as a double; V2 is bfloat16, the only such type that models give. */
static inline double main_number(const char *type, const void *p, int64_t i)
{
    switch (type[0] << 8 | type[1]) {
    case 'f' << 8 | '4': return ((const float *)p)[i];
    case 'f' << 8 | '8': return ((const double *)p)[i];
    case 'i' << 8 | '8': return (double)((const int64_t *)p)[i];
    case 'i' << 8 | '4': return ((const int32_t *)p)[i];
    case 'i' << 8 | '2': return ((const int16_t *)p)[i];
    case 'i' << 8 | '1': return ((const int8_t *)p)[i];
    case 'u' << 8 | '8': return (double)((const uint64_t *)p)[i];
    case 'u' << 8 | '4': return ((const uint32_t *)p)[i];
    case 'u' << 8 | '2': return ((const uint16_t *)p)[i];
    case 'f' << 8 | '2': return real_of_half(((const uint16_t *)p)[i]);
    case 'V' << 8 | '2': {
        const uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
        float out;
        memcpy(&out, &bits, sizeof out);
        return out;
    }
    default: return ((const unsigned char *)p)[i];
    }
}

static inline int64_t main_integer(const char *type, const void *p, int64_t i)
{
    if (strcmp(type, "i8") == 0) return ((const int64_t *)p)[i];
    if (strcmp(type, "u8") == 0) return (int64_t)((const uint64_t *)p)[i];
    return (int64_t)main_number(type, p, i);
}

/* Whether an integer type has this number: v is its 64 bits, of which a negative one has a sign. */
static inline int main_within(const char *type, int negative, uint64_t v)
{
    const int bits = 8 * (type[1] - '0'), sign = type[0] == 'i';
    const uint64_t high = UINT64_MAX >> (64 - bits + sign);
    return negative ? sign && -v <= high + 1 : v <= high;
}

/* Whether element i stays the same number in another type; a float may be rounded to a float, but
   not to an infinity. */
static inline int main_stays(const char *from, const void *p, int64_t i, const char *to)
{
    const double v = main_number(from, p, i);
    if (from[0] == 'f' || from[0] == 'V')
        return strcmp(to, "f4") != 0 || isinf((float)v) == isinf(v);
    const int64_t whole = main_integer(from, p, i);
    const int negative = from[0] == 'i' && whole < 0;
    if (to[0] != 'f') return main_within(to, negative, (uint64_t)whole);
    const double near = strcmp(to, "f4") == 0 ? (double)(float)whole : (double)whole;
    return fabs(near) < 0x1p63 && (int64_t)near == whole && !(from[0] == 'u' && whole < 0);
}

/* Whether the n elements of type `from` may become ones of type `to`: see graphtool/dtypes.py. */
static inline int main_becomes(const char *from, const void *p, int64_t n, const char *to)
{
    if (strcmp(from, to) == 0) return 1;
    if (!strchr("buif", from[0]) || !strchr("uif", to[0]) || strcmp(to, "f2") == 0) return 0;
    if (from[0] == 'f' && to[0] != 'f') return 0;
    for (int64_t i = 0; i < n; i++)
        if (!main_stays(from, p, i, to)) return 0;
    return 1;
}

/* n elements at `from`, the first one at element `at`, in another type. */
static inline void main_convert(const char *kind, const void *from, int64_t at, const char *type,
                                void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (strcmp(type, "f4") == 0) {
            ((float *)to)[i] = kind[0] == 'i' || kind[0] == 'u'
                             ? (float)main_integer(kind, from, at + i)
                             : (float)main_number(kind, from, at + i);
        } else if (strcmp(type, "f8") == 0) {
            ((double *)to)[i] = main_number(kind, from, at + i);
        } else {
            const uint64_t v = (uint64_t)main_integer(kind, from, at + i);
            npy_put((unsigned char *)to + i * (type[1] - '0'), v, type[1] - '0');
        }
    }
}

#endif
