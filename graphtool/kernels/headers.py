"""The C headers: `c/compute` holds the kernels, `c/host` the code that runs and trains models.

The emitted files include a header by its bare name, so no two headers have the same name.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

FOLDERS = ("compute", "host")
ADDED: dict[str, str] = {}  # the texts of plug-ins' headers, by name


def names() -> frozenset[str]:
    """The file names of all headers, such as `gemm.h`."""
    return _own_names() | ADDED.keys()


@cache
def _own_names() -> frozenset[str]:
    root = resources.files("graphtool.kernels") / "c"
    return frozenset(f.name for part in FOLDERS for f in (root / part).iterdir())


def text(name: str) -> str | None:
    """The text of the header called `name`; None if there is no such header."""
    return ADDED.get(name) or _own_text(name)


@cache
def _own_text(name: str) -> str | None:
    root = resources.files("graphtool.kernels") / "c"
    found = next((root / part / name for part in FOLDERS if (root / part / name).is_file()), None)
    return None if found is None else found.read_text()
