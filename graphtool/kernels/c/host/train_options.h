/* What the command line of a training program says, and what it is told of it. */
#ifndef GT_TRAIN_OPTIONS_H
#define GT_TRAIN_OPTIONS_H

#include "learner.h"

typedef struct {
    const char *data, *run, *start, *schedule;
    int64_t epochs, batch, seed, save_every, warmup, patience, threads;
    int shuffle, resume;
    double lr, val;
    const char *held; /* a file of examples to validate by, in place of the share `val` */
} train_options;

static int train_usage(FILE *to)
{
    fprintf(to,
            "usage: %s --data FILE.npz [options]\n\n"
            "  --data FILE.npz     the examples, one along axis 0 of each array\n"
            "  --epochs N          (10)\n"
            "  --batch N           examples a step (64)\n"
            "  --lr RATE           the learning rate (%g)\n"
            "  --val SHARE|FILE    held back to validate (0), or an .npz file of examples for it\n"
            "  --schedule TEXT     constant, step{every=10,factor=0.1}, cosine or onecycle\n"
            "  --warmup N          steps over which the rate rises\n"
            "  --patience N        stop after so many epochs without a better loss\n"
            "  --seed N            of split and order (0)\n"
            "  --no-shuffle        the examples in their order; the last ones validate\n"
            "  --checkpoint DIR    log.jsonl, loss.svg, model.safetensors, checkpoint.safetensors\n"
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
    if (!rate && *end) return o->held = value, MAIN_FINE;
    if (*end || !*value || !(v >= 0) || !isfinite(v) || (!rate && v > 1))
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

#endif
