/* Begins the code of a template. To use one, define the macros that its own comment lists, include
   it, and repeat; template_end.h, which kernels/headers.py writes, undefines them. Every template
   has these besides:

   GT_NAME      the function: static void GT_NAME(int t, int threads GT_PARAMS), thread t's share
   GT_PIECES    pieces of a thread's share (default 1), for templates that ask for it; t and threads
                count pieces
   GT_PARAMS    more parameters, with a leading comma (default none); GT_ARGS hands them on. Their
                names hold a digit or an underscore (buf1, d_B): the template's own do not
   GT_PHASE(p)  for templates of several phases: the head of a loop, in which threads take the
                shares p of a phase as they come
   GT_WAIT      a statement: all shares of the phase are done
   GT_COMMON    for templates of several phases: the first thread's GT_WORK, for all threads

   A parameter that a use leaves unused causes no warning. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif
