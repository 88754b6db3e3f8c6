"""The name under which graphtool is distributed, and its version: both stand in pyproject.toml.

The command and the package are called graphtool, the distribution is not: that name belongs to
another project on PyPI.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution

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
    with suppress(OSError, ValueError, LookupError, TypeError):
        project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        if project["scripts"]["graphtool"]:  # else it is that of a project that has a copy of ours
            return Release(project["name"], project["version"], _ROOT)
    distribution = installed(_ROOT)
    if distribution is None:
        return Release("graphtool", "unknown")
    return Release(distribution.metadata["Name"], distribution.version)


def installed(folder: Path) -> Distribution | None:
    """The distribution of graphtool in a folder of packages: its metadata lie beside the package.
    """
    from importlib import metadata
    return next((d for d in metadata.distributions(path=[str(folder)])
                 if "graphtool" in (d.read_text("top_level.txt") or "").split()), None)


def install(extra: str = "", least: str = "") -> str:
    """The command that installs an extra, or a newer release, where this one came from.

    An installation from a folder, a file or a repository says nothing of an index: it may not have
    graphtool. Then an extra is the packages that it consists of.
    """
    known = release()
    if known.checkout is not None:
        return f"pip install '{known.checkout}[{extra}]'" if extra else (
            f"git -C '{known.checkout}' pull")
    distribution = installed(_ROOT)
    url = "" if distribution is None else origin(distribution)
    if distribution is not None and url:
        parts = needed(distribution, extra) if extra else [f"{known.name} @ {url}"]
    else:
        parts = [f"{known.name}[{extra}]" if extra else f"{known.name}>={least}" if least else
                 known.name]
    return f"pip install {'' if extra else '--upgrade '}" + " ".join(f"'{p}'" for p in parts)


def origin(distribution: Distribution) -> str:
    """The address that it was installed from (PEP 610), with a repository's kind before it; empty
    if an index gave it."""
    import json  # only an installation needs it
    with suppress(ValueError):
        row = json.loads(distribution.read_text("direct_url.json") or "{}")
        kind = row.get("vcs_info", {}).get("vcs", "")
        return f"{kind}+{row['url']}" if kind else str(row.get("url", ""))
    return ""


def needed(distribution: Distribution, extra: str) -> list[str]:
    """The requirements of an extra, as pip takes them."""
    rows = (row.partition(";") for row in distribution.requires or ())
    return [what.strip() for what, _, condition in rows
            if re.search(rf"extra == ['\"]{re.escape(extra)}['\"]", condition)]
