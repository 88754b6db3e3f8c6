/* Writes text with a language model: a byte-pair tokenizer, the choice of tokens, and the loop,
   with nothing but libc. Tokens and choices are those of `graphtool generate`. */
#ifndef GT_LANGUAGE_H
#define GT_LANGUAGE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANGUAGE_BYTES = 256 };

/* `run` computes the scores of the token behind `count` ones; the first of them stands at `at`.
   NULL if it fails. It takes up to `most` at a time; `room` tokens fit in the cache. */
typedef struct {
    int32_t merges;
    const int32_t (*pairs)[2];
    int64_t most, room;
    const float *(*run)(const int64_t *tokens, int64_t count, int64_t at);
} language_model;

typedef struct {
    double temperature, top_p;
    int64_t top_k, count;
    uint64_t seed;
    const char *prompt, *stop, *file;
} language_options;

/* ---- tokens ---------------------------------------------------------------------------------- */

/* White space, letters (and bytes of 128 or more), digits, signs. */
static int language_kind(unsigned char c)
{
    if (c == ' ' || (c >= '\t' && c <= '\r')) return 0;
    if (c >= 128 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 1;
    return c >= '0' && c <= '9' ? 2 : 3;
}

/* How many bytes the first piece has, across whose end nothing is joined. */
static size_t language_piece(const unsigned char *text, size_t size)
{
    size_t n = 0;
    int kind = language_kind(text[0]);
    if (kind == 0) {
        while (n < size && language_kind(text[n]) == 0) n++;
        if (n < size && text[n - 1] == ' ') n--; /* it begins the word that follows */
        if (n > 0) return n;
        kind = language_kind(text[++n]);
    }
    while (n < size && language_kind(text[n]) == kind) n++;
    return n;
}

/* The token that two tokens become, or -1. Merges of a pair are unique. */
static int32_t language_merge(const language_model *m, int64_t a, int64_t b)
{
    for (int32_t i = 0; i < m->merges; i++)
        if (m->pairs[i][0] == a && m->pairs[i][1] == b) return LANGUAGE_BYTES + i;
    return -1;
}

/* The tokens of one piece, joined in place; returns their number. */
static int64_t language_join(const language_model *m, int64_t *tokens, int64_t count)
{
    for (;;) {
        int32_t best = -1;
        for (int64_t i = 0; i + 1 < count; i++) {
            const int32_t t = language_merge(m, tokens[i], tokens[i + 1]);
            if (t >= 0 && (best < 0 || t < best)) best = t;
        }
        if (best < 0) return count;
        const int32_t *pair = m->pairs[best - LANGUAGE_BYTES];
        int64_t kept = 0;
        for (int64_t i = 0; i < count; kept++) {
            const int both = i + 1 < count && tokens[i] == pair[0] && tokens[i + 1] == pair[1];
            tokens[kept] = both ? best : tokens[i];
            i += both ? 2 : 1;
        }
        count = kept;
    }
}

/* The tokens of a text; there is room for one for each byte. */
static int64_t language_encode(const language_model *m, const char *text, size_t size,
                               int64_t *tokens)
{
    int64_t count = 0;
    while (size) {
        const size_t n = language_piece((const unsigned char *)text, size);
        for (size_t i = 0; i < n; i++) tokens[count + (int64_t)i] = (unsigned char)text[i];
        count += language_join(m, tokens + count, (int64_t)n);
        text += n, size -= n;
    }
    return count;
}

typedef struct {
    char *bytes;
    size_t size, room;
} language_text;

static int language_add(language_text *t, const language_model *m, int64_t token)
{
    if (token >= LANGUAGE_BYTES) {
        if (token - LANGUAGE_BYTES >= m->merges) return 1; /* the end has no bytes */
        const int32_t *pair = m->pairs[token - LANGUAGE_BYTES];
        return language_add(t, m, pair[0]) && language_add(t, m, pair[1]);
    }
    if (t->size == t->room) {
        const size_t room = t->room ? 2 * t->room : 256;
        char *more = (char *)realloc(t->bytes, room);
        if (!more) return 0;
        t->bytes = more, t->room = room;
    }
    t->bytes[t->size++] = (char)token;
    return 1;
}

/* ---- the choice of a token ------------------------------------------------------------------- */

/* A number from 0 to 1, by SplitMix64. */
static double language_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

typedef struct {
    float score;
    int32_t token;
} language_scored;

static int language_better(const void *a, const void *b)
{
    const language_scored *x = (const language_scored *)a, *y = (const language_scored *)b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->token > y->token) - (x->token < y->token);
}

