"""Graph files: `NAME.graph.json`, canonical JSON with one node on a line, and `NAME.gt`, the
listing.

Reading what was written gives the same module. Constants of a few elements are in the text, larger
ones by sha256 in a safetensors file next to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphtool.dtypes import DType, dtype
from graphtool.errors import InputError, InternalError, listed
from graphtool.io import files, pairs, weights
from graphtool.io.atomic import is_stream
from graphtool.io.values import check_side_name
from graphtool.io.weights import Weight
from graphtool.ir import listing
from graphtool.ir.decode import Place, module_of, parse, rows
from graphtool.ir.encode import INLINE, dumps, inline
from graphtool.ir.graph import Graph, Module, is_constant
from graphtool.ir.parse import parse as parse_listing
from graphtool.ir.records import GraphFile, InputRow, ParamRow
from graphtool.ir.verify import verify_module

__all__ = ["INLINE", "GraphFile", "collect_all", "collect_weights", "dumps", "file_of",
           "is_listing", "load", "load_pair", "loads", "of_rows", "save"]
SUFFIX = ".gt"  # of a file that holds the listing


def save(module: Module, path: Path) -> None:
    """Write `path` and, if it has large constants, the `.safetensors` file of the same stem. A
    device or a pipe gets all of it as one text."""
    write = listing.dumps if path.suffix == SUFFIX else dumps
    if is_stream(path):
        files.write_bytes(path, write(module, embed=True).encode())
        return
    large = collect_weights(module)
    pairs.save(path, files.next_to(path, ".safetensors"), large,
               lambda name: write(module, name).encode())


def collect_weights(module: Module) -> list[Weight]:
    """The arrays of a module, including those of regions, that are too large for the text."""
    weights = [*collect_all(module.graph), *module.initial.values(), *module.kept.values()]
    return [w for w in weights if not inline(w)]


def collect_all(graph: Graph) -> list[Weight]:
    """Every constant of the graph and its regions."""
    weights = [n.attrs["data"] for n in graph.nodes if is_constant(n)]
    for node in graph.nodes:
        for a in node.attrs.values():
            if isinstance(a, Graph):
                weights += collect_all(a)
    return weights


def load(path: Path, check: bool = True) -> Module:
    """The module of a graph file; its weights are mapped. Raises InputError GT033x to GT035x.

    The file may come from anyone: with `check`, types are inferred again and must agree.
    """
    return load_pair(path, check)[0]


def load_pair(path: Path, check: bool = True, without: bool = False) -> tuple[Module, Path | None]:
    """The module of a graph file, and the path of its weights file if it has one.

    `without` reads a graph whose weights file is not there as `of_rows` does; then its path is
    None. Raises InputError GT0343 if that file is in another folder.
    """
    if path.is_dir():
        raise InputError("GT0338", "a graph is wanted, and this is a directory", where=str(path),
                         hint=_within(path))
    while True:
        data = files.read_bytes(path)
        try:
            return _pair(data, path, check, without)
        except InputError:
            if files.read_bytes(path) == data:
                raise  # else a writer has replaced both since: read them again


def _within(folder: Path) -> str:
    """What to give instead of a directory: a graph in it, or in its stages if it is a build."""
    paths = sorted(str(p) for d in (folder, folder / "stages") for p in d.glob("*.graph.json"))
    if paths:
        return f"it contains {listed(paths)}"
    if (folder / "build.json").exists():
        return "it is a build, made without its graphs: `graphtool build --keep` writes them too"
    return "it contains no graph"


def _pair(data: bytes, path: Path, check: bool, without: bool) -> tuple[Module, Path | None]:
    where = str(path)
    file, place = _rows(data, where, path.suffix == SUFFIX)
    check_side_name(file.weights, "beside the graph", where)
    side = path.with_name(file.weights) if file.weights else None
    if without and side is not None and not side.exists():
        return of_rows(file, where), None
    module = module_of(file, weights.load(side) if side else {}, where, place)
    return _checked(module, where) if check else module, side


def loads(data: bytes | str, where: str = "-", folder: Path | None = None) -> Module:
    """The module of a text, JSON or a listing, after checks.

    Its constants are in the text itself or, if a folder is given, in the weights file of that
    folder which the text names.
    """
    text = is_listing(data)
    file, place = _rows(data, where, text)
    if not text:  # `show` prints the way from the current folder, for people and pipes
        check_side_name(file.weights, "beside the graph", where)
    store = _store(folder / file.weights) if folder is not None and file.weights else {}
    return _checked(module_of(file, store, where, place), where)


def file_of(data: bytes, where: str) -> GraphFile:
    """The rows of a graph file or a listing, not yet checked for meaning."""
    return _rows(data, where, is_listing(data))[0]


def of_rows(file: GraphFile, where: str) -> Module:
    """The module of rows whose weights file is not at hand: of its weights only the digests, types
    and shapes are known. Types that the rows leave open are inferred.

    Raises InputError GT0344 to GT0356, GT04xx; GT0320 where the data of a weight are wanted.
    """
    rows: list[ParamRow | InputRow] = [*file.params, *file.inputs, *file.kept]
    for region in file.regions:
        rows += region.params
    store = {r.data: weights.missing(r.data, *_declared(r.type)) for r in rows
             if r.data and r.data.startswith("sha256:")}
    return _checked(module_of(file, store, where, lambda region, label: label), where)


def _declared(text: str) -> tuple[DType, tuple[int, ...]]:
    """The element type and the sizes of a constant's type; none for what cannot be one."""
    name, _, sizes = text.rstrip("]").partition("[")
    parts = sizes.split(",") if sizes else []
    return dtype(name), tuple(int(d) if d.strip().isdecimal() else 0 for d in parts)


def _store(side: Path) -> Mapping[str, Weight]:
    """The weights of a graph that came without its path."""
    if not side.is_file():
        raise InputError("GT0320", f"there is no weights file {side.name} in "
                                   f"{'the current folder' if side.parent == Path() else 'it'}",
                         where=str(side),
                         hint="name the folder: DIR/- instead of -; or pipe a graph with its "
                              "weights in it, as `graphtool opt FILE -o -` prints it")
    return weights.load(side)


def is_listing(data: bytes | str) -> bool:
    """Whether the text is a listing: JSON begins with a brace."""
    return data.lstrip()[:1] not in (b"{", "{")


def _rows(data: bytes | str, where: str, text: bool) -> tuple[GraphFile, Place | None]:
    if not text:
        return parse(data, where), None
    try:
        source = data.decode() if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise InputError("GT0357", f"a listing is UTF-8: {error}", where=where) from None
    raw, place = parse_listing(source, where)
    return rows(raw, where), place


def _checked(module: Module, where: str) -> Module:
    try:
        verify_module(module)
    except InternalError as error:  # so says the verifier of what a pass made; this came in
        raise InputError("GT0355", error.message,
                         where=(where, *error.where.split("\n"))) from error
    except InputError as error:
        error.within(where)
        raise
    return module
