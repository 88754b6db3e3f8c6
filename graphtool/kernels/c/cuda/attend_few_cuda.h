/* Attention of a few queries, which is bound by reading keys and values: a block has a query, each
   of its warps every GT_WARPS-th group of keys, and each thread some columns of a key and of a
   value. Numbers are multiplied and added in float32. At the end the sums of the warps are joined
   in their order. attend_cuda.h has defined what scores are. */
#define GT_GROUP_KEYS 8 /* that a warp takes together, so that it waits once for all of them */
#define GT_OF_KEY (((GT_D) + GT_WARP - 1) / GT_WARP)
#define GT_OF_VALUE (((GT_DV) + GT_WARP - 1) / GT_WARP)
#define GT_PART (GT_OF_VALUE * GT_WARP + 2) /* sums of a warp, its highest score, its weights */

/* Takes a group of keys: their scores, and their values times the weights of these. */
GT_INLINE void GT_JOIN(GT_NAME, _group)(const float *query, float *acc, float *top, float *sum,
                                        int64_t b, int64_t s, int64_t from GT_PARAMS)
{
    const int lane = threadIdx.x % GT_WARP;
    float scores[GT_GROUP_KEYS], highest = *top;
    GT_UNROLL
    for (int j = 0; j < GT_GROUP_KEYS; j++) {
        scores[j] = 0.0f;
        GT_UNROLL
        for (int i = 0; i < GT_OF_KEY; i++)
            if (from + j < (GT_T) && i * GT_WARP + lane < (GT_D))
                scores[j] += query[i] * GT_AS_FLOAT((GT_KEY(b))[(from + j) * (GT_LDK) +
                                                               i * GT_WARP + lane]);
    }
    for (int by = 1; by < GT_WARP; by *= 2)
        GT_UNROLL
        for (int j = 0; j < GT_GROUP_KEYS; j++) scores[j] += gt_other_lane(scores[j], by);
    GT_UNROLL
    for (int j = 0; j < GT_GROUP_KEYS; j++) {
        scores[j] = GT_JOIN(GT_NAME, _score)(scores[j], b, s, from + j GT_ARGS);
        highest = scores[j] > highest ? scores[j] : highest;
    }
    const float past = GT_JOIN(GT_NAME, _weight)(*top, highest);
    *sum *= past;
    GT_UNROLL
    for (int i = 0; i < GT_OF_VALUE; i++) acc[i] *= past;
    GT_UNROLL
    for (int j = 0; j < GT_GROUP_KEYS; j++) {
        const float weight = GT_JOIN(GT_NAME, _weight)(scores[j], highest);
        *sum += weight;
        GT_UNROLL
        for (int i = 0; i < GT_OF_VALUE; i++)
            if (from + j < (GT_T) && i * GT_WARP + lane < (GT_DV))
                acc[i] += weight * GT_AS_FLOAT((GT_V(b))[(from + j) * (GT_LDV) + i * GT_WARP +
                                                        lane]);
    }
    *top = highest;
}

static __device__ void GT_NAME(int64_t team, int64_t teams GT_PARAMS)
{
    GT_SHARED_ARRAY(float, part, GT_WARPS *GT_PART);
    const int lane = threadIdx.x % GT_WARP, warp = threadIdx.x / GT_WARP;
    for (int64_t unit = team; unit < (GT_HEADS) * (GT_S); unit += teams) {
        const int64_t b = unit / (GT_S), s = unit % (GT_S);
        const int64_t seen = (GT_CAUSAL) ? gt_min(GT_T, s + 1) : (GT_T);
        float query[GT_OF_KEY], acc[GT_OF_VALUE], top = -GT_INFINITY, sum = 0.0f;
        GT_UNROLL
        for (int i = 0; i < GT_OF_KEY; i++)
            query[i] = i * GT_WARP + lane < (GT_D) ? (GT_Q(b))[s * (GT_LDQ) + i * GT_WARP + lane]
                                                   : 0.0f;
        GT_UNROLL
        for (int i = 0; i < GT_OF_VALUE; i++) acc[i] = 0.0f;
        for (int64_t from = warp * GT_GROUP_KEYS; from < seen; from += GT_WARPS * GT_GROUP_KEYS)
            GT_JOIN(GT_NAME, _group)(query, acc, &top, &sum, b, s, from GT_ARGS);
        GT_UNROLL
        for (int i = 0; i < GT_OF_VALUE; i++) part[warp * GT_PART + i * GT_WARP + lane] = acc[i];
        if (lane < 2) part[(warp + 1) * GT_PART - 2 + lane] = lane ? sum : top;
        __syncthreads();
        float highest = -GT_INFINITY, total = 0.0f;
        for (int w = 0; w < GT_WARPS; w++) {
            const float other = part[(w + 1) * GT_PART - 2];
            highest = other > highest ? other : highest;
        }
        for (int w = 0; w < GT_WARPS; w++)
            total += part[(w + 1) * GT_PART - 1] *
                     GT_JOIN(GT_NAME, _weight)(part[(w + 1) * GT_PART - 2], highest);
        for (int d = threadIdx.x; d < (GT_DV); d += GT_TEAM) {
            float y = 0.0f;
            for (int w = 0; w < GT_WARPS; w++)
                y += part[w * GT_PART + d] *
                     GT_JOIN(GT_NAME, _weight)(part[(w + 1) * GT_PART - 2], highest);
            y *= GT_JOIN(GT_NAME, _inverse)(total);
            GT_EPILOGUE(&y, b, s, (int64_t)d, 1 GT_ARGS);
        }
        __syncthreads();
    }
}
