"""The listing → the rows of a graph file, as JSON has them; docs/listing.md is the grammar.

Only the form is checked here. `decode` checks the meaning of the rows, as for a JSON file.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from graphtool.assume import MEANING
from graphtool.errors import InputError
from graphtool.io import files
from graphtool.io.versions import GRAPH
from graphtool.ir import listing_terms as terms
from graphtool.ir.listing_terms import Scanner
from graphtool.symbolic import Symbol, text
from graphtool.symbolic.equations import equal_or_one
from graphtool.symbolic.parse import STRING, unquoted

_STATEMENT = re.compile(r"([a-z]+)(?=[ \t]+[^\s=:,]|[ \t]*(?:\n|#|$))")
_BOUNDS = re.compile(r"(-?\d{1,30})?\.\.(-?\d{1,30})?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_REGION = re.compile(r"([A-Za-z_]\w*)[ \t]*:[ \t]*(?:#[^\n]*)?(?=\n|$)")
_SIZE = rf'((?:[^"=#\n]|{STRING})+)'
_REQUIRED = re.compile(f"{_SIZE}=={_SIZE}")
_OR_ONE = re.compile(rf'({STRING}|[^\s"]+) == ({STRING}|[^\s"]+) or \1 == 1 or \2 == 1')
_STEP = re.compile(rf'({STRING}|[^\s"%()*/+-]+)\s*%\s*(\d{{1,18}})\s*==\s*(\d{{1,18}})')
_REST = re.compile(r"[^\n]*")

_TABLES = {"input": "inputs", "kept": "kept"}  # the tables of values; of others it is params

Row = terms.Row
Places = dict[tuple[str, str], int]


def parse(source: str, where: str) -> tuple[Row, Callable[[str, str], str]]:
    """The graph file that a listing describes, and a function that finds a row by region and label.

    Raises InputError GT0357 where the text does not follow the grammar.
    """
    parser = _Parser(Scanner(source, where))
    raw = parser.module()

    def place(region: str, label: str) -> str:
        at = parser.places.get((region, label))
        return "" if at is None else parser.scan.place(at)
    return raw, place


class _Parser:
    def __init__(self, scan: Scanner) -> None:
        self.scan = scan
        self.places: Places = {}
        self.regions: list[Row] = []
        self.choices: list[Row] = []

    def module(self) -> Row:
        raw: Row = {
            **GRAPH.head, "meta": {}, "weights": "", "symbols": {}, "inputs": [], "params": [],
            "nodes": [], "outputs": None, "regions": self.regions, "groups": [],
            "locations": [], "history": [], "choices": self.choices, "requires": [], "kept": [],
            "assumes": [], "modules": []}
        rules: dict[str, Callable[[Row], None]] = {
            "version": self.version, "weights": self.weights, "dim": self.dim, "size": self.size,
            "require": self.require,
            "group": self.group, "location": self.location, "history": self.history,
            "assumes": self.assumes, "module": self.owner,
            "choice": self.choice, "meta": self.meta, "return": self.returned}
        while self.more():
            self.statement(raw, "", rules)
        if raw["outputs"] is None:
            raise self.scan.fault("a graph ends with `return` and the names of its outputs")
        return raw

    def more(self) -> bool:
        """Whether another line follows."""
        self.scan.skip(lines=True)
        return self.scan.at < len(self.scan.source)

    def statement(self, into: Row, region: str, rules: dict[str, Callable[[Row], None]]) -> None:
        """One line, with the lines that are indented below it."""
        scan = self.scan
        match = _STATEMENT.match(scan.source, scan.at)
        word = match[1] if match else ""
        if word in ("input", "param", "constant") or (word == "kept" and not region):
            scan.at += len(word)
            self.value(into, region, word)
        elif word in rules:
            if word == "return":
                self.places[region, "outputs"] = scan.at
            scan.at += len(word)
            rules[word](into)
        else:
            self.node(into, region)
            return
        scan.line_ends(f"`{word}`")

    # ---- values --------------------------------------------------------------------------------

    def value(self, into: Row, region: str, kind: str) -> None:
        """`param NAME: TYPE = DATA at PLACE`; for an input, the data are optional."""
        scan = self.scan
        scan.skip()
        at = scan.at
        row: Row = {"id": scan.name(f"the name of the {kind}")}
        label = kind if kind in _TABLES else "param"
        self.places[region, f"{label} {row['id']}"] = at
        scan.need(":", "the name")
        row["type"] = terms.tensor_type(self.scan)
        if scan.take("="):
            row |= terms.data(self.scan, row["type"])
        elif kind != "input":
            raise scan.fault(f"expected = and the data of the {kind}",
                             hint="[1.0, 2.0], one number for all elements, or sha256:…")
        row |= terms.origin(self.scan)
        if kind == "param":
            row["trainable"] = True
        into[_TABLES.get(kind, "params")].append(row)

    # ---- nodes ---------------------------------------------------------------------------------

    def node(self, into: Row, region: str) -> None:
        """`a: TYPE, b = op(x, 2.0, axis=1)  at PLACE`, and its regions below."""
        scan = self.scan
        ids, types = [], []
        scan.skip()
        at = scan.at
        while True:
            ids.append(scan.name("a statement, or the name of a value"))
            types.append(terms.tensor_type(self.scan) if scan.take(":") else "")
            if not scan.take(","):
                break
        self.places[region, f"node {ids[0]}"] = at
        scan.need("=", "the names of a node's values")
        op = scan.match(_WORD)
        if op is None:
            raise scan.fault("expected the name of an op", hint="`graphtool ops` lists them")
        scan.need("(", "the name of the op")
        inputs, attrs = terms.arguments(self.scan)
        row: Row = {"id": ids, "op": op[0], "in": inputs, "type": types, "attrs": attrs}
        row |= terms.origin(self.scan)
        scan.line_ends("a node")
        self.blocks(attrs, ids[0])
        into["nodes"].append(row)

    def blocks(self, attrs: Row, node: str) -> None:
        """Regions: `body:`, and below it lines up to the region's `return`."""
        scan = self.scan
        while True:
            before = scan.at
            scan.skip(lines=True)
            match = scan.match(_REGION)
            if match is None:
                scan.at = before
                return
            if match[1] in attrs:
                raise scan.fault(f"the attribute {match[1]!r} is given twice", match.start())
            name = f"{node}.{match[1]}#{len(self.regions)}"
            attrs[match[1]] = name
            scan.open()
            self.region(name)
            scan.close()

    def region(self, name: str) -> None:
        row: Row = {"id": name, "inputs": [], "params": [], "nodes": [], "outputs": None}
        self.regions.append(row)
        while row["outputs"] is None:
            if not self.more():
                raise self.scan.fault("a region ends with `return`")
            self.statement(row, name, {"return": self.yielded, "choice": self.choice})

    # ---- the module ----------------------------------------------------------------------------

    def yielded(self, into: Row) -> None:
        into["outputs"] = terms.names(self.scan)

    def returned(self, into: Row) -> None:
        """`return y, w2 as w donates w`."""
        scan = self.scan
        if into["outputs"] is not None:
            raise scan.fault("a second `return`")
        outputs: list[terms.Row] = []
        into["outputs"] = outputs
        scan.skip()
        while scan.at < len(scan.source) and scan.source[scan.at] != "\n":
            value = scan.name("the name of an output's value")
            row = {"name": scan.name("the output's name") if scan.word("as") else value,
                   "value": value}
            if scan.word("donates"):
                row["donates"] = scan.name("an input's name")
            outputs.append(row)
            if not scan.take(","):
                break

    def version(self, into: Row) -> None:
        """`version 1 since 1.1.0`: the version of the file's format, and the release that first
        wrote it."""
        literal = self.scan.literal()
        if literal is None:
            raise self.scan.fault("expected the number of a version")
        into["version"] = literal[0]
        if self.scan.word("since"):
            into["since"] = terms.key(self.scan)

    def weights(self, into: Row) -> None:
        into["weights"] = self.scan.name("the name of the weights file")

    def dim(self, into: Row) -> None:
        """`dim batch: 1..64`; without a number there is no bound."""
        scan = self.scan
        start = scan.at
        name = scan.name("the name of the dim")
        scan.need(":", "the name")
        match = scan.match(_BOUNDS)
        if match is None:
            raise scan.fault("expected bounds", hint="1..64, or 1.. without an upper one")
        if name in into["symbols"]:
            raise scan.fault(f"the dim {name} is given twice", start)
        low, high = (None if x is None else int(x) for x in match.groups())
        into["symbols"][name] = {"min": low, "max": high}

    def size(self, into: Row) -> None:
        """`size n: 0..`: a dim that a node defines."""
        known = set(into["symbols"])
        self.dim(into)
        for name in into["symbols"].keys() - known:
            into["symbols"][name]["defined"] = True

    def require(self, into: Row) -> None:
        """`require H % 32 == 0`, the step of a dim, or `require M == 2*N`, two equal sizes, or
        `require M == N or M == 1 or N == 1`."""
        scan = self.scan
        scan.skip()
        start = scan.at
        if (either := scan.match(_OR_ONE)) is not None:
            a, b = (Symbol(unquoted(n), 1) for n in either.group(1, 2))
            into["requires"].append([text(equal_or_one(a, b)[0]), 0])
            return
        match = scan.match(_REQUIRED)
        if match is None:
            raise scan.fault("expected two sizes that must be equal", hint="M == N, H % 32 == 0")
        step = _STEP.fullmatch(match[0].strip())
        if step is None:
            into["requires"].append([int(d) if d.isdecimal() else d
                                     for d in (match[1].strip(), match[2].strip())])
            return
        name = Scanner(step[1], scan.where).name("a dim") if step[1][0] == '"' else step[1]
        if name not in into["symbols"]:
            raise scan.fault(f"the dim {name} is not declared", start)
        into["symbols"][name] |= {"step": int(step[2]), "offset": int(step[3])}

    def group(self, into: Row) -> None:
        """`group ROOT (nest): a, b`."""
        scan = self.scan
        scan.skip()
        at = scan.at
        root = scan.name("the group's root")
        self.places["", f"group {root}"] = at
        scan.need("(", "the group's root")
        kind = scan.name("nest or template")
        scan.need(")", "the kind of group")
        scan.need(":", "the kind of group")
        into["groups"].append({"id": f"fuse.{root}", "root": root,
                               "members": terms.names(scan), "kind": kind})

    def location(self, into: Row) -> None:
        """`location KEY = "mlp.py:9 MLP.forward", "x = self.fc1(x)"`."""
        scan = self.scan
        row = {"id": terms.key(self.scan)}
        scan.need("=", "the key")
        row["at"] = scan.name("a string")
        if scan.take(","):
            row["text"] = scan.name("a string")
        into["locations"].append(row)

    def owner(self, into: Row) -> None:
        """`module layer1.0.conv1 = Conv2d`: the author's class of a module."""
        row = {"id": terms.key(self.scan)}
        self.scan.need("=", "the path of the module")
        into["modules"].append(row | {"class": self.scan.name("the name of a class")})

    def history(self, into: Row) -> None:
        """`history VALUE: "simplify.add_zero"`: the rules that made a value."""
        scan = self.scan
        row: Row = {"id": scan.name("a value")}
        scan.need(":", "the value")
        row["rules"] = terms.names(self.scan)
        into["history"].append(row)

    def assumes(self, into: Row) -> None:
        """`assumes finite: "recognise.attention", "why", VALUE, VALUE`: what rewrites assumed."""
        scan = self.scan
        start = scan.at
        needs = scan.name("a class of soundness")
        if needs not in MEANING:
            raise scan.fault(f"{needs!r} is no class of soundness: {', '.join(MEANING)}", start)
        scan.need(":", "the class")
        by, *rest = terms.names(scan)
        into["assumes"].append({"needs": needs, "by": by, "why": "".join(rest[:1]),
                                "values": rest[1:]})

    def choice(self, into: Row) -> None:
        """`choice NODE: SITE cost PLAN 1.2, PLAN 1.9`: the alternatives of a node's plan."""
        name = self.scan.name("a node")
        self.scan.need(":", "the node")
        place = f"{into['id']}/" if "id" in into else ""
        self.choices.append({"id": place + name, **terms.choice(self.scan)})

    def meta(self, into: Row) -> None:
        """`meta KEY = JSON`."""
        scan = self.scan
        scan.skip()
        start = scan.at
        key = scan.name("a key")
        scan.need("=", "the key")
        if key in into["meta"]:
            raise scan.fault(f"the key {key!r} is given twice", start)
        scan.skip()
        start = scan.at
        match = scan.match(_REST)
        try:
            into["meta"][key] = files.read_json(match[0] if match else "", scan.where)
        except InputError as error:
            raise scan.fault(error.message, start) from None
