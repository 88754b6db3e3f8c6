"""The table of docs/testing.md that says how many tests there are, with the date of the count.

`python -m docs.generators.counts` collects the tests and writes it. It is no page of the reference:
a count that had to be right at each commit would change with each.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from docs.generators.markdown import table

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "testing.md"
KINDS = (  # what is tested, and the folders and files of tests/ that do
    ("ops and their derivatives", ("ops", "transforms", "test_interp.py", "test_dtypes.py",
                                   "test_opinfo.py", "test_opinfo_gradients.py", "test_edges.py",
                                   "test_mixed.py", "test_options.py")),
    ("graphs, sizes and rules", ("ir", "front", "symbolic", "rewrite", "analysis")),
    ("passes", ("passes",)),
    ("importers and exporters", ("importers", "exporters", "integrations")),
    ("kernels, loops, C, builds", ("kernels", "loops", "lower", "emit", "compile", "native",
                                   "package", "tune", "language", "test_target.py",
                                   "test_hosts.py")),
    ("training", ("train",)),
    ("files, reports, comparisons", ("io", "report", "verify")),
    ("command line, errors, API, plug-ins", (
        "api", "cli", "explain", "plugins", "test_api.py", "test_by_hand.py")),
    ("layers, style, benchmarks", ("test_layering.py", "test_style.py", "test_docstrings.py",
                                   "test_intrinsics.py", "test_kinds.py", "test_benchmarks.py",
                                   "test_architectures.py", "fuzz")),
    ("documentation", ("docs", "test_readme.py", "test_release.py")),
)
_FILE = re.compile(r"tests/(.+\.py): (\d+)")
_SECTION = re.compile(r"Counted on .*?\n\n\|.*?\n\n", re.DOTALL)


def counted(lines: Iterable[str]) -> Counter[str]:
    """How many tests each folder or file of tests/ has, of lines such as `tests/ops/test_a.py: 12`.

    Raises KeyError for a folder that no kind names, ValueError where no line is of this form.
    """
    found: Counter[str] = Counter()
    for path, count in (m.groups() for line in lines if (m := _FILE.fullmatch(line))):
        found[path.split("/")[0]] += int(count)
    if not found:
        raise ValueError("pytest has listed no tests")
    known = {place for _, places in KINDS for place in places}
    if lost := sorted(found.keys() - known):
        raise KeyError(f"no kind of docs/generators/counts.py names {', '.join(lost)}")
    return found


def section(found: Counter[str], slow: int, date: str) -> str:
    """The sentence and the table; `found` is without the slow tests."""
    rows = [(f"{kind} ({' '.join(f'`{p}`' for p in places)})",
             f"{sum(found[p] for p in places):,}") for kind, places in KINDS]
    return (f"Counted on {date} by `python -m docs.generators.counts`, without the {slow:,} slow "
            "ones:\n\n"
            + table(("kind", "tests"), [*rows, ("all", f"{found.total():,}")]) + "\n")


def collected(*options: str) -> list[str]:
    """The files of tests, with a count each. Raises CalledProcessError where one cannot be read."""
    done = subprocess.run([sys.executable, "-m", "pytest", "--collect-only", "-qq", *options],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    """Count, and write the table into the page."""
    usual, slow = counted(collected()), counted(collected("-m", "slow"))
    date = datetime.now(UTC).date().isoformat()
    text = section(usual, slow.total(), date)
    PAGE.write_text(_SECTION.sub(lambda _: text, PAGE.read_text(), count=1))
    print(text, end="")


if __name__ == "__main__":
    main()
