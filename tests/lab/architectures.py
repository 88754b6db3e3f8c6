"""Language models of transformers, small and untrained: compiled logits beside transformers' own,
and decoding with a cache that is kept in place beside reading the whole text."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from typing import Any

from benchmarks import tables, work

HEAD = ("architecture", "parameters", "nodes", "logits", "decode", "why not")
CLOSE = 1e-5  # of the largest logit: float rounding over some layers


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", type=lambda s: s.split(","), help="architectures, by name")


def main(options: argparse.Namespace) -> int:
    """Run all; write the table. Returns how many are not equal within rounding."""
    from benchmarks.models.architectures import ARCHITECTURES, TOKENS, row
    rows = []
    for name in options.only or ARCHITECTURES:
        rows.append(row(name))
        print(rows[-1], flush=True)
    table = tables.markdown(HEAD, [(
        r["name"], str(r.get("parameters", "")), str(r.get("nodes", "")),
        tables.error(r.get("logits")), tables.error(r.get("decode")), r["why"]) for r in rows])
    right = [r for r in rows if good(r)]
    text = (f"# Language models of transformers {version('transformers')}\n\n"
            f"`{options.command_line}`; small configurations with random weights, torch.export, "
            f"compiled.\n\n`logits`: the largest difference to transformers' logits, of the "
            f"largest one, when {TOKENS} tokens are read at once; `decode`: one after the other, "
            "with caches (of a mamba: states) that are kept in place. "
            f"{len(right)} of {len(rows)} are within float rounding ({CLOSE}).\n\n{table}")
    if not options.only:
        work.results("architectures.md").write_text(text)
    return len(rows) - len(right)


def good(r: dict[str, Any]) -> bool:
    """Whether both are within rounding."""
    return not r["why"] and r["logits"] < CLOSE and r["decode"] < CLOSE
