"""Turns each exception into a message on stderr and one of the documented exit codes.

0 fine · 1 differs or fails a check · 2 usage · 3 bad input · 4 unsupported · 5 the C compiler
failed · 70 internal, with a reproducer directory · 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphtool import escaping, plugins
from graphtool.cli import terminal
from graphtool.cli.catalog import versions
from graphtool.cli.plugged import load_plugins
from graphtool.errors import GraphtoolError

COPIED = 16 << 20
"""Bytes up to which a file that a failing command read is copied for a bug report."""


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv`; returns the exit code, prints every fault, raises nothing."""
    with terminal.escaped():
        return _run(argv)


def _run(argv: Sequence[str]) -> int:
    if sys.getfilesystemencoding() == "ascii":
        return _say("error[GT3166]: this Python reads and writes files as ASCII\n"
                    "    help: set PYTHONUTF8=1, or a locale of UTF-8 such as LC_ALL=C.UTF-8", 2)
    try:
        from graphtool.cli.app import app
        result = app(load_plugins(argv), prog_name="graphtool", standalone_mode=False,
                     obj=list(argv))
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except BrokenPipeError:
        _quiet_stdout()
        return 0
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # the parser makes an exit of it
            _quiet_stdout()
            return 0
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except GraphtoolError as error:
        shown = (plugins.blamed(error) if error.exit_code == 70 else None) or error
        _annotate(argv, shown)
        from graphtool.cli.guesses import about_file
        about_file(shown)
        return _say(str(shown) + _reproducer(argv, shown), shown.exit_code)
    except RecursionError as error:
        return _plugged(error) or _internal(argv, error, "nested too deeply")
    except MemoryError as error:  # of numpy, which says for what
        return _say(f"error[GT0333]: out of memory: {error}".rstrip(": "), 3)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _plugged(error) or _internal(argv, error, f"{type(error).__name__}: {error}")
        _quiet_stdout()
        return _say("error[GT0330]: cannot write: the disk is full", 3)
    except Exception as error:
        return _other(argv, error)


def _other(argv: Sequence[str], error: Exception) -> int:
    """Report an error of the parser, or an unforeseen one; returns the exit code."""
    if type(error).__name__ == "Abort":
        return _say("interrupted", 130)
    if hasattr(error, "format_message"):  # the parser's own errors, whichever click it carries
        return _say(usage_text(argv, error), 2)
    if type(error).__name__ == "Exit":
        return int(getattr(error, "exit_code", 0))
    return _plugged(error) or _internal(argv, error, f"{type(error).__name__}: {error}")


def _plugged(error: BaseException) -> int | None:
    """Report a fault in a plug-in and return its exit code; None for any other fault."""
    fault = plugins.blamed(error)
    return _say(str(fault), fault.exit_code) if fault else None


def usage_text(argv: Sequence[str], error: Any) -> str:
    """The parser's error as text, in the form of all other errors."""
    from graphtool.verbs import families
    named = next((f"graphtool {word}" for word in argv if word in families()), "graphtool")
    verb = getattr(getattr(error, "ctx", None), "command_path", named)  # not every error knows it
    message = str(error.format_message()).rstrip(".")
    for kind, words in (("int", "a whole number"), ("float", "a number")):
        message = re.sub(rf"is not a valid {kind}\w*( range)?$", f"is not {words}", message)
    message, hints = _guessed(message, error)
    return "\n  help: ".join((f"error[GT3001]: {escaping.line(message)}", *map(
        escaping.line, hints), f"`{verb} --help` shows what it takes"))


def _guessed(message: str, error: Any) -> tuple[str, list[str]]:
    """The message without a suggestion that is only alike, where a better one is known; and hints.
    """
    from graphtool.cli import guesses
    context = getattr(error, "ctx", None)
    kind, hints = type(error).__name__, list[str]()
    if kind == "MissingParameter" and error.param is not None:
        hints.append(guesses.missing(error.param))
    if kind == "NoSuchOption":
        hints.append(guesses.unknown_option(str(error.option_name)))
    if match := re.match(r"No such command '(.*?)'", message, re.DOTALL):
        hints.append(guesses.unknown_verb(match[1]) if getattr(
            context, "parent", None) is None else "")
    if hints and hints[-1] and kind != "MissingParameter":
        message = re.sub(r"\. Did you mean .*| \(Possible options: .*\)$", "", message)
    hints = [line for hint in hints for line in hint.split("\n") if line]
    inner = getattr(getattr(context, "command", None), "commands", {})
    if inner and getattr(context, "parent", None) is not None and message.startswith(
            ("Missing command", "No such command")):
        hints.append(f"one of {', '.join(inner)}")
    if kind != "NoSuchOption" and (line := guesses.example(context)):
        hints.append(f"as in {line}")
    return message, hints


