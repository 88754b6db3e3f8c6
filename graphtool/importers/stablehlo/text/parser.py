"""A whole text as an `MlirModule`: the module, its functions, and the locations they refer to."""

from __future__ import annotations

from graphtool.importers.stablehlo.text import attributes
from graphtool.importers.stablehlo.text.operations import block, block_arguments
from graphtool.importers.stablehlo.text.reader import Reader
from graphtool.importers.stablehlo.text.tree import Argument, Function, MlirModule


def parse(text: str) -> MlirModule:
    """The program that the text says.

    Raises InputError GT1302 with line and column for text that the grammar does not allow, GT1303
    for a name defined twice, GT1304 for parts of MLIR that are not read.
    """
    r = Reader(text)
    name, attrs = "", {}
    functions: dict[str, Function] = {}
    opened = 0
    while r.token.kind != "end":
        if r.token.kind == "alias" and r.ahead(1).text == "=":
            _alias(r)
        elif r.take("module", "builtin.module"):
            name = r.next().text.removeprefix("@") if r.token.kind == "symbol" else name
            if r.take("attributes"):
                attrs = attributes.dictionary(r)
            r.expect("{")
            opened += 1
        elif r.take("func.func", "func"):
            function = _function(r)
            if function.name in functions:
                raise r.fault(f"there are two functions @{function.name}", function.at, "GT1303")
            functions[function.name] = function
        elif r.take("sdy.mesh"):  # devices, which a program for one has no use for
            r.kind_expected("symbol", "the name of a mesh")
            r.expect("=")
            r.skip("<")
            if r.peek("{"):
                r.skip("{")
            r.location()
        elif opened and r.take("}"):
            opened -= 1
            r.location()
        else:
            raise r.fault("a function is expected", r.token)
    if opened:
        raise r.fault("the module is not closed by '}'", r.token.at)
    if not functions:
        raise r.fault("the text has no function", 0, hint="graphtool reads StableHLO as "
                      "jax.export.export(f)(…).mlir_module() writes it")
    return MlirModule(name, attrs, functions, r.origins, text)


def _alias(r: Reader) -> None:
    """`#loc1 = loc(…)`, or another attribute with a name."""
    name = r.next().text
    r.expect("=")
    origin = r.location()
    if origin is not None:
        r.origins[name] = origin
    else:
        r.aliases[name] = attributes.value(r)


def _function(r: Reader) -> Function:
    at = r.token.at
    public = not r.peek("private")
    r.take("public", "private", "nested")
    name = attributes.value(r, typed=False)
    if not isinstance(name, attributes.FunctionName):
        raise r.fault("the name of a function, such as @main, is expected", at)
    if r.peek("(") and r.ahead(1).kind == "type":  # only declared: there is nothing to inline
        r.skip("(")
        arguments: tuple[Argument, ...] = ()
    else:
        arguments = block_arguments(r)
    results = _results(r) if r.take("->") else ()
    if r.take("attributes"):
        attributes.dictionary(r)
    body = None
    if r.take("{"):
        body = block(r, 0)
    r.location()
    return Function(str(name), public, arguments, results, body, at)


def _results(r: Reader) -> tuple[Argument, ...]:
    if not r.take("("):
        return (Argument("", r.kind()),)
    out = []
    while not r.take(")"):
        kind = r.kind()
        attrs = attributes.dictionary(r) if r.peek("{") else {}
        out.append(Argument("", kind, attrs))
        if not r.take(","):
            r.expect(")")
            break
    return tuple(out)


