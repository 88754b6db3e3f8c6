"""Where the C headers lie: `c/compute` holds the kernels, `c/host` what runs them and trains.

The emitted files include a header by its bare name, so no two have the same.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

FOLDERS = ("compute", "host")


@cache
def names() -> frozenset[str]:
    """The file names of all headers, as `gemm.h`."""
    root = resources.files("graphtool.kernels") / "c"
    return frozenset(f.name for part in FOLDERS for f in (root / part).iterdir())


@cache
def text(name: str) -> str | None:
    """The content of the header called `name`; None where there is no such header."""
    root = resources.files("graphtool.kernels") / "c"
    found = next((root / part / name for part in FOLDERS if (root / part / name).is_file()), None)
    return None if found is None else found.read_text()
