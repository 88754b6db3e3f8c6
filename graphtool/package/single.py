"""`single`: the C of a build as two files, with C++ and Fortran beside them."""

from __future__ import annotations

from graphtool.package.record import Files, PackageForm, Subject, register
from graphtool.package.sources import sources
from graphtool.package.wrappers import wrappers

_README = """\
# {name} {version}

Put `{name}.c` and `{name}.h` into your project.

    cc -O3 {flags}-c {name}.c

`{name}.hpp` is the model in C++17, `{name}.f90` its interface in Fortran.
`{name}.c` needs the C library with its mathematics (`-lm`), and with `-fopenmp` it has threads.
{weights}
"""


def make(s: Subject) -> Files:
    """The C, its wrappers, the example, and the weights unless they are in NAME.c."""
    flags = "".join(f"{f} " for f in s.machine)
    weights = "" if s.weights is None else (
        f"The weights are in `{s.weights.name}`, whose path `{s.name}_load` takes.")
    readme = _README.format(name=s.name, version=s.version, flags=flags, weights=weights)
    texts = {**sources(s), **wrappers(s)}
    return {**{f: t.encode() for f, t in texts.items()}, "README.md": readme.encode(),
            **({} if s.weights is None else {s.weights.name: s.weights.read_bytes()})}


register(PackageForm(
    "single", "a directory with one file of C, its header and the weights", make, calls=False))
