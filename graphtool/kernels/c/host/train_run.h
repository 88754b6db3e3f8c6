/* A training run: the split of the examples, the batches of an epoch, and how far it has come. */
#ifndef GT_TRAIN_RUN_H
#define GT_TRAIN_RUN_H

#include "learner_data.h"
#include "schedule.h"
#include "train_options.h"
#include "world.h"

/* What a checkpoint remembers besides the arrays. */
typedef struct {
    int64_t epoch, position, waited; /* position: batches of this epoch that are done */
    double total, best;              /* the sum of their losses */
    int finished;
} train_progress;

typedef struct {
    train_options o;
    learner l;
    rate_schedule rate;
    train_progress p;
    int64_t *order, *epoch_order; /* the split; the order of an epoch */
    int64_t trained, held, cuts;  /* examples to train and to validate; batches of an epoch */
    int64_t share; /* of a batch that this process takes */
    FILE *log;
    double shown, began; /* when the line on the terminal was last written, and first */
    int64_t first;       /* the step that this process began with */
    int terminal, rank, ranks;
} train_run;

static int64_t train_steps(const train_run *t) { return t->p.epoch * t->cuts + t->p.position; }

static const char *train_path(const train_run *t, const char *file, char path[4096])
{
    snprintf(path, 4096, "%s/%s", t->o.run, file);
    return path;
}

/* The split, and how many batches an epoch has. A rest is left out where the batch size is compiled
   in, and where it is one example, of which batch norm has no variance. */
static int train_split(train_run *t)
{
    const int64_t n = t->l.examples, batch = t->o.batch;
    t->held = t->o.held ? t->l.judges : (int64_t)nearbyint((double)n * t->o.val);
    t->trained = t->o.held ? n : n - t->held;
    if (t->trained < 1)
        return main_fail(MAIN_BAD_INPUT, "GT3073", "%" PRId64 " examples, %" PRId64
                         " of them to validate", n, t->held);
    const int64_t rows = t->trained + t->held;
    t->order = malloc(sizeof *t->order * (size_t)(rows + 1));
    t->epoch_order = malloc(sizeof *t->epoch_order * (size_t)(rows + 1));
    if (!t->order || !t->epoch_order) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    for (int64_t i = 0; i < rows; i++) t->order[i] = i;
    if (t->o.shuffle && order_shuffle((uint64_t)t->o.seed, 0, n, t->order))
        return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    const int64_t rest = t->trained % batch / t->ranks;
    t->cuts = t->trained / batch;
    if (model.batch < 0 && (rest > 1 || (rest && !t->cuts))) t->cuts++;
    if (!t->cuts)
        return main_fail(MAIN_BAD_INPUT, "GT3073", "%" PRId64 " examples make no batch of %" PRId64,
                         t->trained, batch);
    return MAIN_FINE;
}

static int train_plan(train_run *t)
{
    train_options *o = &t->o;
    t->rate = (rate_schedule){0};
    if (rate_parse(&t->rate, o->schedule))
        return main_fail(MAIN_USAGE, "GT3070", "unknown schedule %s", o->schedule);
    if (o->batch % t->ranks)
        return main_fail(MAIN_USAGE, "GT3080", "batches of %" PRId64 " do not divide among %d "
                         "processes", o->batch, t->ranks);
    t->share = o->batch / t->ranks;
    if (model.batch >= 0 && model.batch != t->share)
        return main_fail(MAIN_USAGE, "GT3078", "the step is compiled for batches of %" PRId64
                         ", not %" PRId64, model.batch, t->share);
    int code = learner_data(&t->l, o->data, o->held);
    if (code == MAIN_FINE) code = train_split(t);
    const learner_part *parts[] = {&model.step, &model.loss, &model.predict};
    for (int i = 0; i < 3 && code == MAIN_FINE; i++)
        code = learner_check(&t->l, parts[i], t->trained < t->share ? t->trained : t->share,
                             o->data);
    if (code == MAIN_FINE) code = learner_room(&t->l, t->share);
    t->rate.lr = o->lr >= 0 ? o->lr : model.lr;
    t->rate.epoch = t->cuts;
    t->rate.total = o->epochs * t->cuts > 1 ? o->epochs * t->cuts : 1;
    t->rate.warmup = o->warmup;
    return code;
}

#endif
