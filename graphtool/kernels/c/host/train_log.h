/* log.jsonl of a training run: a line a step and a line an epoch. What a killed run logged behind
   its last checkpoint is dropped, as it will be logged again. */
#ifndef GT_TRAIN_LOG_H
#define GT_TRAIN_LOG_H

#include "train_checkpoint.h"

/* Whether a line of the log is of what the checkpoint knows; the rest will be logged again. */
static int train_kept(const train_run *t, const char *line, size_t length)
{
    json j = {line, line + length};
    char key[64];
    double v = 0, step = -1, epoch = -1;
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

#endif
