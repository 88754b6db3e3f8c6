"""Completion scripts: run by the shells themselves, and made from the parser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from graphtool.cli.app import VERBS, app
from graphtool.cli.completion import SHELLS, verbs
from graphtool.passes import PASSES
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


GROUPS = ["tokenizer", "cache", "git"]  # of verbs
CASES = [
    (("",), [name for name, _ in VERBS] + GROUPS), (("sh",), ["show"]),
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
    asks = ("graphtool sh", "graphtool show --st", "graphtool build --march f")
    found = subprocess.run(["fish", "--no-config", "-c", f"source {path}; " + "; ".join(
        f"complete -C '{ask}'" for ask in asks)], capture_output=True, text=True, check=True)
    assert [line.split("\t")[0] for line in found.stdout.splitlines()] == ["show", "--stats", "fat"]


@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh")
def test_zsh(gt: Cli, tmp_path: Path) -> None:
    """The function is defined and bound, and the parser of zsh takes all of its specs."""
    path = script("zsh", gt, tmp_path)
    found = subprocess.run(["zsh", "-fc", f"autoload -U compinit; compinit -u -D; source {path}; "
                            "print $_comps[graphtool]; functions -x2 _graphtool >/dev/null"],
                           capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("_graphtool\n", "")


def test_it_is_made_from_the_parser() -> None:
    found = {v.name: v for v in verbs(get_command(app))}
    assert list(found) == [name for name, _ in VERBS] + GROUPS
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
