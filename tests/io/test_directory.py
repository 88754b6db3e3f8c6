"""A directory appears whole or not at all, whoever else writes it at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphtool.errors import InputError
from graphtool.io import directory
from graphtool.io.directory import replacing


def write(path: Path, n: int) -> None:
    with replacing(path) as work:
        for file in ("a", "b", "build.json"):
            (work / file).write_text(str(n))


def test_many_writers_of_one_directory(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: write(tmp_path / "m", n), range(60)))
    assert [p.name for p in tmp_path.iterdir()] == ["m"]
    assert len({p.read_text() for p in (tmp_path / "m").iterdir()}) == 1


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    write(tmp_path / "m", 1)
    with pytest.raises(KeyError), replacing(tmp_path / "m") as work:
        (work / "a").write_text("2")
        raise KeyError
    assert (tmp_path / "m" / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_rename_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")
    monkeypatch.setattr(directory, "TRIES", 2)
    with pytest.raises(InputError) as found, replacing(tmp_path / "m"):
        monkeypatch.setattr(Path, "rename", refuse)
    assert found.value.code == "GT0330" and not list(tmp_path.iterdir())
