"""NAME_images.c: the code of a model's kernels, compiled for devices, inside the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphtool.emit.lines import Writer
from graphtool.emit.weights import assembled

HEADER = "cuda_image.h"


def image_files(name: str, devices: Sequence[int]) -> Iterator[tuple[str, int, bool]]:
    """(file, architecture, whether it is PTX) of each image of a build: code for each architecture
    and, for later ones, text for the first."""
    for arch in devices:
        yield f"{name}_sm_{arch}.cubin", arch, False
    yield f"{name}_compute_{devices[0]}.ptx", devices[0], True


def images(name: str, devices: Sequence[int]) -> str:
    """The C of NAME_images, a list that ends with NULL; it includes the files of the images."""
    w, rows = Writer(), list(image_files(name, devices))
    w.line("/* The kernels of this model for each architecture. By hand they are compiled so:")
    for file, arch, text in rows:
        how = f"-ptx -arch=compute_{arch}" if text else f"-cubin -arch=sm_{arch}"
        w.line(f"       nvcc {how} {name}_kernels0.cu -o {file}")
    w.line("*/")
    w.line(f'#include "{HEADER}"')
    for i, (file, _, text) in enumerate(rows):
        w.line()
        data = f'.incbin \\"{file}\\"' + ('\\n"\n        ".byte 0' if text else "")
        for line in assembled(f"{name}_image{i}", data).splitlines():
            w.line(line)
        for macro in ("GT_SECTION", "GT_SYMBOL", "GT_HIDDEN"):
            w.line(f"#undef {macro}")
        w.line(f"extern const char {name}_image{i}[];")
    w.line()
    w.line(f"extern const gt_image {name}_images[];")
    with w.block(f"const gt_image {name}_images[] = {{", "};"):
        for i, (_, arch, text) in enumerate(rows):
            w.line(f"{{{arch}, {int(text)}, {name}_image{i}}},")
        w.line("{0, 0, 0}")
    return w.text()
