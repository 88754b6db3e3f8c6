/* Ensembles of decision trees, a template: what the leaves weigh that each row comes to.

   GT_ROWS GT_TREES GT_TARGETS  integer expressions, constants or names among GT_PARAMS
   GT_T          the type of values, splits, weights and sums
   GT_X(row)     a row of features, GT_XS the step to the next one
   GT_KINDS      int32_t a node: 16·feature + 2·comparison + missing, or -1 for a leaf
   GT_SPLITS     GT_T a node
   GT_CHILDREN   int32_t[2] a node: where no and yes lead; a leaf's second is its row of weights
   GT_ROOTS      int32_t a tree
   GT_WEIGHTS    GT_T a leaf and target
   GT_GO(kind, v, s)  whether a node of that kind says yes to value v and split s
   GT_FOLD(a, b) how weights of several trees join
   GT_Y(row)     where the results go, GT_YS the step to the next one
   GT_NODES GT_LEAVES GT_FEATURES  how many there are, where the tables are not constants: what
                 leads out of them then leads to the first one, and a walk ends after so many
                 steps as there are nodes */
#include "prelude.h"
#include "template_begin.h"

#ifdef GT_NODES
#define GT_WITHIN(i, n) ((uint32_t)(i) < (uint64_t)(n) ? (i) : 0)
#else
#define GT_WITHIN(i, n) (i)
#endif

enum { GT_JOIN(GT_NAME, _width) = 8 };

/* Eight walks at the same time, each for one row and one tree, so that none waits for the memory of
   another. */
GT_INLINE void GT_JOIN(GT_NAME, _walk)(const GT_T *const *x, int32_t *at GT_PARAMS)
{
#ifdef GT_NODES
    int64_t left = GT_NODES; /* steps: a walk that takes more goes round in a circle */
#else
    const int64_t left = 1;
#endif
    for (int open = 1; open && left;) {
        open = 0;
        for (int i = 0; i < GT_JOIN(GT_NAME, _width); i++) {
            const int32_t kind = (GT_KINDS)[at[i]];
            if (kind < 0) continue;
            const GT_T value = x[i][(int64_t)GT_WITHIN(kind >> 4, GT_FEATURES) * (GT_XS)];
            const int yes = GT_GO(kind, value, (GT_SPLITS)[at[i]]);
            const int32_t next = (GT_CHILDREN)[2 * (int64_t)at[i] + yes];
            at[i] = GT_WITHIN(next, GT_NODES);
            open = 1;
        }
#ifdef GT_NODES
        left--;
#endif
    }
}

GT_INLINE int32_t GT_JOIN(GT_NAME, _root)(int64_t tree GT_PARAMS)
{
    const int32_t root = (GT_ROOTS)[tree];
    return GT_WITHIN(root, GT_NODES);
}

GT_INLINE void GT_JOIN(GT_NAME, _add)(int64_t row, int64_t tree, int32_t at GT_PARAMS)
{
    const int32_t leaf = (GT_CHILDREN)[2 * (int64_t)at + 1];
    const GT_T *w = GT_WEIGHTS + (int64_t)GT_WITHIN(leaf, GT_LEAVES) * (GT_TARGETS);
    GT_T *y = GT_Y(row);
    for (int64_t k = 0; k < GT_TARGETS; k++)
        y[k * (GT_YS)] = tree ? GT_FOLD(y[k * (GT_YS)], w[k]) : w[k];
}

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    enum { width = GT_JOIN(GT_NAME, _width) };
    const int64_t end = gt_part(GT_ROWS, t + 1, threads);
    int64_t row = gt_part(GT_ROWS, t, threads);
    const GT_T *x[width];
    int32_t at[width];
    for (; row + width <= end; row += width) { /* rows side by side in one tree after another */
        for (int i = 0; i < width; i++) {
            const int64_t mine = row + i;
            x[i] = GT_X(mine);
        }
        for (int64_t tree = 0; tree < GT_TREES; tree++) {
            for (int i = 0; i < width; i++) at[i] = GT_JOIN(GT_NAME, _root)(tree GT_ARGS);
            GT_JOIN(GT_NAME, _walk)(x, at GT_ARGS);
            for (int i = 0; i < width; i++)
                GT_JOIN(GT_NAME, _add)(row + i, tree, at[i] GT_ARGS);
        }
    }
    for (; row < end; row++) { /* trees side by side */
        for (int i = 0; i < width; i++) x[i] = GT_X(row);
        for (int64_t tree = 0; tree < GT_TREES; tree += width) {
            for (int i = 0; i < width; i++)
                at[i] = GT_JOIN(GT_NAME, _root)(gt_min(tree + i, (int64_t)(GT_TREES)-1) GT_ARGS);
            GT_JOIN(GT_NAME, _walk)(x, at GT_ARGS);
            for (int i = 0; i < width && tree + i < GT_TREES; i++)
                GT_JOIN(GT_NAME, _add)(row, tree + i, at[i] GT_ARGS);
        }
    }
}

#include "template_end.h"
