"""The names that a plug-in imports: the records, and the functions that add them to graphtool.

Each function is called while the plug-in is imported. It raises UsageError GT3103 for a name that
already exists, and records which plug-in added what, so that a file can say which plug-in it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from graphtool import ops as _ops
from graphtool.api.additions import add_importer, add_package_form, add_report, add_verb
from graphtool.api.code_additions import (
    add_kernel,
    add_language,
    add_selector,
    add_site,
    add_target,
)
from graphtool.assume import Assumes
from graphtool.compile.option import option
from graphtool.dtypes import dtype
from graphtool.emit.language import Language, Share, Steps, Workers
from graphtool.errors import UsageError, listed, one_of
from graphtool.explain import CODES, Code
from graphtool.importers.record import Importer, Request
from graphtool.ir.facets import (
    ALONG,
    BROADCAST,
    OVER,
    Align,
    Axes,
    Indexing,
    Lowering,
    Movement,
    Precision,
    Trait,
    Weighing,
)
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.op import OPS, Op, register
from graphtool.ir.plan import Form, Plan
from graphtool.ir.promises import broken
from graphtool.ir.replay import rebuild
from graphtool.ir.trace import Tracer, trace
from graphtool.kernels.choice.alternatives import Alternative, Chosen
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import OwnSite
from graphtool.kernels.record import Record
from graphtool.kernels.use import Lowered, Use
from graphtool.loops.contract import Contract, Instance, Macro, Pointer, sizes
from graphtool.loops.pull import Names, Pull, apply, const
from graphtool.loops.touches import Area, Numbers, Rows
from graphtool.ops import elementwise
from graphtool.ops.common import composite as _composite
from graphtool.ops.costs import per_result
from graphtool.package.record import PackageForm
from graphtool.passes import ORDER, PASSES, Pass
from graphtool.passes.arguments import unusable
from graphtool.passes.freeze import RULES as FREEZE
from graphtool.passes.integer import RULES as INTEGER
from graphtool.passes.recognise import RULES as RECOGNISE
from graphtool.passes.select import Selector
from graphtool.passes.select.goal import Goal
from graphtool.plugins import added, guarded, guarded_fields, load_plugin, taken
from graphtool.report.added import Report
from graphtool.rewrite.engine import Rule, family_rule, rule
from graphtool.rewrite.rules import RULES
from graphtool.scalars.table import BY_NAME, Scalar
from graphtool.symbolic import Symbol, product, symbol_of
from graphtool.symbolic import typical_size as cost_size
from graphtool.target import Target, spelled
from graphtool.verbs import Verb

__all__ = [
    "ALONG", "BROADCAST", "OVER", "Align", "Alternative", "Area", "Assumes", "Axes", "Chosen",
    "Contract", "Form", "Goal", "Graph", "Importer", "Indexing", "Instance", "Language", "Lowered",
    "Lowering", "Macro", "Module", "Movement", "Names", "Node", "Numbers", "Op", "OwnSite",
    "PackageForm", "Pass", "Plan", "Pointer", "Precision", "Pull", "Record", "Report", "Request",
    "Rows", "Rule", "Rules", "Scalar", "Selector", "Share", "Steps", "Symbol", "Target",
    "TensorType", "Tracer", "Trait", "Use", "Value", "Verb", "Weighing", "Workers", "add_code",
    "add_importer", "add_kernel", "add_language", "add_op", "add_package_form", "add_pass",
    "add_report", "add_rule", "add_scalar", "add_selector", "add_site", "add_target", "add_verb",
    "apply", "composite", "const", "cost_size", "dtype", "family_rule", "load_plugin", "onnx_form",
    "onnx_op", "ops", "option", "per_result", "product", "rebuild", "rule", "sizes", "spelled",
    "symbol_of", "torch_op", "trace"]

ops: Any = _ops  # typed Any, because the types of graphtool.ops list only built-in ops
Handler = TypeVar("Handler", bound=Callable[..., Any])
RewritePass = Literal["simplify", "integer", "recognise", "freeze"]
_RULES: dict[RewritePass, list[Rule]] = {
    "simplify": RULES, "integer": INTEGER, "recognise": RECOGNISE, "freeze": FREEZE}


def add_op(op: Op) -> Op:
    """Add an op; every verb then knows it. `Op` documents its fields.

    Raises UsageError GT3107 if its fields contradict each other.
    """
    if op.name in OPS:
        raise taken("op", op.name)
    _fits(f"the op {op.name}", broken(op))
    registered = register(
        guarded_fields(op, f"the op {op.name}", {"infer": _types, "vjp": _gradients}))
    added("op", op.name, lambda: OPS.pop(op.name))
    return registered


def _fits(what: str, faults: Sequence[str]) -> None:
    if faults:
        raise UsageError("GT3107", f"{what} {listed(faults)}")


def _types(result: Any, *operands: Any) -> str:
    """What is wrong with the result of `infer`."""
    types = result if isinstance(result, tuple) else (result,)
    return "" if all(isinstance(t, TensorType) for t in types) else (
        f"gave {result!r}, which is no type or tuple of types")


def _gradients(result: Any, g: Any, y: Any, *operands: Any) -> str:
    """What is wrong with the result of `vjp`."""
    count = len(result) if isinstance(result, (tuple, list)) else None
    return "" if count == len(operands) else (
        f"gave {'no tuple' if count is None else count} of gradients for {len(operands)} operands")


def composite(fn: Callable[..., Any], *, traits: Trait = Trait.NONE) -> Op:
    """Add an op that is defined by a function over other ops: its types, values, gradient and C
    follow from it.

    The function's name is that of the op, its keyword parameters are the attributes. With
    `Trait.KERNEL` the op is not decomposed before `select`, where its selector then replaces it.
    Raises UsageError GT3107 as `add_op` does.
    """
    name = getattr(fn, "__name__", "composite")
    if name in OPS:
        raise taken("op", name)
    op: Op = _composite(traits=traits)(guarded(f"the op {name}", fn))
    added("op", name, lambda: OPS.pop(name))
    _fits(f"the op {name}", broken(op))
    return op


def add_scalar(row: Scalar) -> Op:
    """Add a scalar function, with its C text, and the elementwise op that applies it."""
    if row.name in OPS or row.name in BY_NAME:
        raise taken("op", row.name)
    row = guarded_fields(row, f"the op {row.name}")
    BY_NAME[row.name] = row
    added("scalar", row.name, lambda: BY_NAME.pop(row.name))
    op = elementwise.declare(row)
    added("op", row.name, lambda: OPS.pop(row.name))
    return op


def add_rule(new: Rule, to: RewritePass = "simplify", *, before: str = "") -> Rule:
    """Add a rewrite rule to a pass: as the last one, or `before` the rule of that name.

    At each node the first rule that fires is used. Raises UsageError GT3106 if there is no rule or
    pass of that name.
    """
    rules, new = _RULES[to], guarded_fields(new, f"the rule {new.name}")
    if any(r.name == new.name for r in rules):
        raise taken("rule", new.name)
    rules.insert(_place([r.name for r in rules], before, "rule", len(rules)), new)
    added("rule", new.name, lambda: rules.remove(new))
    return new


def add_pass(new: Pass, *, before: str = "", order: Sequence[tuple[str, str, str]] = ()) -> Pass:
    """Add a pass to the pipeline: as the last one, or `before` the first run of the pass of that
    name.

    `order` are pairs of passes that must run in this order, with the reason. Raises UsageError
    GT3106 if there is no pass of that name, GT3107 if its function cannot be used as one.
    """
    if any(p.name == new.name for p in PASSES):
        raise taken("pass", new.name)
    _fits(f"the pass {new.name}", list(unusable(new.function)))
    new = guarded_fields(new, f"the pass {new.name}", {"function": _graph})
    PASSES.insert(_place([p.name for p in PASSES], before, "pass", len(PASSES)), new)
    added("pass", new.name, lambda: PASSES.remove(new))
    for pair in order:
        ORDER.append(pair)
        added("order", f"{pair[0]} {pair[1]}", partial(ORDER.remove, pair))
    return new


def _graph(result: Any, *graphs: Any) -> str:
    """What is wrong with the result of a pass."""
    return "" if isinstance(result, (Graph, Module)) else f"gave {result!r}, which is no graph"


def _place(names: list[str], before: str, kind: str, last: int) -> int:
    if before and before not in names:
        raise UsageError("GT3106", f"there is no {kind} {before!r} before which it can be added",
                         hint=one_of(before, dict.fromkeys(names)))
    return names.index(before) if before else last


def onnx_op(*names: str, domain: str, since: int = 1) -> Callable[[Handler], Handler]:
    """Declare the handler for operators of an ONNX domain, from version `since` of its opset on.

    Its positional parameters are the operator's inputs (None if left out), its keyword-only
    parameters the attributes, with annotations. It returns a result, or a list of results.
    """
    from graphtool.importers.onnx import HANDLERS, onnx_handler

    def declare(fn: Handler) -> Handler:
        for name in names:
            key = (domain, name)
            if any(h.since == since for h in HANDLERS.get(key, ())):
                raise taken("ONNX operator", f"{domain}.{name}")
            onnx_handler((name,), guarded(f"the handler of {domain}.{name}", fn), since, domain)
            new = next(h for h in HANDLERS[key] if h.since == since)
            added("ONNX operator", f"{domain}.{name} {since}",
                  partial(HANDLERS[key].remove, new))
        return fn
    return declare


def onnx_form(*names: str) -> Callable[[Handler], Handler]:
    """Declare how ops are written in ONNX, for `export`: `form(w, node, *operands)`.

    `w("Snake", x, domain="com.example.audio", alpha=node.attrs["alpha"])` writes an operator and
    gives the name of its result; `w.restate(lambda x: ..., [x])` writes other ops instead. An op
    that has a decomposition needs no form.
    """
    from graphtool.exporters.onnx import FORMS

    def declare(fn: Handler) -> Handler:
        for name in names:
            if name in FORMS:
                raise taken("ONNX form", name)
            FORMS[name] = guarded(f"the ONNX form of {name}", fn)
            added("ONNX form", name, partial(FORMS.pop, name))
        return fn
    return declare


def torch_op(*names: str) -> Callable[[Handler], Handler]:
    """Declare the handler for operators of torch.library, with their names in torch:
    `audio::snake`.

    Its parameters are those of the operator's schema, after the context; `c.out` is the type of the
    result that torch computed.
    """
    from graphtool.importers.torch import HANDLERS, aten

    def declare(fn: Handler) -> Handler:
        for name in names:
            space, _, short = name.partition("::")
            key = f"{space}.{short}"
            if key in HANDLERS:
                raise taken("torch operator", name)
            aten(short, namespace=space)(guarded(f"the handler of {name}", fn))
            added("torch operator", name, partial(HANDLERS.pop, key))
        return fn
    return declare


def add_code(code: str, title: str, text: str) -> None:
    """Add a code for `graphtool explain`: capitals and digits, such as AUDIO01."""
    if code in CODES:
        raise taken("error code", code)
    CODES[code] = Code(title, text)
    added("error code", code, lambda: CODES.pop(code))
