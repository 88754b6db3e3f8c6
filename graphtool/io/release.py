"""The name under which graphtool is distributed, and its version: both stand in pyproject.toml.

The command and the package are called graphtool, the distribution is not: that name belongs to
another project on PyPI.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[2]


class Release(NamedTuple):
    """What an installer knows; `checkout` is the folder with pyproject.toml, if this runs from it.
    """

    name: str
    version: str
    checkout: Path | None = None


@cache
def release() -> Release:
    """The release that runs: that of the checkout, else that of the installed distribution."""
    import tomllib  # slow to import, and most processes never ask
    from importlib import metadata
    with suppress(OSError, ValueError, LookupError, TypeError):
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["scripts"]["graphtool"]:  # else it is that of a project that has a copy of ours
            return Release(project["name"], project["version"], _ROOT)
    # the metadata lie beside the package
    for distribution in metadata.distributions(path=[str(_ROOT)]):
        if "graphtool" in (distribution.read_text("top_level.txt") or "").split():
            return Release(distribution.metadata["Name"], distribution.version)
    return Release("graphtool", "unknown")


def install(extra: str = "", least: str = "") -> str:
    """The command that installs an extra, or a newer release, where this one came from."""
    known = release()
    if known.checkout is None:
        wanted = f"{known.name}[{extra}]" if extra else f"{known.name}>={least}" if least else (
            known.name)
        return f"pip install {'' if extra else '--upgrade '}'{wanted}'"
    if extra:
        return f"pip install '{known.checkout}[{extra}]'"
    return f"git -C '{known.checkout}' pull"
