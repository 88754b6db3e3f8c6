/* The main program of a training build: the loop of `graphtool train`, to the same bits. All that
   it does follows from options, data and the number of the step, so that a run that was killed goes
   on from its checkpoint to the very same weights. Draws no curve. */
#ifndef GT_TRAIN_H
#define GT_TRAIN_H

#include "learner.h"
#include "schedule.h"
#include "world.h"

typedef struct {
    const char *data, *run, *start, *schedule;
    int64_t epochs, batch, seed, save_every, warmup, patience, threads;
    int shuffle, resume;
    double lr, val;
} train_options;

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
    int64_t *order, *turn, trained, held, cuts; /* the split; the order of an epoch; its batches */
    int64_t share; /* of a batch that this process takes */
    FILE *log;
    double shown, began; /* when the line on the terminal was last written, and first */
    int64_t first;       /* the step that this process began with */
    int terminal, rank, ranks;
} train_run;

static int train_usage(FILE *to)
{
    fprintf(to,
            "usage: %s --data FILE.npz [options]\n\n"
            "  --data FILE.npz     the examples, one along axis 0 of each array\n"
            "  --epochs N          (10)\n"
            "  --batch N           examples a step (64)\n"
            "  --lr RATE           the learning rate (%g)\n"
            "  --val SHARE         held back to validate (0)\n"
            "  --schedule TEXT     constant, step{every=10,factor=0.1}, cosine or onecycle\n"
            "  --warmup N          steps over which the rate rises\n"
            "  --patience N        stop after so many epochs without a better loss\n"
            "  --seed N            of split and order (0)\n"
            "  --no-shuffle        the examples in their order; the last ones validate\n"
            "  --checkpoint DIR    log.jsonl, model.safetensors, checkpoint.safetensors\n"
            "  --resume            go on from the checkpoint, if there is one\n"
            "  --save-every N      steps between checkpoints; else each epoch\n"
            "  --start FILE        weights to start from, .safetensors with torch's names\n"
            "  --threads N\n\n",
            main_name, model.lr);
    for (int i = 0; i < model.step.inputs; i++)
        if (model.step.in_at[i] == LEARNER_GIVEN)
            fprintf(to, "array  %s: %s\n", model.step.in[i].name, model.step.in[i].text);
    return MAIN_FINE;
}

/* ---- options ---- */

