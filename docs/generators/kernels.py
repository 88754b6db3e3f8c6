"""The page of kernels: the ops that each serves, its macros, pointers and hook."""

from __future__ import annotations

import graphtool.kernels  # noqa: F401  (fills the table)
from docs.generators.markdown import code, prose, table, whole
from graphtool.kernels.choice.alternatives import no_assumption
from graphtool.kernels.record import KERNELS, Record
from graphtool.loops.contract import REQUIRED, Macro, Pointer


def page() -> str:
    """A section for each kernel in the table."""
    return whole("Kernels", (
        "A kernel is a C header with a Python module beside it. The C printer includes the header "
        "once for each call, with these macros defined; in C their names begin with `GT_`. The "
        "hook is the function that takes finished results; it is given these indices. "
        "[The kernels, and what was measured](../explanation/kernels.md) explains their design."),
        *(_kernel(KERNELS[name]) for name in sorted(KERNELS)))


def _kernel(kernel: Record) -> str:
    contract = kernel.contract
    serves = ", ".join(map(code, kernel.lower))
    return "\n".join(filter(None, (
        f"## {kernel.name}\n", f"{prose(contract.doc)}\n",
        f"Computes {serves}.\n" if serves else "",
        *(f"Assumes finite numbers: {prose(why)}\n" for why in _assumed(kernel)),
        table(("macro", "kind", "default", "meaning"), map(_macro, contract.macros)),
        table(("pointer", "", "meaning"), map(_pointer, contract.pointers)),
        f"Hook: ({', '.join(contract.hook)}).\n" if contract.hook else "")))


def _assumed(kernel: Record) -> list[str]:
    """When it assumes them, and why."""
    own = ["always"] if kernel.assumes == "finite" else []
    told = dict.fromkeys(a.assumes for a in kernel.serves if a.assumes is not no_assumption)
    return [*own, *(" ".join((fn.__doc__ or "").split()) for fn in told)]


def _macro(m: Macro) -> tuple[str, ...]:
    default = "required" if m.default is REQUIRED else (
        "the header decides" if m.default is None else code(str(m.default)))
    return code(_called(m)), m.kind, default, prose(m.doc)


def _pointer(p: Pointer) -> tuple[str, ...]:
    return code(_called(p)), "written" if p.writes else "read", prose(p.doc)


def _called(x: Macro | Pointer) -> str:
    return f"{x.name}({', '.join(x.arguments)})" if x.arguments else x.name
