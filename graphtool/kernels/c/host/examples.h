/* Examples to train on: arrays of an .npz file with one example along axis 0 each, their order by a
   seed, and the rows of a batch in the types that the model takes. */
#ifndef GT_EXAMPLES_H
#define GT_EXAMPLES_H

#include "elements.h"
#include "program.h"

/* ---- order ---- */

static inline uint64_t order_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

typedef struct {
    uint64_t key;
    int64_t row;
} order_card;

static int order_compare(const void *a, const void *b)
{
    const order_card *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* 0 … n − 1 shuffled: sorted by keys that depend only on the seed, the epoch and the number. */
static int order_shuffle(uint64_t seed, uint64_t epoch, int64_t n, int64_t *out)
{
    order_card *cards = malloc(sizeof *cards * (size_t)(n + 1));
    if (!cards) return -1;
    const uint64_t base = order_mix(order_mix(seed) + epoch);
    for (int64_t i = 0; i < n; i++)
        cards[i] = (order_card){order_mix(base + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u), i};
    qsort(cards, (size_t)n, sizeof *cards, order_compare);
    for (int64_t i = 0; i < n; i++) out[i] = cards[i].row;
    free(cards);
    return 0;
}

/* ---- examples ---- */

/* One array of the data and the port that it goes to. Rows beyond those of `found` are of `held`,
   the array of the same name in the file to validate by. */
typedef struct {
    const npy_array *found, *held;
    const main_port *port;
    int64_t each; /* elements of an example */
    unsigned char *batch;
} example_array;

/* Copies the rows of an array, one after the other, to where a step reads them. */
static void example_gather(const example_array *a, const int64_t *rows, int64_t n)
{
    const int64_t to = a->each * (a->port->type[1] - '0'), count = a->found->shape[0];
    for (int64_t i = 0; i < n; i++) {
        const npy_array *from = rows[i] < count ? a->found : a->held;
        const int64_t row = rows[i] < count ? rows[i] : rows[i] - count;
        unsigned char *out = a->batch + i * to;
        if (strcmp(from->type, a->port->type) == 0) memcpy(out, from->data + row * to, (size_t)to);
        else main_convert(from->type, from->data, row * a->each, a->port->type, out, a->each);
    }
}

#endif
