/* Learning rates by step, to the bits of `graphtool train`; written like passes, step{every=5}. */
#ifndef GT_SCHEDULE_H
#define GT_SCHEDULE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATE_CONSTANT, RATE_STEP, RATE_COSINE, RATE_ONECYCLE, RATES };
enum { RATE_ARGUMENTS = 3 };

typedef struct {
    const char *name, *keys[RATE_ARGUMENTS];
    double start[RATE_ARGUMENTS];
} rate_kind;

static const rate_kind rate_kinds[RATES] = {
    {"constant", {0}, {0}},
    {"step", {"every", "factor"}, {10, 0.1}},
    {"cosine", {"floor"}, {0}},
    {"onecycle", {"rise", "start", "end"}, {0.3, 25, 1e4}},
};

typedef struct {
    int kind;
    double lr, arguments[RATE_ARGUMENTS];
    int64_t total, epoch, warmup; /* in steps */
} rate_schedule;

/* The kind and its arguments from their text; -1 where there is no such schedule. */
static inline int rate_parse(rate_schedule *s, const char *text)
{
    const size_t n = strcspn(text, "{");
    for (s->kind = 0; s->kind < RATES; s->kind++)
        if (strlen(rate_kinds[s->kind].name) == n
            && memcmp(rate_kinds[s->kind].name, text, n) == 0) break;
    if (s->kind == RATES) return -1;
    const rate_kind *kind = &rate_kinds[s->kind];
    memcpy(s->arguments, kind->start, sizeof s->arguments);
    text += n;
    if (!*text) return 0;
    for (text++; *text != '}';) {
        const size_t key = strcspn(text, "=");
        int which = 0;
        while (which < RATE_ARGUMENTS && !(kind->keys[which] && strlen(kind->keys[which]) == key
                                           && memcmp(kind->keys[which], text, key) == 0)) which++;
        if (which == RATE_ARGUMENTS || text[key] != '=') return -1;
        char *end;
        s->arguments[which] = strtod(text + key + 1, &end);
        if (end == text + key + 1 || (*end != ',' && *end != '}')) return -1;
        if (!isfinite(s->arguments[which])) return -1;
        text = *end == ',' ? end + 1 : end;
    }
    const int whole = s->kind != RATE_STEP || s->arguments[0] >= 1;
    return text[1] || !whole ? -1 : 0;
}

static inline double rate_annealed(double a, double b, double share)
{
    return b + (a - b) / 2 * (1 + cos(3.141592653589793 * share));
}

static inline double rate_unwarmed(const rate_schedule *s, int64_t step)
{
    const double *a = s->arguments;
    switch (s->kind) {
    case RATE_STEP: return s->lr * pow(a[1], (double)(step / s->epoch / (int64_t)a[0]));
    case RATE_COSINE:
        return rate_annealed(s->lr, a[0],
                             (double)(step < s->total ? step : s->total) / (double)s->total);
    case RATE_ONECYCLE: {
        const double top = a[0] * (double)s->total - 1, low = s->lr / a[1], last = low / a[2];
        if ((double)step <= top) return rate_annealed(low, s->lr, (double)step / top);
        const double share = ((double)step - top) / ((double)(s->total - 1) - top);
        return rate_annealed(s->lr, last, share < 1 ? share : 1);
    }
    default: return s->lr;
    }
}

/* The rate of a step, counted from 0. */
static inline double rate_at(const rate_schedule *s, int64_t step)
{
    const double rate = rate_unwarmed(s, step);
    if (!s->warmup) return rate;
    const double share = (double)(step + 1) / (double)s->warmup;
    return rate * (share < 1 ? share : 1);
}

#endif
