/* What a training run leaves behind: the whole state, the model under torch's names, the loss
   curve; and how it goes on from them. */
#ifndef GT_TRAIN_CHECKPOINT_H
#define GT_TRAIN_CHECKPOINT_H

#include "curve.h"
#include "train_run.h"

/* As graphtool/io/versions.py has it. */
#define TRAIN_VERSION 1
#define TRAIN_SINCE "1.1.0"

static void train_describe(const train_run *t, char *out, size_t room)
{
    char total[40], best[40];
    const train_progress *p = &t->p;
    snprintf(out, room, "{\"format\": \"graphtool/checkpoint\", \"version\": %d, \"since\": \""
             TRAIN_SINCE "\", \"epoch\": %" PRId64 ", \"position\": %" PRId64 ", \"total\": %s, "
             "\"best\": %s, \"waited\": %" PRId64 ", \"finished\": %s, \"order\": {\"seed\": %"
             PRId64 ", \"batch\": %" PRId64 ", \"shuffle\": %s, \"examples\": %" PRId64 "}}",
             TRAIN_VERSION, p->epoch, p->position, json_double(total, p->total, 0),
             json_double(best, p->best, 0),
             p->waited, p->finished ? "true" : "false", t->o.seed, t->o.batch,
             t->o.shuffle ? "true" : "false", t->trained);
}

/* The loss curve, beside the log that it is drawn from. */
static int train_draw(const train_run *t)
{
    char log[4096], path[4096], beside[4096];
    train_path(t, "log.jsonl", log);
    train_path(t, "loss.svg", path);
    if (curve_draw(log, train_path(t, "loss.svg.tmp", beside)) == 0 && rename(beside, path) == 0)
        return MAIN_FINE;
    return main_fail(MAIN_BAD_INPUT, "GT0330", "cannot draw %s from %s", path, log);
}

/* checkpoint.safetensors (`which` 0) or model.safetensors (1). */
static int train_write(const train_run *t, int which)
{
    char path[4096], progress[600];
    const struct {
        const char *file, *key, *value;
        const learner_cell *cells;
        int count;
    } rows[] = {
        {"checkpoint.safetensors", "progress", progress, model.cell, model.cells},
        {"model.safetensors", "format", "pt", model.keep, model.kept}}, *row = &rows[which];
    safe_array *arrays = learner_arrays(&t->l, row->cells, row->count, 0);
    if (!arrays) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    train_describe(t, progress, sizeof progress);
    train_path(t, row->file, path);
    const int bad = safe_write(path, arrays, row->count, row->key, row->value);
    learner_free(arrays, row->cells, row->count, 0);
    return bad ? main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write %s", path) : MAIN_FINE;
}

static int train_save(const train_run *t)
{
    if (!t->o.run || t->rank) return MAIN_FINE;
    for (int which = 0; which < 2; which++) {
        const int code = train_write(t, which);
        if (code) return code;
    }
    return t->p.position ? MAIN_FINE : train_draw(t);
}

/* What `train_describe` wrote; -1 if it is of another order of examples, -2 if it is not that, -3
   if a newer graphtool wrote it. */
static int train_recall(train_run *t, const char *text)
{
    json j = {text, text + strlen(text)};
    char key[64];
    double v = 0, order[4] = {-1, -1, -1, -1};
    train_progress *p = &t->p;
    if (!json_take(&j, '{')) return -2;
    while (json_key(&j, key, sizeof key)) {
        if (strcmp(key, "order") == 0) {
            if (!json_take(&j, '{')) return -2;
            while (json_key(&j, key, sizeof key)) {
                const char *known[] = {"seed", "batch", "shuffle", "examples"};
                if (!json_number(&j, &v)) return -2;
                for (int i = 0; i < 4; i++)
                    if (strcmp(key, known[i]) == 0) order[i] = v;
            }
            continue;
        }
        if (strcmp(key, "format") == 0 || strcmp(key, "since") == 0) {
            if (!json_skip(&j)) return -2;
            continue;
        }
        if (!json_number(&j, &v)) return -2;
        if (strcmp(key, "version") == 0 && v > TRAIN_VERSION) return -3;
        if (strcmp(key, "epoch") == 0) p->epoch = (int64_t)v;
        if (strcmp(key, "position") == 0) p->position = (int64_t)v;
        if (strcmp(key, "waited") == 0) p->waited = (int64_t)v;
        if (strcmp(key, "total") == 0) p->total = v;
        if (strcmp(key, "best") == 0) p->best = v;
    }
    const double own[4] = {(double)t->o.seed, (double)t->o.batch, t->o.shuffle,
                           (double)t->trained};
    return memcmp(own, order, sizeof own) == 0 ? 0 : -1;
}

