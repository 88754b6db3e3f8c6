/* A training model at work: its state in one block, and calls of its parts on rows of the examples.
   The generated file that includes this defines `model`, a table of its parts. */
#ifndef GT_LEARNER_H
#define GT_LEARNER_H

#include "examples.h"
#include "program.h"
#include "safetensors.h"

/* Where an input or output of a part lies: so many bytes into the state, or one of these. */
enum { LEARNER_GIVEN = -1, LEARNER_RATE = -2 };

typedef struct {
    int inputs, outputs, dims, sizes; /* sizes stand behind the dims */
    main_port *in, *out;
    const int64_t *in_at, *out_at;
    const main_dim *dim;
    const char *(*shapes)(const int64_t *dims, main_port *in, main_port *out);
    size_t (*arena)(const int64_t *dims);
    int (*run)(const void *, void *, const int64_t *, const void *const *, void *const *, int);
} learner_part;

/* An array of a checkpoint, and its place in the state: the same twice, or those of the real and
   the imaginary parts. A place below 0 is one in the arrays that no step changes: −1, −2, … */
typedef struct {
    const char *name, *type;
    int rank;
    int64_t shape[NPY_RANK], bytes, at, imag;
} learner_cell;

enum { MEASURE_NONE, MEASURE_CLASSES, MEASURE_PROBABILITY, MEASURE_LOGIT, MEASURE_DISTANCE };

typedef struct {
    const char *name, *target; /* "": the model computes its loss itself */
    int64_t state_bytes;
    int cells, kept; /* of the whole state, and of the model in it */
    const learner_cell *cell, *keep;
    int64_t step_at, micro_at; /* the counts of steps, and of batches since the last one or -1 */
    int64_t norm_at; /* the norm of the last gradients, or -1 */
    int accumulate, measure, axis;
    int64_t ignored, batch; /* the label that does not count; the compiled batch, or -1 */
    double lr;
    const void *(*fixed)(void); /* the arrays that no step changes; 0: there are none */
    learner_part step, loss, predict, init;
} learner_model;

static const learner_model model;

typedef struct {
    unsigned char *state, *arena;
    size_t room; /* of the arena */
    int threads, arrays;
    int64_t examples, judges; /* to train on, and of the file to validate by */
    example_array *array; /* the data of the step, in the order of its inputs */
    unsigned char *results; /* the first output of predict */
} learner;

/* ---- parts ---- */

static int learner_array(const learner *l, const char *name)
{
    for (int i = 0; i < l->arrays; i++)
        if (strcmp(l->array[i].port->name, name) == 0) return i;
    return -1;
}

/* The dims of a part for batches of so many examples. */
static void learner_dims(const learner *l, const learner_part *p, int64_t batch, int64_t *dims)
{
    for (int i = 0; i < p->dims; i++) {
        const main_dim *d = &p->dim[i];
        const int a = d->input < 0 ? -1 : learner_array(l, p->in[d->input].name);
        dims[i] = a < 0 ? d->least : main_dim_value(d, d->axis == 0 ? batch :
                                                    l->array[a].found->shape[d->axis]);
    }
}

static int learner_grow(learner *l, size_t bytes)
{
    if (bytes <= l->room && l->arena) return 0;
    l->arena = main_aligned(bytes); /* a run has only a few sizes: the smaller block is not freed */
    l->room = bytes;
    return l->arena ? 0 : main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
}

enum { LEARNER_PORTS = 4096, LEARNER_DIMS = 64 };

/* Runs a part on the batch that was gathered; its first output that is no state goes to `out`. */
static int learner_run(learner *l, const learner_part *p, int64_t batch, double rate, void *out)
{
    static const void *in[LEARNER_PORTS];
    static void *to[LEARNER_PORTS];
    int64_t dims[LEARNER_DIMS] = {0};
    static double rate_cell;
    static unsigned char *spare;
    static size_t spare_room;
    learner_dims(l, p, batch, dims);
    if (p->inputs > LEARNER_PORTS || p->outputs > LEARNER_PORTS ||
        p->dims + p->sizes > LEARNER_DIMS)
        return main_fail(MAIN_INTERNAL, "GT7999", "too many arrays");
    if (learner_grow(l, p->arena(dims))) return MAIN_INTERNAL;
    p->shapes(dims, p->in, p->out);
    for (int i = 0; i < p->inputs; i++) {
        in[i] = l->state + p->in_at[i];
        if (p->in_at[i] == LEARNER_RATE) {
            const float single = (float)rate;
            if (strcmp(p->in[i].type, "f4") == 0) memcpy(&rate_cell, &single, sizeof single);
            else rate_cell = rate;
            in[i] = &rate_cell;
        } else if (p->in_at[i] == LEARNER_GIVEN) {
            in[i] = l->array[learner_array(l, p->in[i].name)].batch;
        }
    }
    for (int i = 0, given = 0; i < p->outputs; i++) {
        to[i] = l->state + p->out_at[i];
        if (p->out_at[i] != LEARNER_GIVEN) continue;
        to[i] = out;
        if (given++ == 0) continue;
        /* results that are not used */
        const size_t bytes = (size_t)(p->out[i].type[1] - '0') * (size_t)p->out[i].room;
        if (bytes > spare_room) spare = main_aligned(bytes), spare_room = bytes;
        to[i] = spare;
    }
    if (p->run(NULL, l->arena, dims, in, to, l->threads))
        return main_fail(MAIN_BAD_INPUT, "GT2215", "a dimension is out of its range");
    if (p->sizes) p->shapes(dims, p->in, p->out);
    return MAIN_FINE;
}

