/* The loss curve of a run as SVG, to the bytes of `graphtool train`: steps in grey, epochs in
   colour. It reads only the log. */
#ifndef GT_CURVE_H
#define GT_CURVE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

enum { CURVE_WIDTH = 720, CURVE_HEIGHT = 400, CURVE_EDGE = 48 };
/* the most points in the line of steps; if there are more, they are averaged */
enum { CURVE_POINTS = 600 };

typedef struct {
    double x, y;
} curve_point;

typedef struct {
    const char *name, *colour, *width;
    curve_point *points;
    int64_t count, room;
} curve_line;

static int curve_add(curve_line *l, double x, double y)
{
    if (l->count == l->room) {
        const int64_t room = l->room ? 2 * l->room : 256;
        curve_point *more = realloc(l->points, sizeof *more * (size_t)room);
        if (!more) return -1;
        l->points = more, l->room = room;
    }
    l->points[l->count++] = (curve_point){x, y};
    return 0;
}

/* A number, or one that is not finite, as the log has it: "nan", "inf", "-inf". */
static int curve_number(json *j, double *v)
{
    char text[16], *end;
    json_space(j);
    if (j->at >= j->end || *j->at != '"') return json_number(j, v);
    if (!json_string(j, text, sizeof text)) return 0;
    *v = strtod(text, &end);
    return end != text && !*end;
}

/* Adds a line of the log to steps, training and validation. */
static int curve_row(const char *text, size_t length, curve_line lines[3])
{
    enum { STEP, LOSS, STEPS, TRAIN, VAL, KEYS };
    static const char *const keys[KEYS] = {"step", "loss", "steps", "train_loss", "val_loss"};
    json j = {text, text + length};
    char key[64];
    double v[KEYS];
    int there[KEYS] = {0};
    if (!json_take(&j, '{')) return -1;
    while (json_key(&j, key, sizeof key)) {
        int k = 0;
        while (k < KEYS && strcmp(key, keys[k]) != 0) k++;
        if (!(k < KEYS ? curve_number(&j, &v[k]) : json_skip(&j))) return -1;
        if (k < KEYS) there[k] = 1;
    }
    if (there[STEP]) return there[LOSS] ? curve_add(&lines[0], v[STEP], v[LOSS]) : -1;
    if (there[STEPS] && there[TRAIN] && curve_add(&lines[1], v[STEPS], v[TRAIN])) return -1;
    return there[STEPS] && there[VAL] ? curve_add(&lines[2], v[STEPS], v[VAL]) : 0;
}

static int curve_read(const char *log, curve_line lines[3])
{
    char row[1024];
    FILE *in = fopen(log, "rb");
    int bad = !in;
    while (!bad && fgets(row, sizeof row, in)) bad = curve_row(row, strlen(row), lines);
    if (in) fclose(in);
    return bad;
}

/* Means of runs of points, and of these only what can be drawn. */
static void curve_thin(curve_line *l, int64_t most)
{
    const int64_t size = l->count > most ? (l->count + most - 1) / most : 1;
    int64_t kept = 0;
    for (int64_t i = 0; i < l->count; i += size) {
        const int64_t n = l->count - i < size ? l->count - i : size;
        double x = 0, y = 0;
        for (int64_t k = i; k < i + n; k++) x += l->points[k].x, y += l->points[k].y;
        if (isfinite(y)) l->points[kept++] = (curve_point){x / (double)n, y / (double)n};
    }
    l->count = kept;
}

typedef struct {
    double right, low, high; /* the axes begin at step 0 */
    double across, up;       /* from tick to tick */
    int64_t first, last;     /* the ticks of the loss, in steps of `up` */
} curve_axes;

/* The smallest 1, 2 or 5 times a power of ten of which at most `most` make up the span. */
static double curve_step(double span, int most)
{
    double step = 0;
    for (int k = -307; k < 308; k++)
        for (const char *m = "125"; *m; m++) {
            char text[16];
            snprintf(text, sizeof text, "%ce%d", *m, k);
            step = strtod(text, NULL);
            if (span <= step * most) return step;
        }
    return step;
}

static curve_axes curve_range(const curve_line lines[3])
{
    curve_axes a = {.high = -INFINITY};
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < lines[i].count; k++) {
            const curve_point p = lines[i].points[k];
            if (p.x > a.right) a.right = p.x;
            if (p.y < a.low) a.low = p.y;
            if (p.y > a.high) a.high = p.y;
        }
    if (!(a.right > 0)) a.right = 1;
    if (!(a.high > a.low)) a.high = a.low + 1;
    a.across = fmax(1, curve_step(a.right, 8));
    a.up = curve_step(a.high - a.low, 5);
    a.first = (int64_t)floor(a.low / a.up);
    a.last = (int64_t)ceil(a.high / a.up);
    a.low = (double)a.first * a.up; /* the axis ends at ticks */
    a.high = (double)a.last * a.up;
    return a;
}

