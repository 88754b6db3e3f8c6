"""The kernels of a program in C files: few in each, and fewer of large templates."""

from __future__ import annotations

import pytest

from graphtool.emit.c import KERNELS_PER_FILE, divided
from graphtool.loops.ir import Template
from graphtool.loops.program import Kernel


def kernel(name: str, template: str = "") -> Kernel:
    body = (Template(template, (), (), (), ()),) if template else ()
    return Kernel(name, (), body)


@pytest.mark.parametrize(("template", "sizes"), [
    ("", [KERNELS_PER_FILE, 3]), ("fft", [4, 4, 4, 3]), ("transpose", [KERNELS_PER_FILE, 3])])
def test_sizes_of_files(template: str, sizes: list[int]) -> None:
    kernels = [kernel(f"k{i}", template) for i in range(KERNELS_PER_FILE + 3)]
    files = divided(kernels)
    assert [len(f) for f in files] == sizes
    assert [k for f in files for k in f] == kernels
