"""Completion scripts: run by the shells themselves, and made from the parser."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from typer.main import get_command

from graphtool.cli.app import app
from graphtool.cli.completion import SHELLS, verbs
from graphtool.passes import PASSES
from graphtool.verbs import families
from tests.cli.conftest import Cli

ASK = '''source "$1"; shift
COMP_WORDS=(graphtool "$@"); COMP_CWORD=$#
_graphtool
printf '%s\\n' "${COMPREPLY[@]}"
'''


def script(shell: str, gt: Cli, folder: Path) -> Path:
    path = folder / f"graphtool.{shell}"
    path.write_text(gt("completion", shell).out)
    return path


def asked(path: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    found = subprocess.run(["bash", "--norc", "-uc", ASK, "bash", str(path), *words],
                           capture_output=True, text=True, check=True, timeout=30)
    assert found.stderr == ""
    return found.stdout.split()


NAMES = list(families())
CASES = [
    (("",), NAMES), (("sh",), ["show"]),
    (("show", "--st"), ["--stats"]), (("show", "x.json", "--wh"), ["--where", "--why",
                                                                   "--why-not-fused"]),
    (("show", "--category", "me"), ["memory"]),
    (("import", "--capture", ""), ["export", "fx", "jax"]),
    (("show", "--as", "l"), ["listing", "loops"]),
    (("opt", "--passes", "cse,fo"), ["cse,fold"]),
    (("opt", "m.json", "--passes", "f"), ["fold", "freeze", "fuse"]),
    (("build", "--march", "f"), ["fat"]), (("lower", "--march", "f"), []),
    (("grad", "--optimizer", "adam"), ["adam", "adamw"]), (("ops", "soft"), None),
    (("cache", "pr"), ["prune"]), (("git", "unin"), ["uninstall"]),
    (("explain", "GT3028"), ["GT3028"]),
    (("--plugin", "a.py", "sho"), ["show"]), (("--v",), ["--version"]),
    (("run", ""), []), (("build", "-o", ""), []), (("--plugin", ""), []),  # bash offers files
]


@pytest.mark.parametrize(("words", "expected"), CASES, ids=[" ".join(w) for w, _ in CASES])
def test_bash(words: tuple[str, ...], expected: list[str] | None, gt: Cli, tmp_path: Path) -> None:
    found = asked(script("bash", gt, tmp_path), *words)
    assert "softmax" in found if expected is None else found == expected


def test_bash_completes_by_files_where_it_knows_no_words(gt: Cli, tmp_path: Path) -> None:
    assert gt("completion", "bash").out.endswith("complete -o default -F _graphtool graphtool\n")


@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish")
def test_fish(gt: Cli, tmp_path: Path) -> None:
    path = script("fish", gt, tmp_path)
    asks = {"graphtool sh": "show", "graphtool show --st": "--stats",
            "graphtool build --march f": "fat", "graphtool opt --passes dc": "dce",
            "graphtool opt --passes fold,dc": "fold,dce",
            "graphtool opt m.json --passes=fold,cse,un": "--passes=fold,cse,unroll"}
    found = subprocess.run(["fish", "--no-config", "-c", f"source {path}; " + "; ".join(
        f"complete -C '{ask}'" for ask in asks)], capture_output=True, text=True, check=True)
    assert [line.split("\t")[0] for line in found.stdout.splitlines()] == list(asks.values())


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh(gt: Cli, tmp_path: Path) -> None:
    """The function is defined and bound, and the parser of zsh takes all of its specs."""
    path = script("zsh", gt, tmp_path)
    found = subprocess.run(["zsh", "-fc", f"autoload -U compinit; compinit -u -D; source {path}; "
                            "print $_comps[graphtool]; functions -x2 _graphtool >/dev/null"],
                           capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("_graphtool\n", "")


STARTS = {
    "bash": (["--norc", "--noprofile"], "bind -x '\"\\C-o\":printf %s \"$READLINE_LINE\" > {out}'"),
    "zsh": (["-f"], "autoload -U compinit; compinit -u -D; "
            "show() {{ print -rn -- $BUFFER > {out} }}; zle -N show; bindkey '^O' show"),
}


def typed(shell: str, script: Path, line: str) -> str:
    """What an interactive shell makes of the line and a tab."""
    options, setup = STARTS[shell]
    folder = script.parent
    ready, out = folder / "ready", folder / "out"
    terminal, end = pty.openpty()
    child = subprocess.Popen([shell, *options, "-i"], stdin=end, stdout=end, stderr=end,
                             start_new_session=True, env={**os.environ, "TERM": "dumb"})
    os.close(end)
    try:
        os.write(terminal, f"{setup.format(out=out)}; source {script}; : > {ready}\n".encode())
        _until(ready, terminal)
        os.write(terminal, f"{line}\t\x0f".encode())
        _until(out, terminal)
        return out.read_text()
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


def _until(path: Path, terminal: int) -> None:
    """Wait until the shell has written the file; what it prints is read and dropped."""
    end = time.monotonic() + 30
    while time.monotonic() < end and not (path.exists() and (path.stat().st_size or (
            path.name == "ready"))):
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 1 << 16)
    assert path.exists(), "the shell did not answer"


@pytest.mark.parametrize("shell", STARTS)
@pytest.mark.parametrize(("line", "whole"), [
    ("graphtool opt --passes dc", "dce"), ("graphtool opt --passes fold,dc", "dce"),
    ("graphtool opt m.json --passes fold,cse,un", "unroll"),
    ("graphtool opt --passes=fold,dc", "dce"), ("graphtool build --march=fa", "fat")])
def test_typed(shell: str, line: str, whole: str, gt: Cli, tmp_path: Path) -> None:
    """Also of a list that is separated by commas the last word is completed."""
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    before = line[:max(map(line.rfind, " =,")) + 1]
    found = typed(shell, script(shell, gt, tmp_path), line)
    assert found.rstrip(" ,") == before + whole  # and what the shell puts before the next word


def test_it_is_made_from_the_parser() -> None:
    found = {v.name: v for v in verbs(get_command(app))}
    assert list(found) == NAMES
    options = {n: o for o in found["opt"].options for n in o.names}
    assert options["--passes"].words == tuple(dict.fromkeys(p.name for p in PASSES))
    assert options["--stats"].value is False and options["--seed"].value is True
    assert {"--check", "--no-check"} <= {n for o in found["import"].options for n in o.names}


@pytest.mark.parametrize("shell", SHELLS)
def test_quotes_in_help_are_safe(shell: str) -> None:
    """Every line stands alone: an even number of quotes that are not escaped."""
    for line in SHELLS[shell](verbs(get_command(app))):
        assert line.replace("\\'", "").count("'") % 2 == 0, line


def test_an_unknown_shell(gt: Cli) -> None:
    result = gt("completion", "tcsh")
    assert result.code == 2 and "GT3028" in result.err and "bash, zsh, fish" in result.err
