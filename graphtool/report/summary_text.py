"""The report of a build as one page: markdown, and HTML that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphtool.escaping import line, xml
from graphtool.escaping import markdown as cell
from graphtool.escaping import markdown_code as code
from graphtool.report.sizes import human
from graphtool.report.summary import Summary


@dataclass(frozen=True)
class Section:
    """A heading, lines of text, and a table; `names`: columns whose cells are code."""

    title: str
    lines: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    names: tuple[int, ...] = (0,)
    commands: tuple[str, ...] = ()


def sections(s: Summary) -> Iterator[Section]:
    """The page's sections, in the order in which a reviewer asks."""
    facts = [("kind", s.kind), ("target", s.target or "this machine"), ("compiler", s.compiler),
             ("flags", " ".join(s.flags)), ("precision", s.precision), ("build", s.key)]
    facts += [("model", s.model)] if s.model else []
    facts += [("sha256 of the model", s.model_sha256)] if s.model_sha256 else []
    facts += [(f"version of {name}", v) for name, v in s.versions.items()]
    yield Section("What it is", tuple(s.notes), ("", ""), tuple(facts), ())
    yield Section("Functions", (), ("function", "inputs", "outputs", "open dims", "kernels",
                                    "FLOPs"), tuple(
        (f.name, "; ".join(f.inputs), "; ".join(f.outputs), "; ".join(f.dims) or "none",
         str(f.kernels), human(f.flops)) for f in s.functions))
    z = s.sizes
    rows = [("machine code", human(z.code, "B") if z.code is not None else "not known"),
            ("library file", human(z.library, "B")), ("C and headers", human(z.source, "B")),
            (f"weights, in {z.weights_in}", human(z.weights, "B"))]
    for f in s.functions:
        live = f", of which {human(f.live, 'B')} live at once" if f.live is not None else ""
        rows.append((f"arena of {f.name}", human(f.arena, "B") + live))
    yield Section("Sizes", (), ("part", "bytes"), tuple(rows), ())
    if s.times is not None:
        t, x = s.times, s.times.timing
        dims = ", ".join(f"{k} = {v}" for k, v in t.dims.items())
        yield Section("Times", (f"{t.machine}, at most {t.threads} "
                                f"thread{'s' if t.threads != 1 else ''}"
                                + (f", {dims}" if dims else ""),),
                      ("median", "least", "most", "spread", "runs"),
                      ((f"{x.median_ms:.3f} ms", f"{x.min_ms:.3f} ms", f"{x.max_ms:.3f} ms",
                        f"{100 * x.spread:.1f} %", str(x.runs)),), ())
    if s.accuracy:
        yield Section("Accuracy", (), ("output", "measure", "value", "examples", "against"), tuple(
            (a.output, a.measure, f"{100 * a.value:.2f} %" if a.measure in (
                "equal", "right class") else f"{a.value:.3g}", str(a.examples), a.by)
            for a in s.accuracy))
    yield Section("Approximate, assumed, unchecked", (), ("kind", "what", "error", "where"), tuple(
        (i.kind, i.what, "" if i.error is None else f"{i.error:.2g}", _some(i.where))
        for i in s.inexact), ())
    if s.requires:
        yield Section("Required of every run", ("A run of other sizes fails with an error.",),
                      ("rule",), tuple((r,) for r in s.requires))
    yield Section("Licences", (), ("part", "licence", "how", "files"), tuple(
        (x.part, x.licence, x.how, _some(x.files)) for x in s.licences), ())
    yield Section("Files", (), ("file", "bytes", "sha256", "as built"), tuple(
        (f.name, str(f.bytes), f.sha256, "yes" if f.ok else "NO") for f in s.files), (0, 2))
    yield Section("Make it again", (), commands=tuple(s.reproduce))


def _some(names: list[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def markdown(s: Summary) -> str:
    """The page as markdown of GitHub's kind."""
    out = [f"# {cell(s.name)}", ""]
    for x in sections(s):
        out += [f"## {x.title}", ""]
        out += [line for text in x.lines for line in (cell(text), "")]
        if x.rows:
            out += [f"| {' | '.join(x.head)} |", f"|{'---|' * len(x.head)}"]
            rows = ([code(c) if i in x.names and c else cell(c) for i, c in enumerate(r)]
                    for r in x.rows)
            out += [f"| {' | '.join(r)} |" for r in rows]
            out.append("")
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
        if x.rows:
            out.append('<div class="wide"><table>')
            if any(x.head):
                cells = "".join(f'<th scope="col">{xml(h)}</th>' for h in x.head)
                out.append(f"<thead><tr>{cells}</tr></thead>")
            out.append("<tbody>")
            for r in x.rows:
                cells = "".join(f"<td>{f'<code>{xml(c)}</code>' if i in x.names else xml(c)}"
                                "</td>" for i, c in enumerate(r))
                out.append(f"<tr>{cells}</tr>")
            out.append("</tbody></table></div>")
        if x.commands:
            out.append(f"<pre>{chr(10).join(map(xml, x.commands))}</pre>")
    return "\n".join([*out, "</main>", "</html>", ""])
