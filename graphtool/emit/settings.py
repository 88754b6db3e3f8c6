"""What the C of a program relies on besides its text, as the first lines of that text."""

from __future__ import annotations

from graphtool.loops.program import Program


def settings(program: Program) -> list[str]:
    """The lines of C that hold what the program's code relies on, whatever flags compile it."""
    lanes = program.meta.get("lanes", "1")
    lines = [f"/* weights are packed, and kernels written, for vectors of {lanes} floats */"
             if int(lanes) > 1 else "/* kernels without vectors */", f"#define GT_LANES {lanes}"]
    if program.meta.get("precision") == "strict":
        lines += ["/* strict: sums in the order of their terms, no multiplication and addition are "
                  "fused */", "#define GT_IN_ORDER", "#ifdef __clang__",
                  "#pragma STDC FP_CONTRACT OFF", "#else",
                  '#pragma GCC optimize("fp-contract=off")', "#endif"]
    if program.meta.get("assume") == "normal":
        lines += ["/* subnormal numbers count as 0 while a run computes */",
                  "#define GT_NORMAL"]
    return lines