def _internal(argv: Sequence[str], error: BaseException, message: str) -> int:
    first = message.strip().splitlines()[0] if message.strip() else type(error).__name__
    return _say(f"error[GT7999]: internal error: {first}" + write_reproducer(argv, error), 70)


def _reproducer(argv: Sequence[str], error: GraphtoolError) -> str:
    return write_reproducer(argv, error) if error.exit_code == 70 else ""


def write_reproducer(argv: Sequence[str], error: BaseException) -> str:
    """Write what a bug report needs to a new directory; returns the lines that name it, and say
    what is in it."""
    import json
    import tempfile
    try:
        folder = Path(tempfile.mkdtemp(prefix="graphtool-crash-"))
        (folder / "argv.json").write_bytes((json.dumps(list(argv)) + "\n").encode())
        (folder / "versions.json").write_bytes((json.dumps(versions(), indent=1) + "\n").encode())
        (folder / "traceback.txt").write_bytes(escaping.visible("".join(
            traceback.format_exception(error))).encode())
        builds = _copy_inputs(argv, folder)
        lines = [*_model(error, folder), *(f"{name}/: the build, with its C and an example"
                                           for name in builds)] or [
            "no C: the error came before a graph was read, or after it was done with"]
        (folder / "README.txt").write_bytes(escaping.visible(_readme(argv, error, lines)).encode())
    except OSError as fault:
        return f"\n  help: no reproducer could be written: {fault}"
    return "".join(f"\n  help: {line}" for line in (
        f"please report it with the directory {folder}", *lines))


def _model(error: BaseException, folder: Path) -> list[str]:
    """What could be written of the model; none if the user does not wait for it."""
    try:
        from graphtool.verify.crash import leave
        return leave(error, folder)
    except (Exception, KeyboardInterrupt) as fault:
        return [f"no C: {type(fault).__name__}: {fault}"]


def _readme(argv: Sequence[str], error: BaseException, lines: Sequence[str]) -> str:
    import shlex
    what = str(error).strip().partition("\n")[0]
    return "\n".join((shlex.join(("graphtool", *argv)),
                      f"ended with {type(error).__name__}: {what}", "",
                      "argv.json, versions.json, traceback.txt: the command, what it ran with, "
                      "and where it failed; beside them small files that it read", *lines, ""))


def _copy_inputs(argv: Sequence[str], folder: Path) -> list[str]:
    """Copy the files and builds that the command line names, and the files' weights, as far as
    they are small; returns the names of the builds."""
    import shutil
    words = [word.rpartition("=")[2].removeprefix("@") for word in argv if word]
    named = [Path(code + ".py" if python else word) for word in words
             for code, python, _ in [word.partition(".py:")]]
    builds = []
    for path in named:
        beside = path.parent / f"{path.name.partition('.')[0]}.safetensors"
        for file in dict.fromkeys((path, beside)):
            if file.is_file() and file.stat().st_size <= COPIED and not (
                    folder / file.name).exists():
                shutil.copyfile(file, folder / file.name)
        copy = folder / path.resolve().name
        if (path / "build.json").is_file() and not copy.exists() and sum(
                f.stat().st_size for f in path.iterdir()) <= COPIED:
            shutil.copytree(path, copy)
            builds.append(copy.name)
    return builds


def _annotate(argv: Sequence[str], error: GraphtoolError) -> None:
    """With `--format github`, also print the error as an annotation."""
    if "github" not in argv and "--format=github" not in argv:
        return
    from graphtool.report.findings import annotation
    with contextlib.suppress(OSError):
        terminal.commands([annotation(f"{error.code}: {error.message}", error.where)])
        sys.stdout.flush()


def _say(text: str, code: int) -> int:
    with contextlib.suppress(OSError):
        terminal.note(*text.split("\n"))
        sys.stderr.flush()
    return code


def _quiet_stdout() -> None:
    """Avoid the interpreter's message at exit after the reader of stdout has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
