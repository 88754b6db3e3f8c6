/* JSON as far as checkpoints and logs need it: a cursor over a text, and numbers as Python prints
   them. It reads nothing after the end, and returns 0 for text that it cannot read. Needs libc
   only. */
#ifndef GT_JSON_H
#define GT_JSON_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *at, *end;
} json;

static inline void json_space(json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
        j->at++;
}

/* Whether the next character is c; if so, the cursor moves past it. */
static inline int json_take(json *j, char c)
{
    json_space(j);
    if (j->at >= j->end || *j->at != c) return 0;
    j->at++;
    return 1;
}

/* The value of four hexadecimal digits; -1 if they are not there. */
static inline int json_hex(json *j)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        if (j->at >= j->end) return -1;
        const char c = *j->at++;
        const int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

/* A code point in UTF-8; how many bytes. */
static inline size_t json_utf8(unsigned v, char *out)
{
    if (v < 0x80) return out[0] = (char)v, 1;
    const int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    out[0] = (char)(((0xff00 >> (more + 1)) & 0xff) | (v >> (6 * more)));
    for (int i = 1; i <= more; i++) out[i] = (char)(0x80 | ((v >> (6 * (more - i))) & 63));
    return (size_t)more + 1;
}

/* A string without its quotes and escapes, zero-terminated; 0 if there is no string or it does not
   fit. */
static inline int json_string(json *j, char *out, size_t room)
{
    static const char *const plain = "\"\\/bfnrt", *const meant = "\"\\/\b\f\n\r\t";
    size_t n = 0;
    if (!json_take(j, '"')) return 0;
    while (j->at < j->end && n + 5 < room) {
        const char c = *j->at++;
        if (c == '"') return out[n] = 0, 1;
        if (c != '\\') {
            out[n++] = c;
            continue;
        }
        if (j->at >= j->end) return 0;
        const char *known = strchr(plain, *j->at);
        if (known && *known) {
            out[n++] = meant[known - plain];
            j->at++;
            continue;
        }
        if (*j->at++ != 'u') return 0;
        int v = json_hex(j);
        if (v >= 0xd800 && v < 0xdc00 && j->end - j->at > 2 && memcmp(j->at, "\\u", 2) == 0) {
            j->at += 2;
            const int low = json_hex(j);
            if (low < 0xdc00 || low > 0xdfff) return 0;
            v = 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
        }
        if (v < 0) return 0;
        n += json_utf8((unsigned)v, out + n);
    }
    return 0;
}

/* A number; true and false count as 1 and 0, and Infinity and NaN are read as Python has them. */
static inline int json_number(json *j, double *v)
{
    static const struct { const char *word; double value; } words[] = {
        {"true", 1}, {"false", 0}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"NaN", NAN}};
    json_space(j);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].word);
        if ((size_t)(j->end - j->at) < n || memcmp(j->at, words[i].word, n) != 0) continue;
        j->at += n;
        return *v = words[i].value, 1;
    }
    char text[64], *stop;
    size_t n = 0;
    while (j->at < j->end && n + 1 < sizeof text && *j->at && strchr("+-.0123456789eE", *j->at))
        text[n++] = *j->at++;
    text[n] = 0;
    *v = strtod(text, &stop);
    return n && !*stop;
}

/* The next key of an object after its {; 0 after the last key or on an error. */
static inline int json_key(json *j, char *out, size_t room)
{
    if (json_take(j, '}')) return 0;
    json_take(j, ',');
    return json_string(j, out, room) && json_take(j, ':');
}

/* Moves past a value of any kind; 0 on an error. */
static inline int json_skip(json *j)
{
    int depth = 0, quoted = 0;
    json_space(j);
    for (; j->at < j->end; j->at++) {
        const char c = *j->at;
        if (quoted) {
            if (c == '\\') j->at++;
            else if (c == '"') quoted = 0;
            continue;
        }
        if (c == '"') quoted = 1;
        else if (c == '{' || c == '[') depth++;
        else if (depth && (c == '}' || c == ']')) depth--;
        else if (!depth && (c == ',' || c == '}' || c == ']')) return 1;
    }
    return 0;
}

/* A double as Python's repr: the fewest digits that read back the same. `tagged`: what is not
   finite as a string, for JSON that must be strict. */
static inline const char *json_double(char out[40], double v, int tagged)
{
    const char *odd = isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity";
    const char *tag = isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"";
    if (!isfinite(v)) return snprintf(out, 40, "%s", tagged ? tag : odd), out;
    char text[40];
    int digits = 0;
    do snprintf(text, sizeof text, "%.*e", digits, v);
    while (strtod(text, NULL) != v && ++digits < 17);
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        snprintf(out, 40, "%.*se%+03d", (int)(strchr(text, 'e') - text), text, exponent);
    } else {
        const int behind = digits - exponent;
        snprintf(out, 40, "%.*f", behind > 1 ? behind : 1, v);
    }
    return out;
}

#endif
