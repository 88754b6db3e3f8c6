/* The code of a model's kernels for one architecture of devices. */
#ifndef GT_CUDA_IMAGE_H
#define GT_CUDA_IMAGE_H

typedef struct {
    int arch;         /* 10 · major + minor of the compute capability it is made for */
    int text;         /* whether it is PTX, which the driver compiles for later ones too */
    const void *data; /* NULL ends a list */
} gt_image;

#endif
