"""What one node of TorchScript computes: an op of torch on tensors, or plain Python on numbers,
lists, dicts, tuples, texts and sizes.

Each takes the node, then its operands. A tensor of a size (`prim.NumToTensor`, which a trace writes
for `x.shape[0]`) stays the number that it holds. Element types, layouts and memory formats are
numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graphtool.errors import Signal

# ---- element types ------------------------------------------------------------------------------

# as c10/core/ScalarType.h counts them
_KINDS: dict[int, torch.dtype] = {
    0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64,
    5: torch.float16, 6: torch.float32, 7: torch.float64, 9: torch.complex64,
    10: torch.complex128, 11: torch.bool, 15: torch.bfloat16}
_LAYOUTS = {0: torch.strided}
_FORMATS = {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last,
            3: torch.channels_last_3d}


def kind_of(number: Any) -> Any:
    """The element type that a number stands for; None for none."""
    return _KINDS.get(number) if isinstance(number, int) else number


def number_of(kind: torch.dtype) -> int:
    """The number of an element type; -1 where TorchScript's code would not know it either."""
    return next((n for n, k in _KINDS.items() if k == kind), -1)


def typed(x: Any, kind: str) -> Any:
    """The argument as Python's torch has it, where TorchScript has a number for it; `kind` is the
    type in the op's schema."""
    if isinstance(x, int) and not isinstance(x, bool):
        for word, table in (("ScalarType", _KINDS), ("Layout", _LAYOUTS),
                            ("MemoryFormat", _FORMATS)):
            if word in kind:
                return table.get(x)
    return x


# ---- plain Python -------------------------------------------------------------------------------

Fn = Callable[..., Any]


class Raised(Signal):
    """The model itself raises an exception, with this text."""


class NotSupported(Signal):
    """A node that cannot be run; the text is the reason."""


def _n(fn: Fn) -> Fn:
    """The function without the node."""
    return lambda node, *args: fn(*args)


def _numbers(fn: Fn) -> Fn:
    """A function of numbers, without the node; a constant tensor of one number is that number."""
    return lambda node, *args: fn(*map(_held, args))


def _both(number: Fn, tensor: Fn) -> Fn:
    """A function of numbers, or of the tensors that stand for numbers which the data decide."""
    def run(node: Any, *args: Any) -> Any:
        return (tensor if any(isinstance(x, torch.Tensor) for x in args) else number)(*args)
    return run


def _div(a: Any, b: Any, rounding: str | None = None) -> Any:
    if rounding is None:
        return a / b
    return a // b if rounding == "floor" else _trunc(a, b)


