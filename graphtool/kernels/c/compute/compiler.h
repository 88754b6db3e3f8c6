/* What this C needs from its compiler. If that is missing, compilation stops with an error that
   says why. The compilers of CUDA and OpenCL read the scalar functions too; cuda.h and opencl.h say
   what they need. */
#ifndef GT_COMPILER_H
#define GT_COMPILER_H

#if !defined __CUDACC__ && !defined __OPENCL_VERSION__
#ifdef __cplusplus
#error "this is C: use cc, gcc or clang; C++ too are NAME.h, NAME_load.c and NAME_example.c only"
#endif
#ifndef __GNUC__
#error "this C uses vector types and attributes of GNU C: compile it with gcc or clang"
#endif
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the weights are stored with the lowest byte first, and this machine reads the highest first"
#endif
#if defined __FAST_MATH__ || __FINITE_MATH_ONLY__ || defined __ASSOCIATIVE_MATH__ \
    || defined __NO_SIGNED_ZEROS__
#error "-ffast-math and -Ofast give wrong results here: NaN, infinities and the order of sums count"
#endif
#if __FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2
#error "float is computed in a wider type here: compile with -msse2 -mfpmath=sse"
#endif

#ifndef __clang__
/* Vectors wider than the machine's are never passed between files. */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/* In a loop that is not to become vectors. */
#define GT_SCALAR __asm__ volatile("")

/* For what is called more often than it is worth to repeat. */
#define GT_NOINLINE static __attribute__((noinline, unused))
#endif

#endif
