"""The report of a build as one page: markdown, and HTML that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphtool.escaping import line, xml
from graphtool.escaping import markdown as cell
from graphtool.report.bench import Timing
from graphtool.report.summary import Accuracy, FileRow, Inexact, Interface, Licence, Summary
from graphtool.report.table import Column, Table, human, optional, table
from graphtool.report.table import html as html_table
from graphtool.report.table import markdown as page_table

BECAME = {
    "kernels": "computed by kernels", "view": "an address in the result of another node",
    "constant": "computed at compile time", "merged": "merged into what reads it",
    "removed": "removed by a rule", "unread": "read by no output", "lost": "of unknown fate"}
EMPTY = Table((), ())


@dataclass(frozen=True)
class Section:
    """A heading, lines of text, a table, and commands to run."""

    title: str
    lines: Sequence[str] = ()
    table: Table = EMPTY
    commands: Sequence[str] = ()


FUNCTIONS: tuple[Column[Interface], ...] = (
    Column("function", "name", code=True), Column("inputs", lambda f: "; ".join(f.inputs)),
    Column("outputs", lambda f: "; ".join(f.outputs)),
    Column("open dims", lambda f: "; ".join(f.dims) or "none"), Column("kernels"),
    Column("FLOPs", lambda f: human(f.flops)))
TIMES: tuple[Column[Timing], ...] = (
    Column("median", lambda t: f"{t.median_ms:.3f} ms"),
    Column("least", lambda t: f"{t.min_ms:.3f} ms"),
    Column("most", lambda t: f"{t.max_ms:.3f} ms"),
    Column("spread", lambda t: f"{100 * t.spread:.1f} %"), Column("runs"))
ACCURACY: tuple[Column[Accuracy], ...] = (
    Column("output", code=True), Column("measure"),
    Column("value", lambda a: f"{100 * a.value:.2f} %" if a.measure in (
        "equal", "right class") else f"{a.value:.3g}"), Column("examples"),
    Column("against", "by"))
INEXACT: tuple[Column[Inexact], ...] = (
    Column("kind"), Column("what"), Column("error", lambda i: optional(".2g", i.error)),
    Column("where", lambda i: _some(i.where)))
LICENCES: tuple[Column[Licence], ...] = (
    Column("part"), Column("licence"), Column("how"),
    Column("files", lambda x: _some(x.files)))
FILES: tuple[Column[FileRow], ...] = (
    Column("file", "name", code=True), Column("bytes"), Column("sha256", code=True),
    Column("as built", lambda f: "yes" if f.ok else "NO"))


def sections(s: Summary) -> Iterator[Section]:
    """The page's sections, in the order in which a reviewer asks."""
    facts = [("kind", s.kind), ("target", s.target or "this machine"), ("compiler", s.compiler),
             ("flags", " ".join(s.flags)), ("precision", s.precision), ("build", s.key)]
    facts += [("model", s.model)] if s.model else []
    facts += [("sha256 of the model", s.model_sha256)] if s.model_sha256 else []
    facts += [(f"version of {name}", v) for name, v in s.versions.items()]
    yield Section("What it is", s.notes, Table(("", ""), facts))
    yield Section("Functions", (), table(FUNCTIONS, s.functions))
    z = s.sizes
    rows = [("machine code", human(z.code, "B") if z.code is not None else "not known"),
            ("library file", human(z.library, "B")), ("C and headers", human(z.source, "B")),
            (f"weights, in {z.weights_in}", human(z.weights, "B"))]
    for f in s.functions:
        live = f", of which {human(f.live, 'B')} live at once" if f.live is not None else ""
        rows.append((f"arena of {f.name}", human(f.arena, "B") + live))
    yield Section("Sizes", (), Table(("part", "bytes"), rows))
    if (t := s.times) is not None:
        dims = ", ".join(f"{k} = {v}" for k, v in t.dims.items())
        yield Section("Times", (f"{t.machine}, at most {t.threads} "
                                f"thread{'s' if t.threads != 1 else ''}"
                                + (f", {dims}" if dims else ""),), table(TIMES, [t.timing]))
    if s.accuracy:
        yield Section("Accuracy", (), table(ACCURACY, s.accuracy))
    yield Section("Approximate, assumed, unchecked", (), table(INEXACT, s.inexact))
    if (x := s.traced) is not None:
        rows = [("nodes of the model", str(x.nodes))]
        rows += [(BECAME[kind], str(count)) for kind, count in x.became.items()]
        rows += [("kernels", str(x.kernels)),
                 ("kernels without a node", _some(x.orphans) or "none")]
        yield Section("Trace", ("trace.csv has a line for each node of the model and each kernel "
                                "that it became a part of, with the lines of its C.",),
                      Table(("", ""), rows))
    if s.requires:
        yield Section("Required of every run", ("A run of other sizes fails with an error.",),
                      table((Column[str]("rule", str, code=True),), s.requires))
    yield Section("Licences", (), table(LICENCES, s.licences))
    yield Section("Files", (), table(FILES, s.files))
    yield Section("Make it again", commands=s.reproduce)


def _some(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def markdown(s: Summary) -> str:
    """The page as markdown of GitHub's kind."""
    out = [f"# {cell(s.name)}", ""]
    for x in sections(s):
        out += [f"## {x.title}", ""]
        out += [line for text in x.lines for line in (cell(text), "")]
        if x.table.rows:
            out += [*page_table(x.table), ""]
        if x.commands:
            out += ["```", *map(line, x.commands), "```", ""]
    return "\n".join(out)


_STYLE = """\
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; }
td:first-child { min-width: 9rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { background: var(--soft); padding: .75rem; overflow-x: auto; }
"""


def html(s: Summary) -> str:
    """The page as HTML, with its style in it and without scripts."""
    out = ["<!doctype html>", '<html lang="en">', '<meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           f"<title>{xml(s.name)}</title>", f"<style>\n{_STYLE}</style>",
           "<main>", f"<h1>{xml(s.name)}</h1>"]
    for x in sections(s):
        out.append(f"<h2>{xml(x.title)}</h2>")
        out += [f"<p>{xml(text)}</p>" for text in x.lines]
        if x.table.rows:
            out.append(f'<div class="wide">{chr(10).join(html_table(x.table))}</div>')
        if x.commands:
            out.append(f"<pre>{chr(10).join(map(xml, x.commands))}</pre>")
    return "\n".join([*out, "</main>", "</html>", ""])
