"""The graph inside a `.pt2` archive as a `CapturedProgram`: torch's export schema 8, as plain
data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool.errors import InputError
from graphtool.importers.torch.driver import exprs
from graphtool.importers.torch.driver.captured import (
    ALIAS,
    DECOMPOSED,
    CallPlace,
    CapturedProgram,
    ComplexType,
    GraphInput,
    GraphOutput,
    NamedValue,
    Opaque,
    OpCall,
    Type,
    least,
    output_name,
)
from graphtool.importers.torch.driver.exprs import conditions
from graphtool.importers.torch.driver.provenance import clean_path, module_place
from graphtool.io.weights import Weight
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim, Symbol, symbol, symbols

MAJOR = 8  # of the schema; torch raises it when old readers would misread
SCALAR_TYPES = {row.torch_code: row for row in dtypes.TABLE if row.torch_code}
COMPLEX_TYPES = {10: dtypes.float32, 11: dtypes.float64}  # the types of their parts
_FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
Fault = Callable[..., InputError]


def read_program(raw: Any, weights: Mapping[str, Weight], fault: Fault) -> CapturedProgram:
    """The CapturedProgram of the JSON `raw`. Raises `fault(GT1207)` for another schema version,
    and plain Python errors for malformed data."""
    version = raw["schema_version"]["major"]
    if version != MAJOR:
        raise fault("GT1207", f"export schema {version}, this tool reads {MAJOR}",
                    "save the program with a torch of the same generation")
    return _Reader(raw, weights, fault).program()


class _Reader:
    def __init__(self, raw: Any, weights: Mapping[str, Weight], fault: Fault) -> None:
        self.raw, self.weights, self.fault = raw, weights, fault
        self.module = raw["graph_module"]
        self.graph = self.module["graph"]
        self.ranges: Mapping[str, Any] = raw["range_constraints"]
        self.seen: dict[str, Symbol] = {}
        self.types: dict[str, Type] = {"": None}
        self.decomposed = DECOMPOSED in (raw.get("verifiers") or ())

    def program(self) -> CapturedProgram:
        for name, meta in self.graph["tensor_values"].items():
            self.types[name] = self._tensor(meta)
        for name, value in self.graph["sym_int_values"].items():
            self.types[name] = self._size(value)
        sources = tuple(s for s in map(self._source, self.module["signature"]["input_specs"]) if s)
        declared = self._declared(sources)
        calls = tuple(self._call(n) for n in self.graph["nodes"])
        meta = {"source": "pt2", "torch": str(self.raw.get("torch_version", "")).partition("+")[0],
                **({"decomposed": True} if self.decomposed else {})}
        program = CapturedProgram(sources, calls, self._sinks(sources), self.types, declared, meta)
        return replace(program, conditions=conditions(self.raw.get("guards_code") or (), program))

    # ---- types ---------------------------------------------------------------------------------

    def _tensor(self, meta: Mapping[str, Any]) -> Type:
        if meta["dtype"] in COMPLEX_TYPES and meta["layout"] == 7:
            return ComplexType(TensorType(COMPLEX_TYPES[meta["dtype"]],
                                          tuple(map(self._size, meta["sizes"]))))
        dtype = SCALAR_TYPES.get(meta["dtype"])
        if dtype is None or meta["layout"] != 7:
            return Opaque("its element type or layout is not supported")
        return TensorType(dtype, tuple(map(self._size, meta["sizes"])))

    def _size(self, d: Mapping[str, Any]) -> Dim:
        if "as_int" in d:
            return _integer(d["as_int"])
        return exprs.read(d["as_expr"]["expr_str"], self._symbol)

    def _symbol(self, name: str) -> Dim:
        if not name.isidentifier():
            raise ValueError("symbol name")
        if name not in self.seen:
            row = self.ranges.get(name, {})
            lo, hi = row.get("min_val"), row.get("max_val")
            lo = least(name, None if lo is None else _integer(lo))
            self.seen[name] = Symbol(name, lo, None if hi is None else _integer(hi))
        s = self.seen[name]
        return symbol(s.name, s.lo, s.hi)

    def _declared(self, sources: tuple[GraphInput, ...]) -> dict[str, Symbol]:
        """The symbols in the shapes of the inputs; all others depend on data."""
        by_name: dict[str, Symbol] = {}
        for s in sources:
            kind = self.types.get(s.name)
            for d in kind.shape if isinstance(kind, TensorType) else ():
                by_name |= {x.name: x for x in symbols(d)}
        return by_name

    # ---- inputs and outputs --------------------------------------------------------------------

    def _source(self, spec: Mapping[str, Any]) -> GraphInput | None:
        (kind, body), = spec.items()
        match kind:
            case "user_input":
                name = _tensor_name(body["arg"])
                return GraphInput(name, "user", name) if name else None
            case "constant_input":
                return None
            case "parameter" | "buffer" | "tensor_constant":
                key = body[f"{kind}_name"]
                w = self.weights.get(key)
                if w is None:
                    raise self.fault("GT1202", f"the archive has no data for {key!r}")
                name = _text(body["arg"]["name"])
                if not _holds(w, self.types.get(name)):
                    raise self.fault("GT1202", f"{key!r} is {w.dtype.short}{list(w.shape)}, the "
                                               f"graph says {self.types.get(name)}")
                trained = bool(self.graph["tensor_values"].get(name, {}).get("requires_grad"))
                saved = kind == "parameter" or (kind == "buffer" and body["persistent"] is True)
                return GraphInput(name, "constant" if kind == "tensor_constant" else kind,
                                  clean_path(key), w, trained, key if saved else "")
            case _:
                raise self.fault("GT1206", f"inputs of the kind {kind!r} are not supported",
                                 "scripted objects and effect tokens run code of their own")

    def _sinks(self, sources: tuple[GraphInput, ...]) -> tuple[GraphOutput, ...]:
        names = iter(self._output_names())
        out: list[GraphOutput] = []
        for spec in self.module["signature"]["output_specs"]:
            (kind, body), = spec.items()
            match kind:
                case "user_output" | "loss_output":
                    name = next(names)
                    value = self._argument(body["arg"] if kind == "user_output"
                                           else {"as_tensor": body["arg"]})
                    if isinstance(value, (NamedValue, int, float)):
                        out.append(GraphOutput(value, "user", name))
                case "buffer_mutation" | "parameter_mutation":
                    key = clean_path(body[kind.replace("mutation", "name")])
                    out.append(GraphOutput(_ref(body["arg"]), "state", key))
                case "user_input_mutation":
                    name = _text(body["user_input_name"])
                    out.append(GraphOutput(_ref(body["arg"]), "state", name))
                case _:
                    raise self.fault("GT1206", f"outputs of the kind {kind!r} are not supported")
        keys = {s.key for s in sources}
        lost = [s.key for s in out if s.kind == "state" and s.key not in keys]
        if lost:
            raise self.fault("GT1202", f"the state {lost[0]!r} is not an input")
        return tuple(out)

    def _output_names(self) -> list[str]:
        count = len(self.module["signature"]["output_specs"])
        for entry in self.module["module_call_graph"]:
            if entry["fqn"] == "" and entry.get("signature"):
                tree = json.loads(entry["signature"]["out_spec"])[1]
                paths = list(_paths(tree, (), self.module.get("treespec_namedtuple_fields") or {}))
                return [output_name(p) for p in paths] + ["output"] * (count - len(paths))
        return [f"output_{i}" for i in range(count)]

    # ---- calls ---------------------------------------------------------------------------------

    def _call(self, node: Mapping[str, Any]) -> OpCall:
        args, kwargs = [], {}
        for a in node["inputs"]:
            value = self._argument(a["arg"])
            if a.get("kind") == 2:
                kwargs[str(a["name"])] = value
            else:
                args.append(value)
        outputs = tuple(n for o in node["outputs"] for n in _result_names(o))
        target = str(node["target"]).removeprefix("torch.ops.")
        if target.startswith("aten.as_strided") and isinstance(
                args[0], NamedValue) and not _in_order(
                self.graph["tensor_values"][args[0].name], args[1:]):
            args[0] = Opaque("as_strided of a view, which reads memory in another order")
        alias = self.decomposed and target.startswith("aten.alias.")
        return OpCall(target, tuple(args), kwargs, outputs, _place(node.get("metadata") or {}),
                      gradient=ALIAS if alias else "")

    def _argument(self, arg: Mapping[str, Any]) -> Any:
        (kind, x), = arg.items()
        match kind:
            case "as_none" | "as_device" | "as_layout" | "as_memory_format":
                return None
            case "as_tensor":
                return _ref(x)
            case "as_tensors":
                return tuple(_ref(i) for i in x)
            case "as_optional_tensors" | "as_nested_tensors" | "as_sym_ints" | "as_sym_floats":
                return tuple(self._item(i) for i in x)
            case "as_optional_tensor" | "as_sym_int" | "as_sym_float" | "as_sym_bool":
                return self._item(x)
            case "as_scalar_type":
                return SCALAR_TYPES.get(x)
            case "as_float":
                return _float(x)
            case "as_floats":
                return tuple(map(_float, x))
            case "as_int" | "as_bool" | "as_string":
                return _plain(x)
            case "as_ints" | "as_bools" | "as_strings" | "as_int_lists":
                return _plain(x)
            case _:  # graphs, operators, scripted objects, complex numbers
                return Opaque(f"an argument of kind {kind!r} is not supported")

    def _item(self, x: Any) -> Any:
        if isinstance(x, list):
            return tuple(_ref(i) for i in x)
        (kind, value), = x.items()
        if kind == "as_name":
            return NamedValue(_text(value))
        return self._argument(x)


def _holds(w: Weight, kind: Type) -> bool:
    """Whether the weight has this type; a complex one has a last axis (real, imaginary)."""
    if isinstance(kind, ComplexType):
        return (w.dtype, w.shape) == (kind.parts.dtype, (*kind.parts.shape, 2))
    return kind == TensorType(w.dtype, w.shape)


def _in_order(meta: Mapping[str, Any], args: list[Any]) -> bool:
    """Whether a tensor's elements lie in memory in their order, from 0, and (size, stride, offset)
    of an as_strided reads no others. What open sizes decide is taken for true."""
    sizes, strides = ([d.get("as_int") for d in meta[k]] for k in ("sizes", "strides"))
    numbers = [x for x in args if isinstance(x, tuple)][:2]
    if None in sizes or None in strides or not all(isinstance(n, int) for x in numbers for n in x):
        return True
    count = 1
    for n, s in zip(reversed(sizes), reversed(strides), strict=True):
        if n != 1 and s != count:
            return False
        count *= _integer(n)
    last = sum((n - 1) * s for n, s in zip(*numbers, strict=True))
    return bool(meta["storage_offset"].get("as_int", 0) == 0 and last < count)


def _integer(x: Any) -> int:
    if type(x) is not int or abs(x) >= 1 << 63:
        raise ValueError("not an integer")
    return x


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise TypeError("not a name")
    return x


def _ref(x: Mapping[str, Any]) -> NamedValue:
    return NamedValue(_text(x["name"]))


def _plain(x: Any) -> Any:
    if isinstance(x, list):
        return tuple(map(_plain, x))
    if not isinstance(x, (bool, int, str)):
        raise TypeError("not a plain value")
    return x


def _float(x: Any) -> float:
    return _FLOATS[x] if isinstance(x, str) else float(x)


def _tensor_name(arg: Mapping[str, Any]) -> str:
    return str(arg["as_tensor"]["name"]) if "as_tensor" in arg else ""


def _result_names(arg: Mapping[str, Any]) -> list[str]:
    """The names that a result binds: one for each tensor of a list, none for an absent result."""
    (kind, x), = arg.items()
    match kind:
        case "as_tensor":
            return [str(x["name"])]
        case "as_tensors":
            return [str(i["name"]) for i in x]
        case "as_optional_tensors":
            return [_tensor_name(i) for i in x]
        case "as_sym_int" | "as_sym_float" | "as_sym_bool":
            return [str(x.get("as_name", ""))]
        case _:
            return [""]


def _paths(tree: Any, path: tuple[str | int, ...], fields: Mapping[str, Any]) -> Any:
    """The path to each leaf of a serialised structure of outputs."""
    if tree["type"] is None:
        yield path
        return
    keys: list[str | int] = list(range(len(tree["children_spec"])))
    context = json.loads(tree["context"]) if isinstance(tree["context"], str) else None
    if isinstance(context, list) and len(context) == len(keys):
        keys = [str(k) for k in context]
    elif isinstance(context, str) and context in fields:
        keys = [str(k) for k in fields[context]["field_names"]]
    for key, child in zip(keys, tree["children_spec"], strict=True):
        yield from _paths(child, (*path, key), fields)


def _place(metadata: Mapping[str, Any]) -> CallPlace:
    stack = [entry.split(",") for entry in str(metadata.get("nn_module_stack", "")).split(";")]
    return module_place([(e[1], e[-1]) for e in stack if len(e) >= 3],
                        str(metadata.get("stack_trace") or ""))
