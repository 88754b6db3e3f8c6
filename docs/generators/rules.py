"""The page of rewrite rules by pass: equation, numerics class and assumption of each."""

from __future__ import annotations

import inspect
import sys

from docs.generators.markdown import code, table, whole
from graphtool.assume import ASSUMPTIONS, MEANING, numerics_of
from graphtool.assume.tiers import MEANING as TIERS
from graphtool.passes import functions
from graphtool.rewrite.engine import Rule
from graphtool.rewrite.patterns import Applied, Var

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


def page() -> str:
    """A table of rules for each pass that has a tuple of them."""
    parts = []
    for name, function in functions().items():
        found = getattr(sys.modules[function.__module__], "RULES", ())
        if found:
            rows = [(code(r.name), code(_left(r)), code(_equation(r)), numerics_of(r.needs),
                     _assumed(r), r.tier)
                    for r in found]
            head = ("rule", "matches", "equation", "numerics", "assumes", "tier")
            parts += [f"## {name}\n", table(head, rows)]
    return whole("Rewrite rules", (
        "A rule is an equation, applied from left to right, or a function over a family of ops. "
        "Letters stand for any operand or attribute. A rule may decline, for example when a value "
        "has another reader. Its class says what it may do to the numbers; a pass applies rules up "
        "to the class of its argument `numerics`. One that assumes finite numbers may move a NaN "
        "or an infinity; `--assume nothing` leaves it out ([Numerics](../numerics.md)). The tier "
        "says how sure it is that the rule is right ([What is proved]"
        "(../explanation/what-is-proved.md)); `--proofs` uses the rules of a tier or a better "
        "one."),
        table(("class", "meaning"), list(MEANING.items())),
        table(("tier", "shown"), list(TIERS.items())), *parts)


def _assumed(rule: Rule) -> str:
    """What of the numbers it assumes: always, or for some of the values that it matches."""
    always, at_times = ([n for n in kinds if n in ASSUMPTIONS] for kinds in (rule.needs, rule.may))
    return ", ".join([*always, *(f"{n} at times" for n in at_times)]) or "nothing"


def _left(rule: Rule) -> str:
    if rule.pattern is not None:
        return _text(rule.pattern)
    roots = [op.name for op in rule.roots]
    return ", ".join(roots[:6]) + (f" and {len(roots) - 6} more" if len(roots) > 6 else "")


def _text(p: object, inner: bool = False) -> str:
    match p:
        case Var(name):
            return name
        case Applied(op, operands, attrs):
            parts = [_text(x, True) for x in operands]
            if op.name in SIGNS and len(parts) == 2:
                text = f"{parts[0]} {SIGNS[op.name]} {parts[1]}"
                return f"({text})" if inner else text
            parts += [f"{k}={_text(v)}" for k, v in attrs.items()]
            return f"{op.name}({', '.join(parts)})"
        case _:
            return str(p)


def _equation(rule: Rule) -> str:
    """The comment on the rule's own line, or else the first sentence of its docstring."""
    lines = inspect.getsource(rule.fn).splitlines()
    line = next((x for x in lines if x.lstrip().startswith("def ")), "")
    said = line.partition("  # ")[2].strip() or rule.doc.partition("\n")[0]
    return said.removesuffix(".")
