"""What one node of TorchScript computes: an op of torch on tensors, or plain Python on the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from graphtool.importers.torch.torchscript.plain import PLAIN, NotSupported, typed


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
    """Whether a call is one of torch's: an operand is a tensor, or the result is one that no
    operand could give (`zeros`)."""
    made = any(v.type().kind() == "TensorType" for v in node.outputs())
    expected = any(v.type().kind() == "TensorType" for v in node.inputs())
    found = any(isinstance(x, torch.Tensor) or (isinstance(x, (list, tuple)) and any(
        isinstance(i, torch.Tensor) for i in x)) for x in args)
    return found or (made and not expected)


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