/* The place of an option's whole number, with the least one allowed; NULL for other options. */
static int64_t *train_whole(train_options *o, const char *word, int64_t *least)
{
    const struct { const char *word; int64_t *place, least; } rows[] = {
        {"--epochs", &o->epochs, 0}, {"--batch", &o->batch, 1}, {"--seed", &o->seed, 0},
        {"--save-every", &o->save_every, 0}, {"--warmup", &o->warmup, 0},
        {"--patience", &o->patience, 0}, {"--threads", &o->threads, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(word, rows[i].word) == 0) return *least = rows[i].least, rows[i].place;
    return NULL;
}

static const char **train_text(train_options *o, const char *word)
{
    const struct { const char *word, **place; } rows[] = {
        {"--data", &o->data}, {"--checkpoint", &o->run}, {"--start", &o->start},
        {"--schedule", &o->schedule}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(word, rows[i].word) == 0) return rows[i].place;
    return NULL;
}

static int train_value(train_options *o, const char *word, const char *value)
{
    int64_t least = 0, *whole = train_whole(o, word, &least);
    const char **text = train_text(o, word);
    char *end;
    if (text) return *text = value, MAIN_FINE;
    if (whole) {
        *whole = strtoll(value, &end, 10);
        if (!*end && *value && *whole >= least) return MAIN_FINE;
        return main_fail(MAIN_USAGE, "GT3001", "%s wants a number from %" PRId64 ", got %s", word,
                         least, value);
    }
    const int rate = strcmp(word, "--lr") == 0;
    if (!rate && strcmp(word, "--val") != 0)
        return main_fail(MAIN_USAGE, "GT3001", "unknown option %s", word);
    const double v = strtod(value, &end);
    if (*end || !*value || !(v >= 0) || (!rate && v > 1))
        return main_fail(MAIN_USAGE, "GT3001", "%s wants a number from 0%s, got %s", word,
                         rate ? "" : " to 1", value);
    *(rate ? &o->lr : &o->val) = v;
    return MAIN_FINE;
}

static int train_parse(int argc, char **argv, train_options *o)
{
    for (int i = 1; i < argc; i++) {
        char word[64];
        const char *equals = strchr(argv[i], '=');
        const size_t n = equals ? (size_t)(equals - argv[i]) : strlen(argv[i]);
        snprintf(word, sizeof word, "%.*s", (int)(n < 60 ? n : 60), argv[i]);
        if (strcmp(word, "--resume") == 0) o->resume = 1;
        else if (strcmp(word, "--no-shuffle") == 0) o->shuffle = 0;
        else if (strcmp(word, "--shuffle") == 0) o->shuffle = 1;
        else {
            if (!equals && i + 1 == argc)
                return main_fail(MAIN_USAGE, "GT3001", "%s wants a value", word);
            const int code = train_value(o, word, equals ? equals + 1 : argv[++i]);
            if (code) return code;
        }
    }
    if (!o->data) return main_fail(MAIN_USAGE, "GT3001", "--data is missing");
    if (o->resume && !o->run)
        return main_fail(MAIN_USAGE, "GT3050", "--resume needs the directory: --checkpoint DIR");
    return MAIN_FINE;
}

/* ---- the plan ---- */

/* The split, and how many batches an epoch has. A rest is left out where the batch size is compiled
   in, and where it is one example, of which batch norm has no variance. */
static int train_split(train_run *t)
{
    const int64_t n = t->l.examples, batch = t->o.batch;
    t->held = (int64_t)nearbyint((double)n * t->o.val);
    t->trained = n - t->held;
    if (t->trained < 1)
        return main_fail(MAIN_BAD_INPUT, "GT3073", "%" PRId64 " examples, %" PRId64
                         " of them to validate", n, t->held);
    t->order = malloc(sizeof *t->order * (size_t)(n + 1));
    t->turn = malloc(sizeof *t->turn * (size_t)(n + 1));
    if (!t->order || !t->turn) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    for (int64_t i = 0; i < n; i++) t->order[i] = i;
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
    int code = learner_data(&t->l, o->data);
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

/* ---- what stays ---- */

static const char *train_path(const train_run *t, const char *file, char path[4096])
{
    snprintf(path, 4096, "%s/%s", t->o.run, file);
    return path;
}

static void train_describe(const train_run *t, char *out, size_t room)
{
    char total[40], best[40];
    const train_progress *p = &t->p;
    snprintf(out, room, "{\"epoch\": %" PRId64 ", \"position\": %" PRId64 ", \"total\": %s, "
             "\"best\": %s, \"waited\": %" PRId64 ", \"finished\": %s, \"order\": {\"seed\": %"
             PRId64 ", \"batch\": %" PRId64 ", \"shuffle\": %s, \"examples\": %" PRId64 "}}",
             p->epoch, p->position, json_double(total, p->total, 0), json_double(best, p->best, 0),
             p->waited, p->finished ? "true" : "false", t->o.seed, t->o.batch,
             t->o.shuffle ? "true" : "false", t->trained);
}

static int train_save(const train_run *t)
{
    if (!t->o.run || t->rank) return MAIN_FINE;
    char path[4096], progress[600];
    const struct {
        const char *file, *key, *value;
        const learner_cell *cells;
        int count;
    } rows[] = {
        {"checkpoint.safetensors", "progress", progress, model.cell, model.cells},
        {"model.safetensors", "format", "pt", model.keep, model.kept}};
    train_describe(t, progress, sizeof progress);
    for (int i = 0; i < 2; i++) {
        int64_t counted;
        safe_array *arrays = learner_arrays(&t->l, rows[i].cells, rows[i].count, &counted);
        if (!arrays) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
        train_path(t, rows[i].file, path);
        const int bad = safe_write(path, arrays, rows[i].count, rows[i].key, rows[i].value);
        free(arrays);
        if (bad) return main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write %s", path);
    }
    return MAIN_FINE;
}

/* What `train_describe` wrote; -1 if it is of another order of examples, -2 if it is not that. */
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
        if (!json_number(&j, &v)) return -2;
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
    int64_t counted;
    safe_array *arrays = learner_arrays(&t->l, model.cell, model.cells, &counted);
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
    if (known) return main_fail(MAIN_BAD_INPUT, "GT3077", "%s: not a checkpoint, or cut short",
                                path);
    t->p.finished = t->o.patience > 0 && t->p.waited >= t->o.patience;
    return MAIN_FINE;
}

static int train_start(train_run *t)
{
    safe_report r = {0};
    int64_t counted;
    safe_array *arrays = learner_arrays(&t->l, model.keep, model.kept, &counted);
    if (!arrays) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    int wanted = 0; /* the counts of steps are not taken over */
    for (int i = 0; i < model.kept; i++)
        if (model.keep[i].at != LEARNER_GIVEN) arrays[wanted++] = arrays[i];
    const int state = safe_read(t->o.start, arrays, wanted, 0, &r);
    free(arrays);
    if (state == SAFE_CUT)
        return main_fail(MAIN_BAD_INPUT, "GT3077", "%s: not a safetensors file, or cut short",
                         t->o.start);
    if (state == SAFE_ODD || r.seen != wanted)
        return main_fail(MAIN_BAD_INPUT, "GT3076", "%s: %s", t->o.start,
                         state == SAFE_ODD ? r.odd : "not all parameters are in it");
    return MAIN_FINE;
}

static int64_t train_steps(const train_run *t) { return t->p.epoch * t->cuts + t->p.position; }

/* Whether a line of the log is of what the checkpoint knows; the rest will be logged again. */
static int train_kept(const train_run *t, const char *line, size_t length)
{
    json j = {line, line + length};
    char key[64];
    double v, step = -1, epoch = -1;
    if (!json_take(&j, '{')) return 0;
    while (json_key(&j, key, sizeof key)) {
        const int counts = strcmp(key, "step") == 0 || strcmp(key, "epoch") == 0;
        if (!(counts ? json_number(&j, &v) : json_skip(&j))) return 0;
        if (counts) *(key[0] == 's' ? &step : &epoch) = v;
    }
    return step >= 0 ? step < (double)train_steps(t) : epoch >= 0 && epoch < (double)t->p.epoch;
}

/* Drops what a killed run logged behind its last checkpoint. */
static int train_cut_log(const train_run *t)
{
    char path[4096], beside[4096];
    int64_t size = 0;
    const char *text = (const char *)main_file(train_path(t, "log.jsonl", path), &size);
    FILE *out = fopen(train_path(t, "log.jsonl.tmp", beside), "wb");
    if (!out) return -1;
    for (const char *at = text, *end = text + size; text && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break;
        if (train_kept(t, at, (size_t)(stop - at))) fwrite(at, (size_t)(stop + 1 - at), 1, out);
        at = stop + 1;
    }
    return safe_settled(out) || rename(beside, path) ? -1 : 0;
}

static int train_open(train_run *t)
{
    char path[4096];
    if (!t->o.run) return MAIN_FINE;
    if (strlen(t->o.run) > 4000)
        return main_fail(MAIN_BAD_INPUT, "GT0330", "too long a name of a directory");
#if MAIN_MAPS
    for (char *slash = strchr(strcpy(path, t->o.run) + 1, '/'); t->rank == 0 && slash;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
    }
    if (t->rank == 0) mkdir(t->o.run, 0777);
#endif
    world_meet();
    FILE *found = fopen(train_path(t, "checkpoint.safetensors", path), "rb");
    const int there = found && t->o.resume;
    if (found) fclose(found);
    world_meet(); /* before the first process writes one */
    if (there) {
        const int code = train_restore(t);
        if (code) return code;
    }
    if (t->rank) return MAIN_FINE;
    if (there && train_cut_log(t))
        return main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write in %s", t->o.run);
    t->log = fopen(train_path(t, "log.jsonl", path), there ? "ab" : "wb");
    if (!t->log) return main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write %s", path);
    return there ? MAIN_FINE : train_save(t);
}

/* ---- the loop ---- */

/* A line a few times a second, where a person watches. */
static void train_show(train_run *t, double loss, int64_t step)
{
    const double now = main_seconds();
    if (!t->terminal || now - t->shown < 0.1) return;
    t->shown = now;
    fprintf(stderr, "\r\033[Kepoch %" PRId64 "/%" PRId64 "  step %" PRId64 "/%" PRId64
            "  loss %.4f  %.0f examples/s", t->p.epoch + 1, t->o.epochs, step + 1,
            t->o.epochs * t->cuts, loss,
            (double)((step + 1 - t->first) * t->o.batch) / (now - t->began));
}

static int train_step(train_run *t, int64_t batch)
{
    const int64_t start = batch * t->o.batch, step = train_steps(t), left = t->trained - start;
    const int64_t n = (left < t->o.batch ? left : t->o.batch) / t->ranks;
    const double lr = (float)rate_at(&t->rate, step);
    double raw = 0;
    char loss_text[40], lr_text[40];
    learner_gather(&t->l, t->turn + start + n * t->rank, n);
    const int code = learner_run(&t->l, &model.step, n, lr, &raw);
    if (code) return code;
    const double loss = main_number(model.step.out[0].type, &raw, 0);
    t->p.position++;
    t->p.total += loss;
    if (t->log) {
        fprintf(t->log,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"loss\": %s, \"lr\": %s}\n", step,
                t->p.epoch, json_double(loss_text, loss, 1), json_double(lr_text, lr, 1));
        fflush(t->log);
    }
    train_show(t, loss, step);
    if (t->o.save_every && t->p.position % t->o.save_every == 0) return train_save(t);
    return MAIN_FINE;
}

/* Sums of the loss, examples, score and scored over the batches that this process takes. */
static int train_validate(train_run *t, double sums[4])
{
    learner *l = &t->l;
    const int64_t batch = t->share;
    int64_t *rows = malloc(sizeof *rows * (size_t)batch);
    int code = rows ? MAIN_FINE : main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    for (int64_t at = 0, turn = 0; at < t->held && !code; at += batch, turn++) {
        const int64_t n = t->held - at < batch ? t->held - at : batch;
        const int64_t size = model.batch < 0 ? n : batch; /* filled up by repeating */
        if (turn % t->ranks != t->rank) continue;
        for (int64_t i = 0; i < size; i++) rows[i] = t->order[t->trained + at + i % n];
        learner_gather(l, rows, size);
        if (model.measure) {
            code = learner_run(l, &model.predict, size, 0, l->results);
            if (code) break;
            learner_measure(l, n, &sums[2], &sums[3]);
        }
        if (n < size && model.measure == MEASURE_CLASSES) {
            const example_array *target = &l->array[learner_array(l, model.target)];
            for (int64_t i = n * target->each; i < size * target->each; i++)
                ((int64_t *)(void *)target->batch)[i] = model.ignored;
        } else if (n < size && sums[1] > 0) {
            continue; /* a mean over repeated examples would not be that of the set */
        }
        double raw = 0;
        code = learner_run(l, &model.loss, size, 0, &raw);
        sums[0] += main_number(model.loss.out[0].type, &raw, 0) * (double)n;
        sums[1] += (double)n;
    }
    free(rows);
    return code;
}

static double train_rounded(double v, int digits)
{
    char text[64];
    snprintf(text, sizeof text, "%.*f", digits, v);
    return strtod(text, NULL);
}

static int train_close_epoch(train_run *t, double seconds, double rate)
{
    static const char *const measures[] = {"", "accuracy", "accuracy", "accuracy", "mae"};
    char text[5][40], line[400], shown[400];
    train_progress *p = &t->p;
    double judged = p->total / (double)t->cuts, sums[4] = {0};
    size_t n = (size_t)snprintf(line, sizeof line, "{\"epoch\": %" PRId64 ", \"steps\": %" PRId64
                                ", \"train_loss\": %s", p->epoch, train_steps(t),
                                json_double(text[0], judged, 1));
    size_t m = (size_t)snprintf(shown, sizeof shown, "epoch %" PRId64 "  train_loss %.5g",
                                p->epoch + 1, judged);
    if (t->held) {
        const int code = train_validate(t, sums);
        if (code) return code;
        world_sum(sums, 4);
        judged = sums[0] / sums[1];
        n += (size_t)snprintf(line + n, sizeof line - n, ", \"val_loss\": %s",
                              json_double(text[1], judged, 1));
        m += (size_t)snprintf(shown + m, sizeof shown - m, "  val_loss %.5g", judged);
        const char *name = measures[model.measure];
        const double score = sums[2] / (sums[3] > 1 ? sums[3] : 1);
        if (model.measure) {
            n += (size_t)snprintf(line + n, sizeof line - n, ", \"val_%s\": %s", name,
                                  json_double(text[2], score, 1));
            m += (size_t)snprintf(shown + m, sizeof shown - m, "  val_%s %.5g", name, score);
        }
    }
    if (t->log) {
        fprintf(t->log, "%s, \"seconds\": %s, \"examples_per_second\": %s}\n", line,
                json_double(text[3], train_rounded(seconds, 3), 1),
                json_double(text[4], train_rounded(rate, 1), 1));
        fflush(t->log);
    }
    p->waited = judged < p->best ? 0 : p->waited + 1;
    if (judged < p->best) p->best = judged;
    p->finished = t->o.patience > 0 && p->waited >= t->o.patience;
    p->epoch++, p->position = 0, p->total = 0;
    if (t->rank == 0)
        fprintf(stderr, "%s%s  %.0f examples/s\n", t->terminal ? "\r\033[K" : "", shown, rate);
    return train_save(t);
}

static int train_epoch(train_run *t)
{
    const double began = main_seconds();
    const int64_t first = t->p.position;
    if (t->o.shuffle && order_shuffle((uint64_t)t->o.seed, (uint64_t)t->p.epoch + 1, t->trained,
                                      t->turn))
        return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    for (int64_t i = 0; i < t->trained; i++) t->turn[i] = t->order[t->o.shuffle ? t->turn[i] : i];
    for (int64_t batch = first; batch < t->cuts; batch++) {
        const int code = train_step(t, batch);
        if (code) return code;
    }
    const double seconds = main_seconds() - began;
    const int64_t all = t->cuts * t->o.batch, done = all < t->trained ? all : t->trained;
    return train_close_epoch(t, seconds, (double)(done - first * t->o.batch) / seconds);
}

static int train_all(train_run *t)
{
    int code = train_plan(t);
    if (code) return code;
    t->l.state = main_aligned((size_t)model.state_bytes);
    if (!t->l.state) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    code = learner_run(&t->l, &model.init, 0, 0, NULL);
    if (code == MAIN_FINE && t->o.start) code = train_start(t);
    if (code == MAIN_FINE) code = train_open(t);
    t->first = train_steps(t);
    t->began = main_seconds();
    while (code == MAIN_FINE && t->p.epoch < t->o.epochs && !t->p.finished) code = train_epoch(t);
    if (code) return code;
    t->p.finished = 1;
    code = train_save(t);
    if (code == MAIN_FINE && t->rank == 0)
        fprintf(stderr, "%" PRId64 " epochs, best loss %.6g%s%s%s\n", t->p.epoch, t->p.best,
                t->o.run ? "; weights in " : "", t->o.run ? t->o.run : "",
                t->o.run ? "/model.safetensors" : "");
    return code;
}

int main(int argc, char **argv)
{
    static train_run t = {.o = {.epochs = 10, .batch = 64, .shuffle = 1, .lr = -1,
                                .schedule = "constant"}, .p = {.best = INFINITY}};
    main_name = model.name;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
            return train_usage(stdout);
    if (argc == 1) {
        train_usage(stderr);
        return MAIN_USAGE;
    }
#ifdef _OPENMP
    t.o.threads = omp_get_num_procs();
#else
    t.o.threads = 1;
#endif
    int code = train_parse(argc, argv, &t.o);
    if (code) return code;
    world_ready();
    t.rank = world_rank(), t.ranks = world_size();
    t.l.threads = (int)t.o.threads;
#if MAIN_MAPS
    t.terminal = t.rank == 0 && isatty(2);
#endif
    code = train_all(&t);
    if (t.log && fclose(t.log) && !code)
        code = main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write the log in %s", t.o.run);
    return world_close(code);
}

#endif
