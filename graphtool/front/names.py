"""What ops are called elsewhere: one row an op, which importers read and exporters write.

A row says which words of ONNX, StableHLO with CHLO (`hlo`) and ATen mean the op. Where a format has
further conditions, a handler or a form is written by hand, and the word says for which direction it
serves nevertheless. The notation of a word is

    [read | write] NAME [@OPSET] [(OURS[=THEIRS][:DEFAULT], …)] [of CLASS]

* `read`, `write`: only in this direction; without it in both.
* `@OPSET`: the opset of ONNX from which on the name has this meaning.
* `(slope=alpha:0.01)`: our attribute, its name there, its default there. A name or a default that
  is the same as ours is left out.
* `of CLASS`: only for these element types (`CLASSES`).

Several words are separated by `|`. The first that takes the element type is written, all are read.
"""

from __future__ import annotations

import inspect
import math
import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.front.array import Refused
from graphtool.ir.op import OPS
from graphtool.scalars.table import BY_NAME

Language = Literal["onnx", "hlo", "aten"]
CLASSES: dict[str, Callable[[DType], bool]] = {
    "": lambda t: True,
    "booleans": lambda t: t is dtypes.bool_,
    "numbers": lambda t: t is not dtypes.bool_,
    "floats": lambda t: t.is_float,
    "signed": lambda t: t is not dtypes.bool_ and t.kind != "uint",
    "integers": lambda t: t.is_integer and t is not dtypes.bool_,
    "bits": lambda t: t.is_integer or t is dtypes.bool_,
}
_WORD = re.compile(r"(?:(read|write) )?([\w.]+)(?:@(\d+))?(?:\((.*)\))?(?: of (\w+))?")
_ATTRIBUTE = re.compile(r"(\w+)(?:=(\w+))?(?::(.+))?")


@dataclass(frozen=True)
class Attribute:
    """An attribute: our name, the name there, and the default there (empty for none)."""

    ours: str
    theirs: str
    default: Any
    kind: type


