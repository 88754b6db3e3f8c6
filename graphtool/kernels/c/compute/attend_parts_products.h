/* A part of attend_parts.h: its products by tiles. They are taken one by one, so that the matrix
   unit works while the vectors between them are computed. */

/* Sums of a block by panels in so many steps: tiles are [TALL][NR], and begin at zero or go on.
   `step` and `product` are those that come next; the next panel of B is `next` bytes further. */
typedef struct {
    int64_t panels, steps, step, next;
    const char *a, *b;
    float *sums;
    int zero, two, product;
} GT_JOIN(GT_NAME, _job);

/* Two jobs whose products, `todo` in all, are taken between the vectors of `slots` panels. */
typedef struct {
    GT_JOIN(GT_NAME, _job) jobs[2];
    int64_t todo, slots, pace;
} GT_JOIN(GT_NAME, _queue);

/* Takes the next product of a job. */
GT_INLINE void GT_JOIN(GT_NAME, _advance)(GT_JOIN(GT_NAME, _job) *job)
{
#ifdef GT_AMX
    const int64_t row = GT_PARTS * GT_RUN_BYTES, second = GT_SEGMENT * row;
    const char *a = job->a + job->step * 2 * second;
    const char *b = job->b + job->step * GT_PANEL_STEP;
    if (!job->step && !job->product)
        gt_block_begin(GT_BFLOAT16, job->zero, job->two, GT_NR, job->sums);
    switch (job->product + 8 * job->two) {
#define GT_PRODUCT(n, _)                                                                           \
    case n - 1: gt_parts_product(GT_PARTS, n - 1, 0, 1, a, second, row, GT_RUN_BYTES, b); break;  \
    case n + 7: gt_parts_product(GT_PARTS, n - 1, 1, 1, a, second, row, GT_RUN_BYTES, b); break;
#if GT_PARTS == 3
        GT_UPTO(6, GT_PRODUCT, )
#else
        GT_UPTO(3, GT_PRODUCT, )
#endif
#undef GT_PRODUCT
    }
    if (++job->product < GT_PARTS_PRODUCTS(GT_PARTS)) return;
    job->product = 0;
    if (++job->step < job->steps) return;
    gt_block_store(GT_BFLOAT16, job->two, GT_NR, job->sums);
    job->step = 0, job->panels--;
    job->b += job->next, job->sums += GT_TALL * GT_NR;
#else
    (void)job;
#endif
}

/* Sets the pace of the jobs. */
GT_INLINE void GT_JOIN(GT_NAME, _plan)(GT_JOIN(GT_NAME, _queue) *queue, int64_t slots)
{
    const GT_JOIN(GT_NAME, _job) *jobs = queue->jobs;
    queue->todo = (jobs[0].panels * jobs[0].steps + jobs[1].panels * jobs[1].steps)
                  * GT_PARTS_PRODUCTS(GT_PARTS);
    queue->slots = slots, queue->pace = 0;
}

/* What comes between the vectors of one panel. */
GT_INLINE void GT_JOIN(GT_NAME, _beside)(GT_JOIN(GT_NAME, _queue) *queue)
{
    for (queue->pace += queue->todo; queue->pace >= queue->slots; queue->pace -= queue->slots)
        GT_JOIN(GT_NAME, _advance)(queue->jobs + !queue->jobs[0].panels);
}

/* All that is left. */
GT_INLINE void GT_JOIN(GT_NAME, _finish)(GT_JOIN(GT_NAME, _queue) *queue)
{
    for (int i = 0; i < 2; i++)
        while (queue->jobs[i].panels) GT_JOIN(GT_NAME, _advance)(queue->jobs + i);
}
