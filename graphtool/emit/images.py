"""NAME_images.c: the code of a model's kernels for devices, inside the library."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.emit.language import Image
from graphtool.emit.lines import Writer
from graphtool.emit.weights import assembled

HEADER = "device_image.h"


def images(name: str, rows: Sequence[Image]) -> str:
    """The C of NAME_images, a list that ends with NULL; it includes the files of the images."""
    w = Writer()
    if commands := [row.command for row in rows if row.command]:
        w.line("/* The kernels of this model for each architecture. By hand they are compiled so:")
        for command in commands:
            w.line(f"       {command}")
        w.line("*/")
    w.line(f'#include "{HEADER}"')
    for i, row in enumerate(rows):
        w.line()
        data = f'.incbin \\"{row.file}\\"' + ('\\n"\n        ".byte 0' if row.text else "")
        for line in assembled(f"{name}_image{i}", data).splitlines():
            w.line(line)
        for macro in ("GT_SECTION", "GT_SYMBOL", "GT_HIDDEN"):
            w.line(f"#undef {macro}")
        w.line(f"extern const char {name}_image{i}[];")
    w.line()
    w.line(f"extern const gt_image {name}_images[];")
    with w.block(f"const gt_image {name}_images[] = {{", "};"):
        for i, row in enumerate(rows):
            w.line(f"{{{row.arch}, {int(row.text)}, {name}_image{i}}},")
        w.line("{0, 0, 0}")
    return w.text()
