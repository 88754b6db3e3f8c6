/* Begins the code of a template: a parameter that a use leaves unused causes no warning, and a use
   may have no parameters, and one piece of work a thread. template_end.h ends it, which
   kernels/headers.py writes. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifndef GT_PARAMS
#define GT_PARAMS
#define GT_ARGS
#endif
#ifndef GT_PIECES
#define GT_PIECES 1
#endif
