/* The main program of a model: inputs from .npy and .npz files, outputs into one. The generated
   file that includes this defines `model`, a table of what the model takes and gives. */
#ifndef GT_MAIN_H
#define GT_MAIN_H

#include "elements.h"
#include "program.h"

typedef struct {
    const char *name, *weights; /* weights: the file beside the executable; "" where built in */
    int inputs, outputs, dims, sizes; /* sizes stand behind the dims */
    main_port *in, *out;
    const int *donor; /* for each output, the input in whose place it goes, or -1 */
    const main_dim *dim;
    /* fills in the sizes; what must hold of the dims and does not, or NULL */
    const char *(*shapes)(const int64_t *dims, main_port *in, main_port *out);
    const char *(*status_text)(int status);
    size_t (*arena)(const int64_t *dims);
    int (*load)(const char *path, const void **data); /* the weights; returns a status */
    int (*run)(const void *, void *, const int64_t *, const void *const *, void *const *, int);
} main_model;

static const main_model model;

static int main_donates(void)
{
    for (int i = 0; i < model.outputs; i++)
        if (model.donor[i] >= 0) return 1;
    return 0;
}

static int main_donated(int input)
{
    for (int i = 0; i < model.outputs; i++)
        if (model.donor[i] == input) return 1;
    return 0;
}

static void main_usage(FILE *to)
{
    fprintf(to, "usage: %s [-o OUT.npz|OUT.npy] [--threads N] [--repeat N] [--weights FILE]"
                "%s INPUT...\n\n", model.name, main_donates() ? " [--steps N]" : "");
    fprintf(to, "An INPUT is FILE.npz with arrays by name, NAME=FILE.npy, or FILE.npy for the\n"
                "next input. Without -o the outputs are summarised. --repeat N times N runs more."
                "\n\n");
    if (main_donates())
        fprintf(to, "--steps N runs N times: what a run makes of a donated input is that input of"
                    " the next\nrun, and an input with more rows is taken in parts, one after the"
                    " other.\n\n");
    for (int i = 0; i < model.inputs; i++)
        fprintf(to, "input   %s: %s\n", model.in[i].name, model.in[i].text);
    for (int i = 0; i < model.outputs; i++)
        fprintf(to, "output  %s: %s\n", model.out[i].name, model.out[i].text);
}

/* ---- weights ---- */

/* The file of that name beside the executable. */
static void main_beside(const char *program, const char *file, char *path, size_t room)
{
    char self[4096] = "";
#if defined __linux__
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
#endif
    if (!self[0]) snprintf(self, sizeof self, "%s", program);
    const char *slash = strrchr(self, '/');
    snprintf(path, room, "%.*s%s", slash ? (int)(slash + 1 - self) : 0, self, file);
}

/* ---- inputs ---- */

static int main_take(const npy_array *found, int which, const npy_array **given)
{
    if (given[which])
        return main_fail(MAIN_USAGE, "GT3014", "the input %s is given twice", model.in[which].name);
    given[which] = found;
    return MAIN_FINE;
}

static int main_named(const char *name)
{
    for (int i = 0; i < model.inputs; i++)
        if (strcmp(model.in[i].name, name) == 0) return i;
    return -1;
}

/* One INPUT of the command line. */
static int main_input(const char *argument, const npy_array **given)
{
    const char *equals = strchr(argument, '='), *path = argument;
    char name[NPY_NAME] = "";
    if (equals && equals - argument < NPY_NAME) {
        memcpy(name, argument, (size_t)(equals - argument));
        path = equals + 1;
    }
    npy_file *f = malloc(sizeof *f);
    if (!f) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    if (npy_read(f, path)) return main_fail(MAIN_BAD_INPUT, "GT0335", "%s: %s", path, f->fault);
    for (int i = 0; i < f->count; i++) {
        const char *own = f->arrays[i].name;
        int which = name[0] ? main_named(name) : own[0] ? main_named(own) : -1;
        if (which < 0 && (name[0] || own[0]))
            return main_fail(MAIN_BAD_INPUT, "GT2211", "%s: the model has no input %s", path,
                             name[0] ? name : own);
        for (int k = 0; which < 0 && k < model.inputs; k++)
            if (!given[k]) which = k;
        if (which < 0)
            return main_fail(MAIN_USAGE, "GT2211", "%s: the model has %d inputs", path,
                             model.inputs);
        const int code = main_take(&f->arrays[i], which, given);
        if (code) return code;
    }
    return MAIN_FINE;
}

/* How often the rows that a run takes go into those of the array, if the other sizes agree. */
static int64_t main_parts(const main_port *p, const npy_array *a)
{
    if (!p->rank || p->shape[0] < 1 || a->shape[0] < 1 || a->shape[0] % p->shape[0]) return 1;
    for (int k = 1; k < p->rank; k++)
        if (a->shape[k] != p->shape[k]) return 1;
    return a->shape[0] / p->shape[0];
}

/* Checks types and ranks, reads the dims off the shapes, checks the shapes. With several steps,
   `parts` gets how many parts of an input's rows there are. */
static int main_bind(const npy_array **given, int64_t *dims, int64_t *parts, int steps)
{
    for (int i = 0; i < model.inputs; i++) {
        const main_port *p = &model.in[i];
        if (!given[i])
            return main_fail(MAIN_BAD_INPUT, "GT2210", "the input %s is missing", p->name);
        if (strcmp(given[i]->type, p->type) != 0 || given[i]->rank != p->rank) {
            char shape[400];
            main_shape(shape, sizeof shape, given[i]->rank, given[i]->shape);
            return main_fail(MAIN_BAD_INPUT, "GT2212",
                             "the input %s is %s%s in the file, %s expected", p->name,
                             given[i]->type, shape, p->text);
        }
    }
    for (int i = 0; i < model.dims; i++) {
        const main_dim *d = &model.dim[i];
        dims[i] = d->input < 0 ? d->least :
                  main_dim_value(d, given[d->input]->shape[d->axis]);
        if (dims[i] < d->least)
            return main_fail(MAIN_BAD_INPUT, "GT2215",
                             "%s is %" PRId64 ", at least %" PRId64 " expected", d->name,
                             dims[i], d->least);
        if (d->most >= 0 && dims[i] > d->most)
            return main_fail(MAIN_BAD_INPUT, "GT2215",
                             "%s is %" PRId64 ", at most %" PRId64 " expected", d->name,
                             dims[i], d->most);
    }
    const char *broken = model.shapes(dims, model.in, model.out);
    if (broken)
        return main_fail(MAIN_BAD_INPUT, "GT2231", "%s does not hold for these inputs", broken);
    for (int i = 0; i < model.inputs; i++) {
        const main_port *p = &model.in[i];
        parts[i] = steps && !main_donated(i) ? main_parts(p, given[i]) : 1;
        if (parts[i] > 1) continue;
        if (memcmp(p->shape, given[i]->shape, sizeof(int64_t) * (size_t)p->rank) == 0) continue;
        char want[400], found[400];
        main_shape(want, sizeof want, p->rank, p->shape);
        main_shape(found, sizeof found, p->rank, given[i]->shape);
        return main_fail(MAIN_BAD_INPUT, "GT2213",
                         "the input %s has the shape %s, %s expected (%s)", p->name, found, want,
                         p->text);
    }
    return MAIN_FINE;
}

/* ---- outputs and time ---- */

/* Name, type, shape, and the first few numbers. */
static void main_summary(const npy_array *a)
{
    char shape[400];
    int64_t count = 1;
    main_shape(shape, sizeof shape, a->rank, a->shape);
    for (int i = 0; i < a->rank; i++) count *= a->shape[i];
    printf("%s: %s%s", a->name, a->type, shape);
    const int known = a->type[0] != 'V' || strcmp(a->type, "V2") == 0;
    for (int64_t i = 0; known && i < count && i < 8; i++)
        printf(" %.7g", main_number(a->type, a->data, i));
    printf(known && count > 8 ? " ...\n" : "\n");
}