static curve_point curve_place(const curve_axes *a, double x, double y)
{
    /* volatile: rounded before it is added, also where the CPU could do both at once */
    const volatile double across = x / a->right * (CURVE_WIDTH - 2 * CURVE_EDGE);
    const volatile double low = a->low, high = a->high, value = y;
    const volatile double up = (value - low) / (high - low) * (CURVE_HEIGHT - 2 * CURVE_EDGE);
    return (curve_point){CURVE_EDGE + across, CURVE_HEIGHT - CURVE_EDGE - up};
}

static void curve_ticks(FILE *out, const curve_axes *a)
{
    const int bottom = CURVE_HEIGHT - CURVE_EDGE, end = CURVE_WIDTH - CURVE_EDGE;
    for (int64_t i = a->first; i <= a->last; i++) {
        const double y = curve_place(a, 0, (double)i * a->up).y;
        fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#eee\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" dy=\"4\" text-anchor=\"end\">%g</text>\n", CURVE_EDGE,
                end, y, y, CURVE_EDGE - 6, y, (double)i * a->up);
    }
    for (int64_t i = 0; i <= (int64_t)floor(a->right / a->across); i++) {
        const double x = curve_place(a, (double)i * a->across, 0).x;
        fprintf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#888\"/>\n"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x, x, bottom,
                bottom + 5, x, bottom + 18, (double)i * a->across);
    }
    fprintf(out, "<path fill=\"none\" stroke=\"#888\" d=\"M%d %dV%dH%d\"/>\n", CURVE_EDGE,
            CURVE_EDGE, bottom, end);
}

static void curve_polyline(FILE *out, const curve_axes *a, const curve_line *l)
{
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" points=\"",
            l->colour, l->width);
    for (int64_t k = 0; k < l->count; k++) {
        const curve_point p = curve_place(a, l->points[k].x, l->points[k].y);
        fprintf(out, "%s%.1f,%.1f", k ? " " : "", p.x, p.y);
    }
    fprintf(out, "\"/>\n");
    if (l->count == 1) { /* a line of one point cannot be seen */
        const curve_point p = curve_place(a, l->points->x, l->points->y);
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", p.x, p.y,
                l->colour);
    }
}

static void curve_write(FILE *out, const curve_line lines[3])
{
    const curve_axes a = curve_range(lines);
    const int shown = !!lines[0].count + !!lines[1].count + !!lines[2].count;
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
            CURVE_WIDTH, CURVE_HEIGHT, CURVE_WIDTH, CURVE_HEIGHT);
    curve_ticks(out, &a);
    for (int i = 0, at = CURVE_EDGE; i < 3; i++) {
        const curve_line *l = &lines[i];
        if (!l->count) continue;
        curve_polyline(out, &a, l);
        if (shown > 1)
            fprintf(out, "<line x1=\"%d\" x2=\"%d\" y1=\"24\" y2=\"24\" stroke=\"%s\" "
                    "stroke-width=\"%s\"/>\n<text x=\"%d\" y=\"28\">%s</text>\n", at, at + 20,
                    l->colour, l->width, at + 26, l->name);
        at += 150;
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">step</text>\n"
            "<text transform=\"translate(12 %d) rotate(-90)\" text-anchor=\"middle\">loss</text>\n"
            "</svg>\n", CURVE_WIDTH / 2, CURVE_HEIGHT - 10, CURVE_HEIGHT / 2);
}

/* Draws the log to a file; -1 if the log or the file cannot be used. */
static int curve_draw(const char *log, const char *path)
{
    curve_line lines[3] = {{"each step", "#bbb", "1.0", 0, 0, 0},
                           {"training, each epoch", "#1f77b4", "2.0", 0, 0, 0},
                           {"validation", "#d62728", "2.0", 0, 0, 0}};
    FILE *out = curve_read(log, lines) ? NULL : fopen(path, "wb");
    if (out) {
        curve_thin(&lines[0], CURVE_POINTS);
        for (int i = 1; i < 3; i++) curve_thin(&lines[i], lines[i].count);
        curve_write(out, lines);
    }
    for (int i = 0; i < 3; i++) free(lines[i].points);
    return out && fclose(out) == 0 ? 0 : -1;
}

#endif