@dataclass(frozen=True)
class Word:
    """A name in a format, with what it means: an op, or a function that is written with ops."""

    name: str
    op: str
    fn: Callable[..., Any]
    count: int  # of operands
    attributes: tuple[Attribute, ...] = ()
    since: int = 1
    types: str = ""
    reads: bool = True
    writes: bool = True

    def takes(self, dtype: DType) -> bool:
        """Whether the word has this meaning for operands of an element type."""
        return CLASSES[self.types](dtype)

    @property
    def over(self) -> str:
        """The attribute that says which axes the op runs over, "axes" or "axis"; "" without one."""
        schema = OPS[self.op].schema if self.op in OPS else {}
        return next((a for a in ("axes", "axis") if a in schema), "")

    @property
    def compares(self) -> bool:
        """Whether it compares two operands."""
        return self.count == 2 and self.op in BY_NAME and BY_NAME[self.op].result == "bool"

    def ours(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """Our attributes, from those of the format; numbers become floats where ours are floats."""
        given = {a.ours: attrs.get(a.theirs, a.default) for a in self.attributes}
        return {a.ours: float(given[a.ours]) if a.kind is float else given[a.ours]
                for a in self.attributes}

    def theirs(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of the format, from ours."""
        return {a.theirs: attrs[a.ours] for a in self.attributes}

    def signature(self, *before: str) -> inspect.Signature:
        """That of a handler: the parameters `before`, the operands, the attributes by keyword."""
        names = (*before, *(f"x{i}" for i in range(self.count)))
        return inspect.Signature([
            *(inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names),
            *(inspect.Parameter(a.theirs, inspect.Parameter.KEYWORD_ONLY, default=a.default,
                                annotation=a.kind.__name__) for a in self.attributes)])


ROWS: dict[str, dict[Language, tuple[Word, ...]]] = {}


def names(op: str | Callable[..., Any], *, onnx: str = "", hlo: str = "", aten: str = "") -> None:
    """Add a row: what an op of ours is called in each format. In place of an op, a function of ops
    may stand; it is read only."""
    name = op if isinstance(op, str) else op.__name__
    if name in ROWS:
        raise InternalError("GT7001", f"{name} has two rows of names")
    texts: dict[Language, str] = {"onnx": onnx, "hlo": hlo, "aten": aten}
    ROWS[name] = {language: tuple(_word(t.strip(), op) for t in text.split("|"))
                  for language, text in texts.items() if text}


def _word(text: str, op: str | Callable[..., Any]) -> Word:
    match = _WORD.fullmatch(text)
    if match is None or (match[5] or "") not in CLASSES:
        raise InternalError("GT7001", f"{text!r} is no word of a row of names")
    only, name, since, inside, types = match.groups(default="")
    fn, meant = (OPS[op], op) if isinstance(op, str) else (op, op.__name__)
    if meant in BY_NAME:
        count = BY_NAME[meant].arity
    else:
        count = len(OPS[op].operands if isinstance(op, str) else inspect.signature(op).parameters)
    return Word(name, meant, fn, count, tuple(_attributes(meant, inside)), int(since or 1), types,
                only != "write", only != "read" and isinstance(op, str))


def _attributes(op: str, text: str) -> Iterator[Attribute]:
    for item in filter(None, text.split(", ")):
        match = _ATTRIBUTE.fullmatch(item)
        schema = OPS[op].schema
        if match is None or match[1] not in schema:
            raise InternalError("GT7001", f"{op} has no attribute as in {item!r}")
        ours = schema[match[1]]
        default = ours.default if match[3] is None else literal_eval(match[3])
        yield Attribute(match[1], match[2] or match[1], default, ours.annotation)


@cache
def read(language: Language, over: str = "") -> dict[str, tuple[Word, ...]]:
    """The names that an importer of the format reads, each with its meanings by element type.

    Ops over axes are left out unless `over` asks for them ("axes", "axis"): how axes are stated is
    a rule of the format.
    """
    words: dict[str, tuple[Word, ...]] = {}
    for row in ROWS.values():
        for word in row.get(language, ()):
            if word.reads and word.over == over:
                words[word.name] = (*words.get(word.name, ()), word)
    return words


def meaning(words: tuple[Word, ...], dtype: DType) -> Word:
    """What a name means for operands of an element type. Raises Refused if it means nothing."""
    for there in words:
        if there.takes(dtype):
            return there
    raise Refused(f"it is not supported on {dtype.name}")


def written(language: Language, over: str = "") -> tuple[str, ...]:
    """The ops that an exporter writes by one of the format's words; `over` as for `read`."""
    return tuple(op for op, row in ROWS.items()
                 if any(w.writes and w.over == over for w in row.get(language, ())))


def word(op: str, language: Language, dtype: DType) -> Word | None:
    """The word that is written for an op on operands of an element type; None without one."""
    return next((w for w in ROWS[op].get(language, ()) if w.writes and w.takes(dtype)), None)


# ---- arithmetic --------------------------------------------------------------------------------

names("add", onnx="Add@7", hlo="add of numbers")
names("sub", onnx="Sub@7", hlo="subtract of numbers")
names("mul", onnx="Mul@7", hlo="multiply of numbers")
names("div", onnx="Div@7", hlo="read divide of numbers")
names("rem", hlo="read remainder of numbers", aten="fmod")
names("mod", aten="remainder")
names("pow", onnx="write Pow", hlo="read power of numbers")
names("max", onnx="write Max", hlo="maximum of numbers", aten="maximum | max.other")
names("min", onnx="write Min", hlo="minimum of numbers", aten="minimum | min.other")
names("neg", onnx="read Neg", hlo="negate of numbers", aten="neg | negative")
names("abs", onnx="Abs", hlo="write abs of signed | read abs of numbers", aten="abs of numbers")
names("sign", onnx="Sign", hlo="write sign of signed | read sign of numbers")
names("next_after", hlo="chlo.next_after")

# ---- comparison, logic, bits --------------------------------------------------------------------

names("eq", onnx="Equal@7", hlo="compare.EQ", aten="eq")
names("ne", hlo="compare.NE", aten="ne")
names("lt", onnx="Less@7", hlo="compare.LT", aten="lt")
names("le", onnx="LessOrEqual@12", hlo="compare.LE", aten="le")
names("gt", onnx="Greater@7", hlo="compare.GT", aten="gt")
names("ge", onnx="GreaterOrEqual@12", hlo="compare.GE", aten="ge")
names("is_nan", onnx="IsNaN", aten="isnan of floats")
names("is_inf", onnx="write IsInf", hlo="read chlo.is_inf", aten="isinf of floats")
names("is_finite", hlo="is_finite of numbers", aten="isfinite of floats")
names("and", onnx="And@7 of booleans | BitwiseAnd@18 of integers",
      hlo="and of bits | read multiply of booleans | read minimum of booleans",
      aten="bitwise_and | __and__ | logical_and of booleans")
names("or", onnx="Or@7 of booleans | BitwiseOr@18 of integers",
      hlo="or of bits | read add of booleans | read maximum of booleans",
      aten="bitwise_or | __or__ | logical_or of booleans")
names("xor", onnx="Xor@7 of booleans | BitwiseXor@18 of integers",
      hlo="xor of bits | read subtract of booleans",
      aten="bitwise_xor | __xor__ | logical_xor of booleans")
names("not", onnx="Not of booleans | BitwiseNot of integers", hlo="not of bits",
      aten="bitwise_not | logical_not of booleans")
names("shift_left", hlo="read shift_left of numbers", aten="bitwise_left_shift | __lshift__")
names("shift_right", aten="bitwise_right_shift | __rshift__")
names("select", onnx="read Where")

# ---- rounding ----------------------------------------------------------------------------------

names("floor", onnx="Floor", hlo="floor of numbers", aten="floor of floats")
names("ceil", onnx="Ceil", hlo="ceil of numbers", aten="ceil of floats")
names("round", onnx="Round", hlo="round_nearest_even of numbers", aten="round.default of floats")
names("trunc", aten="trunc of floats | fix of floats")

# ---- functions ---------------------------------------------------------------------------------

names("exp", onnx="Exp", hlo="exponential of numbers", aten="exp")
names("expm1", hlo="exponential_minus_one of numbers", aten="expm1")
names("log", onnx="Log", hlo="log of numbers", aten="log")
names("log1p", hlo="log_plus_one of numbers", aten="log1p")
names("sqrt", onnx="Sqrt", hlo="sqrt of numbers", aten="sqrt")
names("rsqrt", hlo="rsqrt of numbers", aten="rsqrt")
names("sin", onnx="Sin", hlo="sine of numbers", aten="sin")
names("cos", onnx="Cos", hlo="cosine of numbers", aten="cos")
names("tan", onnx="Tan", hlo="tan of numbers | read chlo.tan", aten="tan")
names("asin", onnx="Asin", hlo="chlo.asin", aten="asin")
names("acos", onnx="Acos", hlo="chlo.acos", aten="acos")
names("atan", onnx="Atan", hlo="chlo.atan", aten="atan")
names("atan2", hlo="atan2 of numbers", aten="atan2 | arctan2")
names("sinh", onnx="Sinh", hlo="chlo.sinh", aten="sinh")
names("cosh", onnx="Cosh", hlo="chlo.cosh", aten="cosh")
names("tanh", onnx="Tanh", hlo="tanh of numbers", aten="tanh")
names("asinh", onnx="Asinh", hlo="chlo.asinh", aten="asinh")
names("acosh", onnx="Acosh", hlo="chlo.acosh", aten="acosh")
names("atanh", onnx="Atanh", hlo="chlo.atanh", aten="atanh")
names("erf", onnx="Erf", hlo="chlo.erf", aten="erf")
names("erfc", hlo="chlo.erfc", aten="erfc")
names("erf_inv", hlo="chlo.erf_inv", aten="erfinv | special_erfinv")
names("lgamma", hlo="chlo.lgamma", aten="lgamma")
names("digamma", hlo="chlo.digamma", aten="digamma")
names("polygamma", hlo="chlo.polygamma", aten="polygamma")
names("igamma", aten="igamma | special_gammainc")
names("igammac", aten="igammac | special_gammaincc")
names("i0e", aten="special_i0e")
names("i1e", hlo="chlo.bessel_i1e", aten="special_i1e")

# ---- activations -------------------------------------------------------------------------------

names("relu", onnx="read Relu", aten="relu")
names("sigmoid", onnx="Sigmoid", hlo="logistic of numbers", aten="sigmoid")
names("silu", aten="silu")
names("gelu", onnx="Gelu(approximate) | read com.microsoft.Gelu", aten="gelu(approximate)")
names("elu", onnx="Elu(alpha)")
names("celu", onnx="write Celu(alpha)", aten="celu(alpha)")
names("selu", onnx="Selu(alpha:1.67326319217681884765625, gamma:1.05070102214813232421875)",
      aten="selu")
names("leaky_relu", onnx="LeakyRelu(slope=alpha)", aten="leaky_relu(slope=negative_slope)")
names("thresholded_relu", onnx="ThresholdedRelu(alpha)")
names("hard_sigmoid", onnx="HardSigmoid(alpha:0.2, beta)", aten="hardsigmoid")
names("hard_swish", onnx="HardSwish", aten="hardswish")
names("mish", onnx="Mish", aten="mish")
names("softsign", onnx="Softsign", aten="softsign")
names("softplus", aten="softplus(beta, threshold)")
names("log_sigmoid", aten="log_sigmoid")

# ---- over axes: of several meanings the first that takes the type is read ------------------------

names("reduce_and", onnx="ReduceMin of booleans", aten="all of booleans | prod of booleans")
names("reduce_or", onnx="ReduceMax of booleans", aten="any of booleans | sum of booleans")
names("reduce_sum", onnx="ReduceSum", aten="sum")
names("reduce_prod", onnx="ReduceProd", aten="prod")
names("reduce_max", onnx="ReduceMax", aten="amax")
names("reduce_min", onnx="ReduceMin", aten="amin")
names("reduce_mean", onnx="ReduceMean", aten="mean")
names("logsumexp", onnx="ReduceLogSumExp", aten="logsumexp")
names("softmax", onnx="Softmax@13", aten="softmax | _softmax | _safe_softmax")
names("log_softmax", onnx="LogSoftmax@13", aten="log_softmax | _log_softmax")

# ---- others ------------------------------------------------------------------------------------

names("lrn", onnx="read LRN(alpha:0.0001, beta:0.75, bias:1.0, size)")
names("stop_gradient", aten="detach | detach_ | detach_copy")
names("householder", aten="geqrf")
names("string_concat", onnx="StringConcat@20")
names("regex_match", onnx="RegexFullMatch@20(pattern:'')")

# ---- functions without an op ---------------------------------------------------------------------


def reciprocal(x: Any) -> Any:
    """1 / x."""
    return 1.0 / x


def square(x: Any) -> Any:
    """x·x."""
    return x * x


def frac(x: Any) -> Any:
    """x − trunc(x)."""
    return x - o.trunc(x)


def exp2(x: Any) -> Any:
    """pow(2, x)."""
    return o.pow(2.0, x)


def log2(x: Any) -> Any:
    """log(x) / log(2)."""
    return o.log(x) * (1 / math.log(2))


def log10(x: Any) -> Any:
    """log(x) / log(10)."""
    return o.log(x) * (1 / math.log(10))


names(reciprocal, onnx="Reciprocal", aten="reciprocal")
names(square, hlo="chlo.square", aten="square")
names(frac, aten="frac")
names(exp2, aten="exp2")
names(log2, aten="log2")
names(log10, aten="log10")
