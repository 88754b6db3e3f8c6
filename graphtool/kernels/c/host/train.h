/* The main program of a training build: the loop of `graphtool train`, to the same bits. All that
   it does follows from options, data and the number of the step, so that a run that was killed goes
   on from its checkpoint to the very same weights. */
#ifndef GT_TRAIN_H
#define GT_TRAIN_H

#include "train_log.h"

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
    learner_gather(&t->l, t->epoch_order + start + n * t->rank, n);
    const int code = learner_run(&t->l, &model.step, n, lr, &raw);
    if (code) return code;
    const double loss = main_number(model.step.out[0].type, &raw, 0);
    const char *broken = isnan(loss) ? learner_broken(&t->l) : NULL;
    if (broken)
        return main_fail(MAIN_BAD_INPUT, "GT3082", "after step %" PRId64 " %s has NaN: look for "
                         "NaN in the data, or take a smaller --lr", step, broken);
    t->p.position++;
    t->p.total += loss;
    if (t->log) {
        fprintf(t->log,
                "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"loss\": %s, \"lr\": %s", step,
                t->p.epoch, json_double(loss_text, loss, 1), json_double(lr_text, lr, 1));
        if (model.norm_at >= 0) {
            double norm;
            memcpy(&norm, t->l.state + model.norm_at, sizeof norm);
            fprintf(t->log, ", \"grad_norm\": %s", json_double(loss_text, norm, 1));
        }
        fprintf(t->log, "}\n");
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
    for (int64_t at = 0, number = 0; at < t->held && !code; at += batch, number++) {
        const int64_t n = t->held - at < batch ? t->held - at : batch;
        const int64_t size = model.batch < 0 ? n : batch; /* filled by repetition */
        if (number % t->ranks != t->rank) continue;
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
                                      t->epoch_order))
        return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    for (int64_t i = 0; i < t->trained; i++)
        t->epoch_order[i] = t->order[t->o.shuffle ? t->epoch_order[i] : i];
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
    if (code) return code;
    world_share(t->l.state, (size_t)model.state_bytes); /* whatever each one started from */
    world_share(&t->p, sizeof t->p);
    t->first = train_steps(t);
    t->began = main_seconds();
    while (code == MAIN_FINE && t->p.epoch < t->o.epochs && !t->p.finished) code = train_epoch(t);
    if (code) return code;
    t->p.finished = 1;
    code = train_save(t);
    if (code || t->rank) return code;
    fprintf(stderr, "%" PRId64 " epoch%s", t->p.epoch, t->p.epoch == 1 ? "" : "s");
    if (t->p.epoch) fprintf(stderr, ", best loss %.6g", t->p.best);
    if (t->o.run) fprintf(stderr, "; weights in %s/model.safetensors", t->o.run);
    fprintf(stderr, "\n");
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
