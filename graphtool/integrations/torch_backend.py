"""`graphtool.torch_backend.variants(f)`: what torch.compile keeps of a function, and why.

Dynamo compiles a function again for inputs that no variant's guards accept. Everything here is read
from Dynamo's own cache; which builds belong to a variant, torch_compile.py remembers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import torch
from torch._dynamo.eval_frame import _debug_get_cache_entry_list
from torch._dynamo.resume_execution import ContinueExecutionCache
from torch._dynamo.utils import get_compilation_metrics

from graphtool.errors import UsageError
from graphtool.importers.torch.driver.live import DTYPES
from graphtool.integrations.torch_compile import Made, made_for
from graphtool.report.table import Column, aligned, table

__all__ = ["Made", "Variant", "Variants", "variants"]

_TENSOR = re.compile(r"check_tensor\(L\['(\w+)'\]((?:\[\w+\])*), .*?torch\.(\w+), device=.*?"
                     r"size=\[([^\]]*)\]")
_SIZES = re.compile(r"LAMBDA_GUARD: ([^#\n]*\.size\(\)[^#\n]*)")
_DTYPES = {str(kind).removeprefix("torch."): str(row) for kind, row in DTYPES.items()}


class Variant(msgspec.Struct):
    """One compiled version of a function.

    `kind`: static (all sizes of the inputs are fixed), dynamic (all are open), hybrid (some are).
    `inputs`: the type of each tensor that the call passes, `?` for an open size. `guards`: what
    must hold of the sizes beyond that. `reason`: the guard that failed when the variant was made,
    of each older variant; "" for the first one, or after which line it goes on where torch broke
    the graph there. `made`: its graphs: forward, backward, inference.
    """

    name: str  # as Dynamo counts: frame/variant
    kind: str
    inputs: dict[str, str]
    guards: list[str]
    reason: str
    made: list[Made]


def _inputs(v: Variant) -> str:
    types = ", ".join(f"{n}: {t}" for n, t in v.inputs.items())
    return " if ".join([types, *([" and ".join(v.guards)] if v.guards else [])])


VARIANTS: tuple[Column[Variant], ...] = (
    Column("variant", "name"), Column("kind"), Column("inputs", _inputs),
    Column("graphs", lambda v: ", ".join(map(_told, v.made)) or "none"),
    Column("why it was made", lambda v: v.reason or "first call"))


class Variants(list[Variant]):
    """Variants, oldest first; as text they are a table."""

    def __str__(self) -> str:
        return "\n".join(aligned(table(VARIANTS, self), left=True))

    __repr__ = __str__


def variants(compiled: Any) -> Variants:
    """The variants that torch.compile(backend="graphtool") holds of a function or a module now.

    Modules of one class share the code of their `forward`, and so their variants. Raises
    UsageError GT1122 for what torch.compile did not return.
    """
    reasons = {m.compile_id: m.recompile_reason for m in get_compilation_metrics()}
    result = []
    for code in _codes(compiled):
        for at, part in enumerate(_parts(code)):
            first = f"goes on after the graph break at line {part.co_firstlineno}" if at else ""
            result += [_variant(entry, reasons.get(str(entry.compile_id)) or first)
                       for entry in _debug_get_cache_entry_list(part)]
    return Variants(sorted(result, key=lambda v: [int(n) for n in re.findall(r"\d+", v.name)]))


def _codes(compiled: Any) -> list[Any]:
    """The code objects that Dynamo compiles; modules of torch itself run inside of a function."""
    if isinstance(compiled, torch.nn.Module) and hasattr(compiled, "_orig_mod"):
        outer = getattr(compiled.forward, "_torchdynamo_orig_callable", None)
        functions = [type(compiled._orig_mod).forward, outer]
        codes = [f.__code__ for f in functions if hasattr(f, "__code__")]
        return list({id(code): code for code in codes}.values())
    original = getattr(compiled, "_torchdynamo_orig_callable", None)
    if original is None or not hasattr(original, "__code__"):
        raise UsageError("GT1122", f"{compiled!r} was not compiled",
                         hint='give what torch.compile(f, backend="graphtool") returned')
    return [original.__code__]


def _parts(code: Any) -> Iterator[Any]:
    """The code object, and the code objects that continue after its graph breaks."""
    yield code
    if code in ContinueExecutionCache.cache:
        for rest in ContinueExecutionCache.cache[code].values():
            yield from _parts(rest)


def _variant(entry: Any, reason: str) -> Variant:
    inputs, fixed, open_ = {}, 0, 0
    for name, rest, kind, sizes in _TENSOR.findall("\n".join(entry.guard_manager.code_parts)):
        dims = [d.strip() for d in sizes.split(",") if d.strip()]
        inputs[name + rest] = (f"{_DTYPES.get(kind, kind)}"
                               f"[{','.join('?' if d == 'None' else d for d in dims)}]")
        open_ += dims.count("None")
        fixed += len(dims) - dims.count("None")
    guards = [_plain(g.strip()) for g in _SIZES.findall(str(entry.guard_manager))]
    kind = "static" if not open_ else "hybrid" if fixed else "dynamic"
    return Variant(str(entry.compile_id), kind, inputs, list(dict.fromkeys(guards)),
                   "; ".join(_reasons(reason)), made_for(entry.compile_id))


def _plain(guard: str) -> str:
    """`L['x'].size()[0]` as `x.shape[0]`."""
    return re.sub(r"L\['(\w+)'\]", r"\1", guard).replace(".size()", ".shape")


def _reasons(text: str) -> Iterable[str]:
    """The failed guards, without torch's remark on the source line, and its stack traces."""
    traced = False
    for line in text.splitlines():
        traced = not line.lstrip().startswith("- ") and (
            traced or line.lstrip().startswith("User stack trace"))
        if not traced and (said := line.partition("  #")[0].strip().lstrip("- ")):
            yield _plain(said).replace(".size()", ".shape")


def _told(graph: Made) -> str:
    if graph.error:
        return f"{graph.part}: eager, {graph.error.splitlines()[0]}"
    room = "" if graph.arena is None else f", {graph.weights + graph.arena} bytes"
    return f"{graph.part}: {_count(graph.nodes, 'node')}, {_count(graph.kernels, 'kernel')}{room}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