def _trunc(a: Any, b: Any) -> Any:
    """a / b without what is behind the point; sizes are not negative."""
    if isinstance(a, torch.SymInt) or isinstance(b, torch.SymInt):
        return a // b
    return math.trunc(a / b) if isinstance(a, float) or isinstance(b, float) else (
        abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def _held(x: Any) -> Any:
    """A constant tensor of one number as that number, where it meets a size."""
    return x.item() if isinstance(x, torch.Tensor) and x.ndim == 0 else x


def _plus(a: Any, b: Any, alpha: Any = 1) -> Any:
    return a + b if isinstance(a, (list, str)) or alpha == 1 else a + alpha * b


def _minus(a: Any, b: Any, alpha: Any = 1) -> Any:
    return a - b if alpha == 1 else a - alpha * b


def _item(xs: Any, key: Any) -> Any:
    return xs[key]


def _slice(xs: Any, start: Any = None, stop: Any = None, step: Any = 1) -> Any:
    return xs[slice(start, stop, step)]


def _size(x: Any, axis: Any = None) -> Any:
    return list(x.shape) if axis is None else x.shape[axis]


def _as_bool(x: Any) -> Any:
    """A tensor stays one: a branch on it is a branch of the graph."""
    if not isinstance(x, torch.Tensor):
        return x if isinstance(x, torch.SymBool) else bool(x)
    x = x.reshape(())
    return x if x.dtype == torch.bool else x != 0


def _as_int(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.item() if not x.dtype.is_floating_point else x.to(torch.int64).item()
    return x if isinstance(x, torch.SymInt) else int(x)


def _as_float(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.item() if x.dtype.is_floating_point else x.to(torch.float64).item()
    return x if isinstance(x, torch.SymFloat) else torch.sym_float(x)


def _as_item(x: Any) -> Any:
    return x.item() if isinstance(x, torch.Tensor) else x


def _tensor(data: Any, dtype: Any = None, device: Any = None, grad: Any = False) -> torch.Tensor:
    kind = kind_of(dtype)
    if isinstance(data, (torch.SymInt, torch.SymFloat)):
        return torch.scalar_tensor(data, dtype=kind or torch.int64)
    if isinstance(data, torch.Tensor):
        return data if kind is None else data.to(kind)
    return torch.tensor(data, dtype=kind)


def _dtype(x: torch.Tensor) -> int:
    return number_of(x.dtype)


def _append(xs: Any, x: Any) -> Any:
    xs.append(x)
    return xs


def _set_item(xs: Any, key: Any, x: Any) -> Any:
    xs[key] = x
    return xs


def _dict(node: Any, *args: Any) -> Any:
    return dict(zip(args[::2], args[1::2], strict=True))


def _raise(node: Any, *args: Any) -> Any:
    raise Raised(f"the model raises {str(args[0])!r}" if args else "the model raises")


def _is_instance(node: Any, x: Any) -> bool:
    kinds = {str(t) for t in node.tys("types")} if hasattr(node, "tys") else set()
    table = {"int": int, "float": float, "bool": bool, "str": str, "Tensor": torch.Tensor,
             "NoneType": type(None)}
    return any((t in table and isinstance(x, table[t])) or (t.startswith("List") and isinstance(
        x, list)) or (t.startswith("Tuple") and isinstance(x, tuple)) for t in kinds)


def _format(text: str, *args: Any) -> str:
    return text.replace("{}", "%s") % tuple(map(str, args)) if args else text


_NUMBERS: dict[str, Fn] = {
    "add": _plus, "sub": _minus, "mul": operator.mul, "div": _div, "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv, "remainder": operator.mod, "pow": operator.pow,
    "neg": operator.neg, "abs": abs, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "__and__": operator.and_,
    "__or__": operator.or_, "__xor__": operator.xor, "__lshift__": operator.lshift,
    "__rshift__": operator.rshift, "floor": math.floor, "ceil": math.ceil, "sqrt": math.sqrt,
    "exp": math.exp, "log": math.log, "round": round, "rsub": lambda a, b, k=1: b - k * a,
    "detach": lambda x: x, "to": lambda x, *_: x, "type_as": lambda x, _: x, "clone":
    lambda x, *_: x}

_VALUES: dict[str, Fn] = {
    "len": len, "__getitem__": _item, "slice": _slice, "size": _size, "dim": lambda x: x.dim(),
    "numel": lambda x: x.numel(), "device": lambda x: x.device, "dtype": _dtype,
    "is_floating_point": lambda x: x.is_floating_point(),
    "is_complex": lambda x: x.is_complex(), "Bool": _as_bool, "Int": _as_int,
    "Float": _as_float, "IntImplicit": _as_int, "FloatImplicit": _as_float,
    "ScalarImplicit": _as_item, "item": _as_item, "tensor": _tensor, "as_tensor": _tensor,
    "append": _append, "extend": lambda xs, ys: xs.extend(ys),
    "insert": lambda xs, i, x: xs.insert(i, x), "pop": lambda xs, i=-1: xs.pop(i),
    "clear": lambda xs: xs.clear(), "copy": lambda xs: xs.copy(), "list": list,
    "reverse": lambda xs: xs.reverse(), "keys": lambda d: list(d.keys()),
    "values": lambda d: list(d.values()), "items": lambda d: list(d.items()),
    "get": lambda d, k, *other: d.get(k, *other), "_set_item": _set_item,
    "__contains__": lambda xs, x: x in xs, "__is__": operator.is_,
    "__isnot__": operator.is_not, "join": lambda sep, xs: sep.join(xs), "str": str,
    "warn": lambda *_: None, "is_grad_enabled": lambda: torch.is_grad_enabled(),
    "is_scripting": lambda: True, "is_autocast_enabled": lambda *_: False,
    "is_autocast_cpu_enabled": lambda *_: False, "format": _format,
    "percentFormat": lambda t, *xs: t % xs, "range_length":
    lambda lo, hi, step: len(range(lo, hi, step)), "__range_length":
    lambda lo, hi, step: len(range(lo, hi, step)), "__derive_index":
    lambda i, start, step: start + i * step, "mathremainder": math.remainder}

PLAIN: dict[str, Fn] = {
    **{name: _numbers(fn) for name, fn in _NUMBERS.items()},
    **{name: _n(fn) for name, fn in _VALUES.items()},
    "__not__": _both(operator.not_, torch.logical_not),
}

_PRIM: dict[str, Fn] = {
    "ListConstruct": lambda node, *xs: list(xs), "TupleConstruct": lambda node, *xs: tuple(xs),
    "TupleUnpack": lambda node, xs: tuple(xs) if node.outputsSize() != 1 else xs[0],
    "ListUnpack": lambda node, xs: tuple(xs) if node.outputsSize() != 1 else xs[0],
    "TupleIndex": _n(_item), "TupleSlice": lambda node, xs: xs[node.i("beg"):node.i("end")],
    "DictConstruct": _dict, "unchecked_cast": _n(lambda x: x),
    "unchecked_unwrap_optional": _n(lambda x: x), "Uninitialized": lambda node: None,
    "RaiseException": _raise, "isinstance": _is_instance, "NumToTensor": _n(lambda x: x),
    "device": _n(lambda x: x.device), "dtype": _n(_dtype), "layout": _n(lambda x: 0),
    "is_cuda": _n(lambda x: False), "is_cpu": _n(lambda x: True),
    "requires_grad": _n(lambda x: x.requires_grad), "is_nested": _n(lambda x: False),
    "is_quantized": _n(lambda x: False), "is_sparse": _n(lambda x: False),
    "is_mkldnn": _n(lambda x: False), "is_meta": _n(lambda x: False),
    "is_mps": _n(lambda x: False), "is_vulkan": _n(lambda x: False),
    "data": _n(lambda x: x.detach()), "Print": lambda node, *xs: (),
    "min": _n(lambda *xs: torch.sym_min(*xs) if len(xs) == 2 else min(xs[0])),
    "max": _n(lambda *xs: torch.sym_max(*xs) if len(xs) == 2 else max(xs[0])),
    "abs": _n(abs), "shape": _n(lambda x: list(x.shape)), "ImplicitTensorToNum": _n(_as_item),
    "tolist": _n(lambda x, *_: x.tolist()), "dim": _n(lambda x: x.dim()),
    "TupleToList": _n(list), "type": _n(lambda d: d.type), "index": _n(lambda d: d.index),
    "is_scripting": _n(lambda: True)}

PLAIN |= {f"prim.{name}": fn for name, fn in _PRIM.items()}


# ---- one node -----------------------------------------------------------------------------------

def call(node: Any, args: Sequence[Any]) -> Any:
    """The result of a node that is neither control flow nor an attribute."""
    space, _, name = node.kind().partition("::")
    if space == "prim" and f"prim.{name}" in PLAIN:
        return PLAIN[f"prim.{name}"](node, *args)
    if space == "prim" and name not in PLAIN:
        raise NotSupported("this part of TorchScript is not supported")
    schema = node.schema().partition("(")[0]
    overload = schema.partition("::")[2].partition(".")[2] or "default"
    tensors = _reads_tensors(node, args)
    if name in PLAIN and (not tensors or name in _ALWAYS):
        return PLAIN[name](node, *args)
    packet = getattr(getattr(torch.ops, space), name, None)
    op = getattr(packet, overload, None)
    if packet is None or op is None:
        raise NotSupported("this op of TorchScript is not supported")
    given = op._schema.arguments
    args = [typed(x, str(getattr(a, "real_type", a.type)))
            for x, a in zip(args, given, strict=False)]
    args = [_tensor_of(x, str(a.type)) for x, a in zip(args, given, strict=False)]
    late = any(_decided_late(x, str(a.type)) for x, a in zip(args, given, strict=False))
    by_name = [a.kwarg_only or (late and a.has_default_value()) for a in given]
    positional = [x for x, named in zip(args, by_name, strict=False) if not named]
    named = {a.name: x for x, a, n in zip(args, given, by_name, strict=False) if n}
    # of a number that is a tensor here, torch chooses the form of the op that takes it
    return (packet if late else op)(*positional, **named)


# of a tensor these are asked by name: they give Python values, or a tensor from values
_ALWAYS = frozenset({"size", "dim", "len", "numel", "device", "dtype", "is_floating_point",
                     "is_complex", "tensor", "as_tensor", "Bool", "Int", "Float", "IntImplicit",
                     "FloatImplicit", "ScalarImplicit", "item", "__getitem__", "append", "list",
                     "__contains__", "__is__", "__isnot__", "NumToTensor", "extend", "insert",
                     "_set_item", "__not__", "to_device"})


def _reads_tensors(node: Any, args: Sequence[Any]) -> bool:
    """Whether a call is one of torch's: an operand is a tensor, or the result is a tensor without
    an operand (`zeros`)."""
    gives_tensors = any(v.type().kind() == "TensorType" for v in node.outputs())
    expected = any(v.type().kind() == "TensorType" for v in node.inputs())
    takes_tensors = any(isinstance(x, torch.Tensor) or (isinstance(x, (list, tuple)) and any(
        isinstance(i, torch.Tensor) for i in x)) for x in args)
    return takes_tensors or (gives_tensors and not expected)


def _tensor_of(x: Any, kind: str) -> Any:
    """A number as a tensor of rank 0, where an op wants a tensor: a size that a trace computes."""
    if kind not in ("Tensor", "Optional[Tensor]"):
        return x
    match x:
        case bool():
            return torch.full((), x, dtype=torch.bool)
        case int() | torch.SymInt():
            return torch.scalar_tensor(x, dtype=torch.int64)
        case float() | torch.SymFloat():
            return torch.scalar_tensor(x, dtype=torch.float64)
    return x


def _decided_late(x: Any, kind: str) -> bool:
    """Whether a number of the code is a tensor here, since the data decide it."""
    return isinstance(x, torch.Tensor) and kind in ("int", "float", "number", "bool",
                                                    "Optional[number]")
