"""`--debug-lines` in each kind of build: the same machine code, and text that gdb shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import DIGITS, SAMPLES, Cli


@pytest.mark.part(2)
@pytest.mark.skipif(not shutil.which("objdump"), reason="no objdump")
@pytest.mark.parametrize("form", [[], ["--march", "fat"], ["--static", "--weights", "embed"]])
def test_the_machine_code_is_the_same(form: list[str], gt: Cli, tmp_path: Path) -> None:
    code = []
    for folder, more in (("plain", []), ("debug", ["--debug-lines"])):
        out = tmp_path / folder
        assert gt("build", DIGITS, "-o", out, *form, *more).code == 0
        library = next(out.glob("lib*"))
        text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], check=True,
                              capture_output=True, text=True).stdout
        code.append(text.partition("Disassembly")[2])
        symbols = subprocess.run(["objdump", "-h", library], check=True, capture_output=True,
                                 text=True).stdout
        assert (".debug_line" in symbols) == (folder == "debug")
    assert code[0] == code[1]


def test_other_builds_take_it_too(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mlp = f"{SAMPLES}/mlp.py:model"
    assert gt("import", mlp, "-o", "m.graph.json", "--no-check").code == 0
    assert gt("grad", "m.graph.json", "--loss", "mse", "--optimizer", "sgd", "-o",
              "t.graph.json").code == 0
    assert gt("build", "t.graph.json", "-o", "t", "--name", "m", "--debug-lines").code == 0
    step = Path("t/m_step.c").read_text()
    assert re.search(r'#line \d+ "mlp.py"', step) and Path("t/m_step_nodes.txt").read_text()
    assert gt("build", "a=m.graph.json", "b=m.graph.json", "-o", "e", "--debug-lines").code == 0
    assert '"mlp.py"' in Path("e/model_a.c").read_text()
    assert gt("emit", "m.graph.json", "-o", "c", "--debug-lines").code == 0
    assert '"mlp.py"' in Path("c/m.c").read_text()
    assert gt("opt", "m.graph.json", "-o", "o.graph.json").code == 0
    assert gt("lower", "o.graph.json", "--name", "m", "-o", "m.program.json").code == 0
    assert gt("emit", "m.program.json", "-o", "p", "--debug-lines").code == 0
    assert '"mlp.py"' in Path("p/m.c").read_text()


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_gdb_shows_the_source_and_the_listing(gt: Cli, tmp_path: Path) -> None:
    assert gt("build", DIGITS, "-o", tmp_path / "b", "--debug-lines", "--march", "generic",
              "--threads-by", "none").code == 0
    folder = tmp_path / "b"
    subprocess.run(["cc", "-O1", "digits_example.c", "-L.", "-ldigits", f"-Wl,-rpath,{folder}",
                    "-o", "example", "-lm"], cwd=folder, check=True)
    commands = (f"directory {SAMPLES.parent}", "set breakpoint pending on",
                "break samples/digits.py:49", "break digits_k0", "run", "bt", "continue")
    told = subprocess.run(["gdb", "-nx", "-batch", *(w for c in commands for w in ("-ex", c)),
                           "example"], cwd=folder, capture_output=True, text=True).stdout
    assert "= conv(" in told and "digits_nodes.txt:1" in told  # a line of the listing, as text
    assert "x = self.pool(self.block2(x))" in told  # and one of the Python source
