"""C99: loops and functions of ISO C for one thread, without extensions, pragmas of OpenMP, macros
or calls through pointers.

No kernel has a text of its own here, so ops become loops by their definitions. The scalar functions
are C's; those that a program calls stand in NAME_functions.h.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from graphtool.dtypes import float32, float64
from graphtool.emit.functions import functions
from graphtool.emit.language import C, Steps, Workers, register
from graphtool.loops.forms import KernelFacts
from graphtool.loops.ir import Apply, Expr
from graphtool.loops.walk import each

_SETTINGS = """\
#include <float.h>
/* strict: sums in the order of their terms, no multiplication and addition are fused */
#if !defined FLT_EVAL_METHOD || (FLT_EVAL_METHOD != 0)
#error "float is computed in a wider type here"
#endif
#if defined __clang__
#pragma STDC FP_CONTRACT OFF
#elif defined __GNUC__ && !defined __STRICT_ANSI__ && defined __FP_FAST_FMAF
#error "gcc fuses multiplications and additions unless it compiles ISO C: add -std=c99"
#endif"""


def without_branch(e: Expr, around: KernelFacts) -> Expr | None:
    """select(c, a, b) → choose(c, a, b) where numbers decide: a run then takes the same
    instructions for all inputs."""
    match e:
        case Apply("select", (c, _, _)) if e.dtype in (float32, float64) and any(
                x.dtype.is_float for x in each([c])):
            return Apply("choose", e.args, e.dtype)
    return None


C99 = register(replace(
    C, name="c99", title="ISO C99 for one thread", plain=True, library={}, includes=(),
    settings=lambda _: _SETTINGS.split("\n"), function="static void {name}({params})",
    forms=(without_branch,), rows={}, sums=0, called=None, workers=Workers(),
    steps=Steps(header="", body="static void run_steps(const run_state *state)",
                start="run_steps(&s);", step="{call};", unused="(void)s;")))


def functions_header(name: str, texts: Iterable[str]) -> str:
    """NAME_functions.h: the scalar functions that these texts of the program NAME call."""
    guard = f"{name.upper()}_FUNCTIONS_H"
    system = "".join(f"#include <{h}.h>\n" for h in ("math", "stddef", "stdint", "string"))
    return "\n".join([f"#ifndef {guard}", f"#define {guard}", system,
                      *(f"{d.text}\n" for d in functions("\n".join(texts))), "#endif", ""])