/* A token by the scores of all `size`; `order` and `weights` have room for as many. */
static int64_t language_draw(const float *scores, int64_t size, const language_options *o,
                             uint64_t *state, language_scored *order, double *weights)
{
    for (int64_t t = 0; t < size; t++) order[t].score = scores[t], order[t].token = (int32_t)t;
    qsort(order, (size_t)size, sizeof *order, language_better);
    if (o->temperature == 0) return order[0].token;
    const int64_t kept = o->top_k && o->top_k < size ? o->top_k : size;
    const double best = order[0].score;
    double total = 0, share = 0;
    for (int64_t i = 0; i < kept; i++) {
        weights[i] = exp((order[i].score - best) / o->temperature);
        total += weights[i];
    }
    int64_t count = 0;
    while (count < kept && (count == 0 || share < o->top_p * total)) share += weights[count++];
    double at = language_random(state) * share;
    for (int64_t i = 0; i < count; i++) {
        at -= weights[i];
        if (at < 0) return order[i].token;
    }
    return order[count - 1].token;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Prints what is certain: not the bytes that may be the beginning of `stop`. Returns whether `stop`
   has come. */
static int language_print(const language_text *t, size_t *printed, const char *stop, int last)
{
    const size_t length = stop ? strlen(stop) : 0;
    size_t until = t->size;
    int found = 0;
    for (size_t i = *printed; length && i + length <= t->size && !found; i++)
        if (!memcmp(t->bytes + i, stop, length)) until = i, found = 1;
    if (!found && !last && length > 1)
        until = until > *printed + length - 1 ? until - (length - 1) : *printed;
    fwrite(t->bytes + *printed, 1, until - *printed, stdout);
    fflush(stdout);
    *printed = until;
    return found;
}

/* Reads the prompt in parts of `most`, then writes `count` tokens, or fewer. Returns 0 if a run
   fails or memory ends. */
static int language_write(const language_model *m, const language_options *o, int64_t *tokens,
                          language_scored *order, double *weights, language_text *text)
{
    const int64_t end = LANGUAGE_BYTES + m->merges, size = end + 1;
    int64_t given = language_encode(m, o->prompt, strlen(o->prompt), tokens), at = 0;
    if (!given) tokens[given++] = end;
    if (given > m->room) {
        fprintf(stderr, "the prompt has %lld tokens, %lld have room\n", (long long)given,
                (long long)m->room);
        return 0;
    }
    uint64_t state = o->seed;
    size_t printed = 0;
    for (int64_t left = o->count;; left--) {
        const float *scores = NULL;
        while (left > 0 && at < given) {
            const int64_t n = given - at < m->most ? given - at : m->most;
            scores = m->run(tokens + at, n, at);
            if (!scores) return 0;
            at += n;
        }
        if (!scores) break;
        const int64_t next = language_draw(scores, size, o, &state, order, weights);
        if (next == end) break;
        if (!language_add(text, m, next)) return 0;
        if (language_print(text, &printed, o->stop, 0)) return 1;
        if (at == m->room) break;
        tokens[given++] = next;
    }
    language_print(text, &printed, o->stop, 1);
    return 1;
}

/* ---- the program ----------------------------------------------------------------------------- */

static const char *const language_usage =
    "usage: %s PROMPT [--temperature T] [--top-k K] [--top-p P] [--seed N] [--tokens N]\n"
    "       [--stop TEXT] [--weights FILE]\n";

/* Reads the command line; 0 if it is wrong. */
static int language_read(int argc, char **argv, language_options *o)
{
    int named = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *rest = NULL;
        if (strncmp(word, "--", 2) != 0) {
            if (named++) return 0;
            o->prompt = word;
            continue;
        }
        if (!value) return 0;
        i++;
        if (!strcmp(word, "--stop")) o->stop = value;
        else if (!strcmp(word, "--weights")) o->file = value;
        else if (!strcmp(word, "--temperature")) o->temperature = strtod(value, &rest);
        else if (!strcmp(word, "--top-p")) o->top_p = strtod(value, &rest);
        else if (!strcmp(word, "--top-k")) o->top_k = strtoll(value, &rest, 10);
        else if (!strcmp(word, "--tokens")) o->count = strtoll(value, &rest, 10);
        else if (!strcmp(word, "--seed")) o->seed = strtoull(value, &rest, 10);
        else return 0;
        if (rest && (rest == value || *rest)) return 0;
    }
    return o->temperature >= 0 && isfinite(o->temperature) && o->top_p > 0 && o->top_p <= 1
           && o->top_k >= 0 && o->count >= 0;
}

/* Writes text as the options say; the exit code of a program. */
static int language_main(const language_model *m, const language_options *o)
{
    const size_t size = (size_t)(LANGUAGE_BYTES + m->merges + 1);
    const size_t longest = strlen(o->prompt) + 1;
    const size_t room = (longest > (size_t)m->room ? longest : (size_t)m->room) + 1;
    int64_t *tokens = (int64_t *)malloc(room * sizeof *tokens);
    language_scored *order = (language_scored *)malloc(size * sizeof *order);
    double *weights = (double *)malloc(size * sizeof *weights);
    language_text text = {NULL, 0, 0};
    const int done = tokens && order && weights
                     && language_write(m, o, tokens, order, weights, &text);
    if (done) printf("\n");
    free(text.bytes), free(weights), free(order), free(tokens);
    return done ? 0 : 1;
}

#endif
