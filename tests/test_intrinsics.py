"""The short <immintrin.h> of the tests gives the objects that gcc's own header gives."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import intrinsics
from tests.kernels.harness import INCLUDES

MACHINES = ("native", "x86-64-v3", "sapphirerapids")


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("gcc"), reason="gcc for x86")
@pytest.mark.parametrize("machine", MACHINES)
def test_objects_are_the_same(machine: str, tmp_path: Path) -> None:
    (tmp_path / "kernels.c").write_text('#include "rows.h"\n#include "bf16.h"\n#include "int8.h"\n'
                                        "void f(unsigned char *p, gt_vf x);\n"
                                        "void f(unsigned char *p, gt_vf x) { *(gt_vf *)p = x; }\n")
    intrinsics.shorten()  # the whole suite has, and `pytest -m quick` has not
    path = os.environ["C_INCLUDE_PATH"]
    assert path.startswith(str(intrinsics.FOLDER))
    seen = []
    for environment in (os.environ, {**os.environ, "C_INCLUDE_PATH": ""}):
        subprocess.run(["gcc", f"-march={machine}", "-O1", *INCLUDES, "-c", "kernels.c", "-o",
                        "kernels.o"], cwd=tmp_path, env=environment, check=True)
        seen.append((tmp_path / "kernels.o").read_bytes())
    assert seen[0] == seen[1]
