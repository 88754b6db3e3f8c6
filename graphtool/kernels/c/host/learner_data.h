/* The examples of a learner: the arrays of .npz files that fit its inputs, and batches of them. */
#ifndef GT_LEARNER_DATA_H
#define GT_LEARNER_DATA_H

#include "learner.h"

/* The array of the port in a file: its type becomes the port's, and its rank is right. */
static int learner_find(const npy_file *f, const main_port *port, const npy_array **found,
                        const char *path)
{
    char names[400] = "";
    const npy_array *a = NULL;
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->arrays[i].name, port->name) == 0) a = &f->arrays[i];
        const size_t n = strlen(names);
        snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", f->arrays[i].name);
    }
    if (!a)
        return main_fail(MAIN_BAD_INPUT, "GT3071", "%s: the data have no array %s; there are %s",
                         path, port->name, names[0] ? names : "none");
    if (!main_becomes(a->type, a->data, a->bytes / (a->type[1] - '0'), port->type))
        return main_fail(MAIN_BAD_INPUT, "GT3074", "%s: %s is %s, %s expected", path, port->name,
                         a->type, port->text);
    if (a->rank != port->rank || !port->rank) {
        char shape[400];
        main_shape(shape, sizeof shape, a->rank, a->shape);
        return main_fail(MAIN_BAD_INPUT, "GT2213", "%s: %s has the shape %s, %s expected", path,
                         port->name, shape, port->text);
    }
    *found = a;
    return MAIN_FINE;
}

/* Whether the shapes of the examples are those that a part computes for the dims they give. */
static int learner_check(const learner *l, const learner_part *p, int64_t batch, const char *path)
{
    int64_t dims[LEARNER_DIMS] = {0};
    learner_dims(l, p, batch, dims);
    for (int i = 0; i < p->dims; i++) {
        const main_dim *d = &p->dim[i];
        if (dims[i] >= d->least && (d->most < 0 || dims[i] <= d->most)) continue;
        return main_fail(MAIN_BAD_INPUT, "GT2215", "%s: %s is %" PRId64 ", %" PRId64 " to %" PRId64
                         " expected", path, d->name, dims[i], d->least, d->most);
    }
    const char *broken = p->shapes(dims, p->in, p->out);
    if (broken)
        return main_fail(MAIN_BAD_INPUT, "GT2231", "%s: %s does not hold", path, broken);
    for (int i = 0; i < p->inputs; i++) {
        if (p->in_at[i] != LEARNER_GIVEN) continue;
        const main_port *port = &p->in[i];
        const npy_array *a = l->array[learner_array(l, port->name)].found;
        if (memcmp(a->shape + 1, port->shape + 1, sizeof(int64_t) * (size_t)(port->rank - 1)) == 0)
            continue;
        char shape[400];
        main_shape(shape, sizeof shape, a->rank, a->shape);
        return main_fail(MAIN_BAD_INPUT, "GT2213", "%s: %s has the shape %s, %s expected", path,
                         port->name, shape, port->text);
    }
    return MAIN_FINE;
}

static int learner_lengths(const char *path, const npy_array *a, const npy_array *b)
{
    if (a->shape[0] == b->shape[0]) return MAIN_FINE;
    return main_fail(MAIN_BAD_INPUT, "GT3072", "%s: %s has %" PRId64 " examples, %s %" PRId64, path,
                     a->name, a->shape[0], b->name, b->shape[0]);
}

/* The arrays to validate by, which are as those to train on but for their number. */
static int learner_held(learner *l, const char *path)
{
    npy_file *f = malloc(sizeof *f);
    if (!f) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    if (npy_read(f, path)) return main_fail(MAIN_BAD_INPUT, "GT0335", "%s: %s", path, f->fault);
    for (int i = 0; i < l->arrays; i++) {
        example_array *a = &l->array[i];
        int code = learner_find(f, a->port, &a->held, path);
        if (code == MAIN_FINE) code = learner_lengths(path, l->array[0].held, a->held);
        if (code) return code;
        if (memcmp(a->held->shape + 1, a->found->shape + 1,
                   sizeof(int64_t) * (size_t)(a->found->rank - 1)) == 0) continue;
        char shape[400], own[400];
        main_shape(shape, sizeof shape, a->held->rank, a->held->shape);
        main_shape(own, sizeof own, a->found->rank, a->found->shape);
        return main_fail(MAIN_BAD_INPUT, "GT2213", "%s: %s has the shape %s, the training data "
                         "have %s", path, a->port->name, shape, own);
    }
    l->judges = l->arrays ? l->array[0].held->shape[0] : 0;
    return MAIN_FINE;
}

/* The arrays of the file under the names of the step's inputs, all of one length; and those of the
   file to validate by, where there is one. */
static int learner_data(learner *l, const char *path, const char *held)
{
    npy_file *f = malloc(sizeof *f);
    const learner_part *p = &model.step;
    l->array = calloc((size_t)p->inputs + 1, sizeof *l->array);
    if (!f || !l->array) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    if (npy_read(f, path)) return main_fail(MAIN_BAD_INPUT, "GT0335", "%s: %s", path, f->fault);
    for (int i = 0; i < p->inputs; i++) {
        if (p->in_at[i] != LEARNER_GIVEN) continue;
        example_array *a = &l->array[l->arrays];
        int code = learner_find(f, &p->in[i], &a->found, path);
        if (code == MAIN_FINE) code = learner_lengths(path, l->array[0].found, a->found);
        if (code) return code;
        a->port = &p->in[i];
        a->each = 1;
        for (int k = 1; k < a->found->rank; k++) a->each *= a->found->shape[k];
        l->arrays++;
    }
    l->examples = l->arrays ? l->array[0].found->shape[0] : 0;
    return held ? learner_held(l, held) : MAIN_FINE;
}

/* Room for batches of so many examples, and for what predict gives of them. */
static int learner_room(learner *l, int64_t batch)
{
    int64_t dims[LEARNER_DIMS] = {0};
    for (int i = 0; i < l->arrays; i++) {
        example_array *a = &l->array[i];
        a->batch = main_aligned((size_t)(batch * a->each * (a->port->type[1] - '0')));
        if (!a->batch) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    }
    learner_dims(l, &model.predict, batch, dims);
    model.predict.shapes(dims, model.predict.in, model.predict.out);
    const main_port *out = &model.predict.out[0];
    l->results = main_aligned((size_t)(out->type[1] - '0') * (size_t)out->room);
    return l->results ? MAIN_FINE : main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
}

static void learner_gather(learner *l, const int64_t *rows, int64_t n)
{
    for (int i = 0; i < l->arrays; i++) example_gather(&l->array[i], rows, n);
}

#endif
