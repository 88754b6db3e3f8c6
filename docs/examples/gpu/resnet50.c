#include "resnet50.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    static float image[1 * 3 * 224 * 224], logits[1000];
    FILE *file = fopen(argc > 2 ? argv[2] : "image.bin", "rb");
    if (!file || fread(image, sizeof image, 1, file) != 1) return fputs("no image\n", stderr), 1;
    resnet50_weights w;
    int status = resnet50_load(&w, argc > 1 ? argv[1] : "resnet50.safetensors"), best = 0;
    const void *in[] = {image};
    void *out[] = {logits};
    if (!status) status = resnet50_run(w.data, NULL, NULL, in, out, 1);
    for (int i = 1; i < 1000; i++) best = logits[i] > logits[best] ? i : best;
    return status ? fputs(resnet50_status_text(status), stderr), 1 : printf("class %d\n", best) < 0;
}
