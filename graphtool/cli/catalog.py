"""What graphtool has and is: ops, passes, schemas, support, this machine, error codes, help,
versions.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from graphtool.cli import options, saving, terminal
from graphtool.errors import UsageError, near, one_of

PACKAGES = ("numpy", "onnx", "onnxruntime", "torch", "typer", "rich", "msgspec",
            "safetensors", "ml_dtypes")
Words = Annotated[list[str] | None, typer.Argument(
    metavar="VERB", help="The verb, such as build, or git check. Without one, all are listed.")]


def ops(name: Annotated[str | None, typer.Argument(
        help="Print one op with its attributes.")] = None,
        json: options.Json = False) -> None:
    """List all ops, or describe one."""
    from graphtool.report.catalog import OPS_COLUMNS, op_lines, ops_report
    from graphtool.report.table import table
    report = ops_report(name)
    if json:
        terminal.report(report, True, ())
    elif name is not None:
        terminal.lines(op_lines(report.ops[0]))
    else:
        terminal.table(table(OPS_COLUMNS, report.ops))


def passes(json: options.Json = False) -> None:
    """List the passes in pipeline order, each with the reason for its place."""
    from graphtool.report.catalog import PASSES_COLUMNS, passes_report
    from graphtool.report.table import table
    report = passes_report()
    if json:
        terminal.report(report, True, ())
    else:
        terminal.table(table(PASSES_COLUMNS, report.passes))


def schema(name: Annotated[str | None, typer.Argument(
        help="What to describe: graph (the default), program, build, or a report such as "
        "stats.")] = None, out: options.Out = None) -> None:
    """Print the JSON Schema of an artifact or a report.

    With --plugin, that of graphs knows the plug-in's ops and their attributes."""
    import graphtool.kernels  # noqa: F401  (fills the registry of ops)
    from graphtool.verify.schemas import schema_of
    saving.write(out, schema_of(name or "graph"))


def support(model: Annotated[str, typer.Argument(metavar="MODEL", help="An .onnx or .mlir file.")],
            format: options.Format = None, json: options.Json = False) -> int:
    """List everything in a model that is not supported, with counts and places.

    The exit code is 4 if there is anything."""
    from pathlib import Path

    from graphtool.importers import IMPORTERS, Importer, what
    from graphtool.report.support import Support, of_items, support_lines, support_outcome
    form, kind = terminal.chosen_format(format, json), what(model)
    if not isinstance(kind, Importer) or kind.support is None:
        known = " and ".join(s for r in IMPORTERS.values() if r.support for s in r.suffixes)
        raise UsageError("GT3018", f"support reads {known} files, this is {kind.title}",
                         where=model)
    rows: Support = of_items(kind.support(Path(model)))
    terminal.tell(rows, form, lambda: support_lines(rows), lambda: support_outcome(rows, model))
    return 0 if rows.supported else 4


def lint(model: Annotated[str | None, typer.Argument(
             metavar="MODEL", help="An .onnx file.")] = None,
         profile: Annotated[str, typer.Option(
             metavar="NAME|FILE", help="sonnx, or a JSON file with rules of your own.")] = "sonnx",
         format: options.Format = None, json: options.Json = False) -> int:
    """Check an ONNX file against a profile: requirements beyond being valid.

    sonnx is the safety-related profile of the ONNX working group. Without MODEL, the profile is
    printed. The exit code is 1 if a rule of level error is broken."""
    from pathlib import Path

    from graphtool.importers import Importer, what
    from graphtool.importers.onnx.lint.profile import load, text
    from graphtool.report.lint import Lint, lint_lines, lint_outcome, lint_report
    form, rules = terminal.chosen_format(format, json), load(profile)
    if model is None:
        terminal.lines(text(rules).splitlines())
        return 0
    kind = what(model)
    if not isinstance(kind, Importer) or kind.lint is None:
        raise UsageError("GT3018", f"lint reads .onnx files, this is {kind.title}", where=model)
    report: Lint = lint_report(rules, kind.lint(Path(model), rules))
    terminal.tell(report, form, lambda: lint_lines(report), lambda: lint_outcome(report, model))
    return 0 if report.ok else 1


def doctor(format: options.Format = None, json: options.Json = False) -> int:
    """Check the C compiler, OpenMP, the CPU and the versions of packages.

    The exit code is 1 if C cannot be compiled here."""
    from graphtool.report.doctor import doctor as examine
    from graphtool.report.doctor import doctor_lines, doctor_outcome
    form = terminal.chosen_format(format, json)
    report = examine(versions())
    terminal.tell(report, form, lambda: doctor_lines(report), lambda: doctor_outcome(report))
    return 0 if report.ok else 1


def explain(code: Annotated[str | None, typer.Argument(
        metavar="CODE", help="The code of an error, such as GT0412.")] = None) -> None:
    """Explain an error code. Without a code, list all of them."""
    from graphtool.explain import CODES
    if code is None:
        from graphtool.report.table import Table
        terminal.table(Table(("code", "means"), [(k, v.title) for k, v in sorted(CODES.items())]))
        return
    key = code.upper().removeprefix("ERROR[").removesuffix("]")
    key = key if key in CODES or key.startswith("GT") else f"GT{key}"
    if key not in CODES:
        raise UsageError("GT3019", f"there is no error code {code!r}",
                         hint=near(key, CODES, "`graphtool explain` lists them"))
    terminal.lines([f"{key}: {CODES[key].title}", "", CODES[key].text])


def completion(context: typer.Context, shell: Annotated[str, typer.Argument(
        metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that completes verbs, options and known words in a shell.

    In bash: `source <(graphtool completion bash)`."""
    from graphtool.cli.completion import SHELLS, verbs
    if shell not in SHELLS:
        raise UsageError("GT3028", f"no completion for {shell!r}", hint=one_of(shell, SHELLS))
    terminal.lines(SHELLS[shell](verbs(context.find_root().command)))


def help_(context: typer.Context, verb: Words = None) -> None:
    """Print the help of a verb, or the list of all verbs."""
    command: Any = context.find_root().command
    path = context.find_root()
    for word in verb or ():
        known = getattr(command, "commands", {})
        if word not in known:
            raise UsageError("GT3001", f"no such verb: {' '.join(verb or ())}",
                             hint=near(word, known, "`graphtool help` lists them"))
        command = known[word]
        path = type(context)(command, parent=path, info_name=word)
    terminal.document(command.get_help(path) + "\n")


def version() -> None:
    """Print the version."""
    terminal.lines([own_version()])


# ---- versions ------------------------------------------------------------------------------------

def versions() -> dict[str, str]:
    """Python's, the system's and the packages' versions, read without importing them."""
    import platform
    from importlib import metadata

    from graphtool.io.release import release
    result = {"python": platform.python_version(), "system": platform.platform(),
              "graphtool": release().version}
    for name in PACKAGES:
        try:
            result[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return result


def own_version() -> str:
    """The line that `graphtool --version` prints."""
    from graphtool.io.release import release
    return f"graphtool {release().version}"