static int main_order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    const char *out, *weights;
    int threads, repeat, steps;
} main_options;

static int main_count(const char *text, int least)
{
    char *end;
    const long n = strtol(text, &end, 10);
    return *end || !*text || n < least || n > 1000000 ? -1 : (int)n;
}

/* The options; every other word is an input. */
static int main_parse(int argc, char **argv, main_options *o, const npy_array **given)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
            main_usage(stdout);
            exit(MAIN_FINE);
        }
        if (word[0] != '-') {
            const int code = main_input(word, given);
            if (code) return code;
            continue;
        }
        if (i + 1 == argc) return main_fail(MAIN_USAGE, "GT3001", "%s wants a value", word);
        const char *value = argv[++i];
        if (strcmp(word, "-o") == 0 || strcmp(word, "--out") == 0)
            o->out = value;
        else if (strcmp(word, "--weights") == 0)
            o->weights = value;
        else if (strcmp(word, "--threads") == 0)
            o->threads = main_count(value, 1);
        else if (strcmp(word, "--repeat") == 0)
            o->repeat = main_count(value, 0);
        else if (strcmp(word, "--steps") == 0 && main_donates())
            o->steps = main_count(value, 1);
        else
            return main_fail(MAIN_USAGE, "GT3001", "unknown option %s", word);
        if (o->threads < 0 || o->repeat < 0 || o->steps < 0)
            return main_fail(MAIN_USAGE, "GT3001", "%s wants a number, got %s", word, value);
    }
    return o->steps && o->repeat ?
           main_fail(MAIN_USAGE, "GT3001", "--steps and --repeat cannot be used together") :
           MAIN_FINE;
}

/* The next part of each input that has several. */
static void main_feed(const npy_array **given, const void **in, const int64_t *parts, int step)
{
    for (int i = 0; i < model.inputs; i++) {
        if (parts[i] < 2) continue;
        const size_t each = (size_t)(given[i]->bytes / parts[i]);
        memcpy((void *)in[i], (const char *)given[i]->data + (size_t)(step % parts[i]) * each,
               each);
    }
}

/* The numbers that a step gives: of the first step, the last, and up to nine between them. */
static void main_tell(const npy_array *outputs, int step, int steps)
{
    const int every = steps < 10 ? 1 : (steps + 8) / 9;
    if (step && step + 1 < steps && (step + 1) % every) return;
    printf("step %d", step + 1);
    for (int i = 0; i < model.outputs; i++)
        if (model.donor[i] < 0 && model.out[i].rank == 0)
            printf("  %s %.7g", outputs[i].name, main_number(outputs[i].type, outputs[i].data, 0));
    printf("\n");
}

static int main_output(const char *path, const npy_array *outputs)
{
    if (!path) {
        for (int i = 0; i < model.outputs; i++) main_summary(&outputs[i]);
        return MAIN_FINE;
    }
    const size_t n = strlen(path);
    const int single = n > 4 && strcmp(path + n - 4, ".npy") == 0;
    if (single && model.outputs != 1)
        return main_fail(MAIN_USAGE, "GT0336", "an .npy file holds one array, the model gives %d",
                         model.outputs);
    if (npy_write(path, outputs, model.outputs, !single))
        return main_fail(MAIN_BAD_INPUT, "GT0330", "cannot write %s", path);
    return MAIN_FINE;
}

/* The outputs' shapes, now that the run has computed what the inputs' did not tell. */
static void main_shapes(const int64_t *dims, npy_array *outputs)
{
    model.shapes(dims, model.in, model.out);
    for (int i = 0; i < model.outputs; i++) {
        const main_port *p = &model.out[i];
        outputs[i].bytes = atoi(p->type + 1);
        for (int k = 0; k < p->rank; k++) outputs[i].bytes *= outputs[i].shape[k] = p->shape[k];
    }
}

