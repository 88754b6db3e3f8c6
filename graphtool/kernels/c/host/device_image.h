/* The code of a model's kernels for one kind of device. */
#ifndef GT_DEVICE_IMAGE_H
#define GT_DEVICE_IMAGE_H

typedef struct {
    int arch;         /* the least architecture of a device that runs it; 0: any */
    int text;         /* whether it is a text, which the driver compiles for later ones too */
    const void *data; /* NULL ends a list */
} gt_image;

#endif
