"""What a compiler supports is asked once for each version; what it lacks, each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphtool.errors import CompilerError
from graphtool.native import probes
from graphtool.native.probes import supports, version_of

FAKE = """#!/bin/sh
[ "$1" = --version ] && echo "fake {version}" && exit 0
echo asked >> {log}
exit {code}
"""


class Fake:
    """A compiler that writes down how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.path, self.log = folder / "fake-cc", folder / "log"

    def asked(self, code: int, *flags: str, version: str = "1", **rest: tuple[str, ...]) -> int:
        """How often it has run after one more question, in a process that knows nothing yet."""
        self.path.write_text(FAKE.format(log=self.log, code=code, version=version))
        self.path.chmod(0o755)
        supports.cache_clear()
        version_of.cache_clear()
        assert supports((str(self.path),), *flags, **rest) is (code == 0)
        return self.log.read_text().count("asked")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Fake(tmp_path)


def test_flags_that_a_compiler_knows_are_asked_once(fake: Fake) -> None:
    assert [fake.asked(0, "-fopenmp") for _ in range(3)] == [1, 1, 1]
    assert fake.asked(0, "-fopenmp", "-O2") == 2


def test_another_version_is_asked_again(fake: Fake) -> None:
    assert [fake.asked(0, "-fopenmp", version=v) for v in ("1", "2", "1")] == [1, 2, 2]


def test_what_is_lacking_is_asked_each_time(fake: Fake) -> None:
    assert [fake.asked(1, "-fopenmp") for _ in range(2)] == [1, 2]
    assert fake.asked(0, "-fopenmp") == 3


@pytest.mark.parametrize("flag", ["-DGT_MPI", "-static"])
def test_libraries_are_asked_for_each_time(fake: Fake, flag: str) -> None:
    assert [fake.asked(0, flag) for _ in range(2)] == [1, 2]


def test_a_compiler_that_takes_too_long_says_nothing_of_its_flags(
        fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "TIMEOUT", 0.2)
    fake.path.write_text("#!/bin/sh\n[ \"$1\" = --version ] || exec sleep 60\n")
    fake.path.chmod(0o755)
    with pytest.raises(CompilerError, match=r"fake-cc took more than 0.2 s") as caught:
        supports((str(fake.path),), "-mnew")
    assert caught.value.code == "GT2123"
