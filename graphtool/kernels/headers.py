"""Where the C headers lie: `c/compute` holds the kernels, `c/host` what runs them and trains.

The emitted files include a header by its bare name, so no two have the same.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

FOLDERS = ("compute", "host")
ADDED: dict[str, str] = {}  # headers of plug-ins, by name: their texts


def names() -> frozenset[str]:
    """The file names of all headers, as `gemm.h`."""
    return _own_names() | ADDED.keys()


@cache
def _own_names() -> frozenset[str]:
    root = resources.files("graphtool.kernels") / "c"
    return frozenset(f.name for part in FOLDERS for f in (root / part).iterdir())


def text(name: str) -> str | None:
    """The content of the header called `name`; None where there is no such header."""
    return ADDED.get(name) or _own_text(name)


@cache
def _own_text(name: str) -> str | None:
    root = resources.files("graphtool.kernels") / "c"
    found = next((root / part / name for part in FOLDERS if (root / part / name).is_file()), None)
    return None if found is None else found.read_text()