/* The name of an array of the state that has NaN; NULL if none has. */
static const char *learner_broken(const learner *l)
{
    const learner_part *p = &model.step;
    for (int i = 0; i < p->inputs; i++) {
        const main_port *port = &p->in[i];
        int64_t n = 1;
        if (p->in_at[i] < 0 || !strchr("fV", port->type[0])) continue;
        for (int k = 0; k < port->rank; k++) n *= port->shape[k];
        for (int64_t k = 0; k < n; k++)
            if (isnan(main_number(port->type, l->state + p->in_at[i], k))) return port->name;
    }
    return NULL;
}

/* ---- the score of the model ---- */

/* Whether the largest of the classes is the right one; the first of equals, and NaN before all. */
static int learner_right(const main_port *out, const void *scores, int64_t at, int64_t stride,
                         int64_t classes, int64_t label)
{
    int64_t best = 0;
    double most = main_number(out->type, scores, at);
    for (int64_t c = 1; c < classes && !isnan(most); c++) {
        const double v = main_number(out->type, scores, at + c * stride);
        if (v > most || isnan(v)) best = c, most = v;
    }
    return best == label;
}

/* Adds the scores of the batch's first n examples in the measure of the loss, and their number. */
static void learner_measure(const learner *l, int64_t n, double *score, double *scored)
{
    const main_port *out = &model.predict.out[0];
    const example_array *target = &l->array[learner_array(l, model.target)];
    const char *type = target->port->type;
    if (model.measure == MEASURE_CLASSES) {
        int64_t inner = 1, outer = n;
        for (int k = model.axis + 1; k < out->rank; k++) inner *= out->shape[k];
        for (int k = 1; k < model.axis; k++) outer *= out->shape[k];
        const int64_t classes = out->shape[model.axis];
        for (int64_t i = 0; i < outer * inner; i++) {
            const int64_t label = main_integer(type, target->batch, i);
            if (label == model.ignored) continue;
            const int64_t at = i / inner * classes * inner + i % inner;
            *score += learner_right(out, l->results, at, inner, classes, label);
            *scored += 1;
        }
        return;
    }
    for (int64_t i = 0; i < n * target->each; i++) {
        const double x = main_number(out->type, l->results, i);
        const double y = main_number(type, target->batch, i);
        const double limit = model.measure == MEASURE_LOGIT ? 0 : 0.5;
        if (model.measure == MEASURE_DISTANCE)
            *score += strcmp(type, "f4") == 0 ? (double)fabsf((float)x - (float)y) : fabs(x - y);
        else
            *score += (x > limit) == (y > 0.5);
        *scored += 1;
    }
}

/* ---- checkpoints ---- */

static unsigned char *learner_at(const learner *l, int64_t at)
{
    return at >= 0 ? l->state + at : (unsigned char *)model.fixed() + (-1 - at);
}

/* Float i of an array: its parts in turn, if it has two. */
static unsigned char *learner_float(const learner *l, const learner_cell *c, int64_t i)
{
    return learner_at(l, i % 2 ? c->imag : c->at) + i / 2 * 4;
}

/* The arrays of a file. The data of each are its place in the state; or, if it has two parts or
   `copied` is set, a copy. */
static safe_array *learner_arrays(const learner *l, const learner_cell *cells, int count,
                                  int copied)
{
    safe_array *out = calloc((size_t)count + 1, sizeof *out);
    for (int i = 0; out && i < count; i++) {
        const learner_cell *c = &cells[i];
        const int parts = c->imag != c->at;
        out[i] = (safe_array){c->name, c->type, c->rank, {0}, c->bytes, learner_at(l, c->at), 0};
        memcpy(out[i].shape, c->shape, sizeof out[i].shape);
        if (!parts && !copied) continue;
        unsigned char *copy = malloc((size_t)c->bytes + 1);
        if (!copy) return NULL;
        for (int64_t k = 0; parts && k < c->bytes / 4; k++)
            memcpy(copy + 4 * k, learner_float(l, c, k), 4);
        if (!parts) memcpy(copy, out[i].data, (size_t)c->bytes);
        out[i].data = copy;
    }
    return out;
}

static void learner_free(safe_array *arrays, const learner_cell *cells, int count, int copied)
{
    for (int i = 0; i < count; i++)
        if (copied || cells[i].imag != cells[i].at) free(arrays[i].data);
    free(arrays);
}

#endif