static int train_restore(train_run *t)
{
    char path[4096], progress[2000] = "progress";
    safe_report r = {.metadata = progress, .room = sizeof progress};
    safe_array *arrays = learner_arrays(&t->l, model.cell, model.cells, 0);
    if (!arrays) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    train_path(t, "checkpoint.safetensors", path);
    const int state = safe_read(path, arrays, model.cells, 1, &r);
    free(arrays);
    const int other = state == SAFE_FINE && r.seen != model.cells;
    if (state == SAFE_ODD || other)
        return main_fail(MAIN_BAD_INPUT, "GT3075", "%s: the checkpoint is of another training: %s",
                         path, other ? "an array is missing" : r.odd);
    const int known = state == SAFE_FINE ? train_recall(t, progress) : -2;
    if (known == -1)
        return main_fail(MAIN_BAD_INPUT, "GT3079", "%s: the run was made with another order of "
                         "examples: seed, batch, shuffling or data differ", path);
    if (known == -3)
        return main_fail(MAIN_BAD_INPUT, "GT0334", "%s: a newer graphtool wrote this checkpoint; "
                         "build the program anew with that one", path);
    if (known) return main_fail(MAIN_BAD_INPUT, "GT3077", "%s: not a checkpoint, or cut short",
                                path);
    t->p.finished = t->o.patience > 0 && t->p.waited >= t->o.patience;
    /* a run that was killed between the two files left the model one save older */
    return t->rank ? MAIN_FINE : train_write(t, 1);
}

/* Why a cell cannot start from an array of a file; NULL if it can. The counts of batches, which
   torch keeps beside the statistics of its norms, may be others where no step changes them. */
static const char *train_misfit(const train_run *t, int at, const safe_array *arrays)
{
    static const char count[] = "num_batches_tracked";
    const learner_cell *c = &model.keep[at];
    const size_t n = strlen(c->name), m = sizeof count - 1;
    const int counts = n >= m && strcmp(c->name + n - m, count) == 0;
    const int still = c->at < 0 && c->imag < 0;
    const char *kind = safe_floats(c->type);
    if (!arrays[at].seen) return still || counts ? NULL : "is missing, which the training needs";
    for (int64_t i = 0; kind && i < c->bytes / (kind[1] - '0'); i++)
        if (isnan(main_number(kind, arrays[at].data, i))) return "has NaN";
    for (int i = 0; i < at; i++)
        if (arrays[i].seen && model.keep[i].at == c->at
            && memcmp(arrays[i].data, arrays[at].data, (size_t)c->bytes))
            return "has other numbers than an array that it is tied to";
    if (!still || counts || c->imag != c->at
        || memcmp(arrays[at].data, learner_at(&t->l, c->at), (size_t)c->bytes) == 0) return NULL;
    return "has other numbers than this build, in which it is fixed";
}

static int train_start(train_run *t)
{
    safe_report r = {0};
    safe_array *arrays = learner_arrays(&t->l, model.keep, model.kept, 1);
    if (!arrays) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    const int state = safe_read(t->o.start, arrays, model.kept, 0, &r);
    if (state == SAFE_CUT)
        return main_fail(MAIN_BAD_INPUT, "GT3077", "%s: not a safetensors file, or cut short",
                         t->o.start);
    if (state == SAFE_ODD)
        return main_fail(MAIN_BAD_INPUT, "GT3076", "%s: %s has another type or shape", t->o.start,
                         r.odd);
    for (int i = 0; i < model.kept; i++) {
        const learner_cell *c = &model.keep[i];
        const char *why = train_misfit(t, i, arrays);
        if (why)
            return main_fail(MAIN_BAD_INPUT, "GT3076", "%s: %s %s", t->o.start, c->name, why);
        if (!arrays[i].seen) continue;
        const unsigned char *from = arrays[i].data;
        if (c->at == c->imag && c->at >= 0) memcpy(t->l.state + c->at, from, (size_t)c->bytes);
        for (int64_t k = 0; c->at != c->imag && k < c->bytes / 4; k++)
            if ((k % 2 ? c->imag : c->at) >= 0) memcpy(learner_float(&t->l, c, k), from + 4 * k, 4);
    }
    learner_free(arrays, model.keep, model.kept, 1);
    return MAIN_FINE;
}

#endif
