/* The processes of a run: one, or those that mpirun started. With GT_MPI this is MPI; without, the
   only process is the first of one, and nothing here does anything. */
#ifndef GT_WORLD_H
#define GT_WORLD_H

#include <stddef.h>

#ifdef GT_MPI
#include <mpi.h>

/* Joins the others, once; all functions here want it done. */
static inline void world_ready(void)
{
    int done = 0, level;
    MPI_Initialized(&done);
    if (!done) MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
}

static inline int world_rank(void)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static inline int world_size(void)
{
    int size = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

/* Ends the process; one that failed takes all others with it. */
static inline int world_close(int code)
{
    if (code) MPI_Abort(MPI_COMM_WORLD, code);
    MPI_Finalize();
    return code;
}

/* The sums over all processes, in each of them. */
static inline void world_sum(double *values, int count)
{
    MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* What the first process has in this memory, in each of them. */
static inline void world_share(void *data, size_t bytes)
{
    const size_t most = (size_t)1 << 30;
    for (char *at = data; bytes; at += most) {
        const size_t n = bytes < most ? bytes : most;
        MPI_Bcast(at, (int)n, MPI_BYTE, 0, MPI_COMM_WORLD);
        bytes -= n;
    }
}

/* Returns when every process is here. */
static inline void world_meet(void) { MPI_Barrier(MPI_COMM_WORLD); }
#else
static inline int world_rank(void) { return 0; }
static inline int world_size(void) { return 1; }
static inline void world_ready(void) {}
static inline int world_close(int code) { return code; }
static inline void world_sum(double *values, int count) { (void)values, (void)count; }
static inline void world_share(void *data, size_t bytes) { (void)data, (void)bytes; }
static inline void world_meet(void) {}
#endif

#endif
