"""The page of verbs: usage, arguments and options of each, read off the command line itself."""

from __future__ import annotations

import inspect
from typing import Any

from typer.main import get_command

from docs.generators.markdown import code, prose, table, whole
from graphtool.cli.app import app


def page() -> str:
    """Every verb and every option."""
    program: Any = get_command(app)
    parts = []
    for name, verb in program.commands.items():
        commands = getattr(verb, "commands", None)
        if commands:
            parts += [_verb(f"{name} {n}", v) for n, v in commands.items()]
        else:
            parts.append(_verb(name, verb))
    return whole("Verbs", prose(inspect.cleandoc(program.help)), *parts)


def _verb(name: str, verb: Any) -> str:
    arguments = [_option(p) for p in verb.params if p.param_type_name == "argument"]
    rows = [(code(_option(p)), _default(p), prose(p.help or "")) for p in verb.params
            if p.name != "help"]
    usage = " ".join(("graphtool", name, *arguments, "[OPTIONS]"))
    return "\n".join(filter(None, (
        f"## {name}\n", f"{code(usage)}\n", f"{_help(verb)}\n",
        table(("argument or option", "default", "meaning"), rows) if rows else "")))


def _help(verb: Any) -> str:
    """The help text, and the examples below it."""
    examples = [line.strip() for line in (verb.epilog or "").splitlines()
                if line.strip().startswith("graphtool ")]
    shown = "\n\n```text\n" + "\n".join(f"$ {e}" for e in examples) + "\n```" if examples else ""
    return prose(verb.help or "") + shown


def _option(p: Any) -> str:
    if p.param_type_name == "argument":
        return str(p.metavar or p.name.upper())
    names = ", ".join(p.opts) + (f" / {p.secondary_opts[0]}" if p.secondary_opts else "")
    kind = {"str": "TEXT"}.get(p.type.name, p.type.name.split()[0].upper())
    return names if p.is_flag else f"{names} {p.metavar or kind}"


def _default(p: Any) -> str:
    if p.required:
        return "required"
    if p.default is None or (p.is_flag and not p.secondary_opts) or callable(p.default):
        return ""
    if p.is_flag:
        return code(p.opts[0] if p.default else p.secondary_opts[0])
    return code(str(p.default)) if p.default not in ("", ()) else ""
