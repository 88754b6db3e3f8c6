/* Half of an exchange between all processes, a template: its start, or the wait for its end.

   GT_KIND       the start of 0 sum, 1 max, 2 min (from X into Y, which may be X), 3 gather,
                 4 scatter of the sum, 5 broadcast of the first process's; 6 waits, and Y gets what
                 is in X; 7 exchanges nothing: Y gets the rank of this process
   GT_NOW        a literal: 1 if the start also waits, which is faster than waiting later
   GT_PROCESSES  how many there must be for gather and scatter
   GT_COUNT      elements, of one process, an integer expression
   GT_TYPE       the element type, and GT_MPI_TYPE what MPI calls it
   GT_X GT_Y     the first elements
   GT_TICKET     int64_t[1] that the start leaves for the wait */
#include "prelude.h"
#include "world.h"

#include <string.h>

#include "template_begin.h"

GT_NOINLINE void GT_NAME(int t, int threads GT_PARAMS)
{
    if (t) return;
    GT_TYPE *y = GT_Y;
#if GT_KIND == 7
    world_ready();
    *y = world_rank();
#else
    const GT_TYPE *x = GT_X;
#ifdef GT_MPI
    MPI_Request request;
    _Static_assert(sizeof request <= sizeof(int64_t), "a ticket holds a request");
#if GT_KIND < 6
    const int n = (int)(GT_COUNT);
    world_ready();
    if (GT_PROCESSES > 1 && world_size() != GT_PROCESSES) MPI_Abort(MPI_COMM_WORLD, 3);
#if GT_KIND == 3
    MPI_Iallgather(x, n, GT_MPI_TYPE, y, n, GT_MPI_TYPE, MPI_COMM_WORLD, &request);
#elif GT_KIND == 5
    if (x != y) memcpy(y, x, sizeof(GT_TYPE) * (size_t)n);
    MPI_Ibcast(y, n, GT_MPI_TYPE, 0, MPI_COMM_WORLD, &request);
#elif GT_KIND == 4
    MPI_Ireduce_scatter_block(x, y, n, GT_MPI_TYPE, MPI_SUM, MPI_COMM_WORLD, &request);
#else
    const MPI_Op kinds[3] = {MPI_SUM, MPI_MAX, MPI_MIN};
#if GT_NOW
    MPI_Allreduce(x == y ? MPI_IN_PLACE : x, y, n, GT_MPI_TYPE, kinds[GT_KIND], MPI_COMM_WORLD);
    request = MPI_REQUEST_NULL;
#else
    MPI_Iallreduce(x == y ? MPI_IN_PLACE : x, y, n, GT_MPI_TYPE, kinds[GT_KIND], MPI_COMM_WORLD,
                   &request);
#endif
#endif
    memcpy(GT_TICKET, &request, sizeof request);
    return;
#else
    memcpy(&request, GT_TICKET, sizeof request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
#else
    _Static_assert(GT_PROCESSES == 1, "the graph is made for several processes: build with --mpi");
    if (GT_KIND < 6) *(int64_t *)(GT_TICKET) = 0;
#endif
    if (x != y) memcpy(y, x, sizeof(GT_TYPE) * (size_t)(GT_COUNT));
#endif
}

#include "template_end.h"