int main(int argc, char **argv)
{
    main_options o = {0};
    main_name = model.name;
    const npy_array **given = calloc((size_t)model.inputs + 1, sizeof *given);
    npy_array *outputs = calloc((size_t)model.outputs + 1, sizeof *outputs);
    const void **in = calloc((size_t)model.inputs + 1, sizeof *in);
    void **out = calloc((size_t)model.outputs + 1, sizeof *out);
    int64_t *dims = calloc((size_t)(model.dims + model.sizes) + 1, sizeof *dims);
    int64_t *parts = calloc((size_t)model.inputs + 1, sizeof *parts);
    if (!given || !outputs || !in || !out || !dims || !parts)
        return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    if (argc == 1 && model.inputs) {
        main_usage(stderr);
        return MAIN_USAGE;
    }
    int code = main_parse(argc, argv, &o, given);
    if (code == MAIN_FINE) code = main_bind(given, dims, parts, o.steps);
    if (code) return code;

    const void *weights = NULL;
    if (model.weights[0] || o.weights) {
        char path[8192];
        main_beside(argv[0], model.weights, path, sizeof path);
        const char *file = o.weights ? o.weights : path;
        const int status = model.load(file, &weights);
        if (status)
            return main_fail(MAIN_BAD_INPUT, "GT2204", "%s: %s", file, model.status_text(status));
    }
    for (int i = 0; i < model.inputs; i++) {
        const size_t bytes = (size_t)(given[i]->bytes / parts[i]);
        void *copy = main_aligned(bytes);
        if (!copy) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
        in[i] = memcpy(copy, given[i]->data, bytes);
    }
    for (int i = 0; i < model.outputs; i++) {
        const main_port *p = &model.out[i];
        npy_array *a = &outputs[i];
        snprintf(a->name, sizeof a->name, "%s", p->name);
        snprintf(a->type, sizeof a->type, "%s", p->type);
        a->rank = p->rank;
        a->data = out[i] = o.steps && model.donor[i] >= 0 ? (void *)in[model.donor[i]] :
                           main_aligned((size_t)(p->room * atoi(p->type + 1)));
        if (!a->data) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    }
    const size_t room = model.arena(dims);
    if (!room) return main_fail(MAIN_BAD_INPUT, "GT2215", "the inputs are too large");
    void *arena = main_aligned(room);
    double *times = calloc((size_t)o.repeat + 1, sizeof *times);
    if (!arena || !times) return main_fail(MAIN_INTERNAL, "GT7999", "out of memory");
    const int runs = o.steps ? o.steps : o.repeat + 1;
    for (int i = 0; i < runs; i++) {
        if (o.steps) main_feed(given, in, parts, i);
        const double start = main_seconds();
        const int status = model.run(weights, arena, dims, in, out, o.threads);
        if (status == -2)
            return main_fail(MAIN_BAD_INPUT, "GT2221",
                             "a size or number that the inputs lead to breaks its bound");
        if (status)
            return main_fail(MAIN_BAD_INPUT, status > -1000 ? "GT2215" : "GT0501", "%s",
                             model.status_text(status));
        if (o.steps)
            main_tell(outputs, i, o.steps);
        else
            times[i] = main_seconds() - start;
    }
    main_shapes(dims, outputs);
    if (o.repeat) { /* the first run, which touches all memory for the first time, is not counted */
        qsort(times + 1, (size_t)o.repeat, sizeof *times, main_order);
        fprintf(stderr, "%d runs: %.4f ms at least, %.4f ms median, %.4f ms at most\n", o.repeat,
                times[1] * 1e3, times[1 + o.repeat / 2] * 1e3, times[o.repeat] * 1e3);
    }
    return main_output(o.out, outputs);
}

#endif
