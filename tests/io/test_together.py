"""Files of one writer appear together in a directory that is not the writer's alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphtool.errors import InputError
from graphtool.io.directory import write_files
from tests.io.crashes import kept, kill_points, leftovers


def texts(mark: int) -> dict[str, str]:
    return {name: str(mark) for name in ("m.c", "m.h")}


def read(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*"))
            if p.is_file()}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A directory in which somebody works: files, a directory, links to both."""
    out = tmp_path / "work" / "m"
    (out / "build").mkdir(parents=True)
    write_files(out, texts(1))
    for name in ("main.c", "build/x.o"):
        (out / name).write_text("mine")
    (out / "file").symlink_to("main.c")
    (out / "folder").symlink_to("build")
    return out


def test_what_lies_there_stays_where_it_is(out: Path) -> None:
    """Who works in one of the directories still does."""
    places = (out, out / "build", out / "main.c")
    before = [p.stat().st_ino for p in places]
    write_files(out, texts(2))
    assert [p.stat().st_ino for p in places] == before
    assert read(out) == texts(2) | {"main.c": "mine", "build/x.o": "mine", "file": "mine"}
    assert os.readlink(out / "file") == "main.c" and os.readlink(out / "folder") == "build"
    assert not (out / "build").is_symlink() and leftovers(out.parent) == []


def after_kills(out: Path) -> Iterator[None]:
    with kept(out.parent) as restore:
        for _ in kill_points(lambda: write_files(out, texts(2))):
            yield
            restore()


def test_work_goes_on_after_a_kill(out: Path) -> None:
    """What somebody changes before the next writer comes is kept."""
    for _ in after_kills(out):
        (out / "main.c").write_text("changed")
        (out / "build" / "y.o").write_text("new")
        (out / "more").mkdir()
        (out / "more" / "z.o").write_text("new")
        (out / "file").unlink()
        write_files(out, texts(3))
        assert read(out) == texts(3) | {"main.c": "changed", "build/x.o": "mine",
                                        "build/y.o": "new", "more/z.o": "new"}
        assert not (out / "build").is_symlink() and leftovers(out.parent) == []


def test_nothing_is_lost_where_the_directory_is_moved_after_a_kill(out: Path) -> None:
    for _ in after_kills(out):
        os.rename(out, out.with_name("n"))
        write_files(out, texts(3))
        kept_ = [p for n in ("m", "n") if (p := out.with_name(n) / "build" / "x.o").exists()]
        assert kept_ and not any(n.startswith(".") for n in os.listdir(out.parent))


def test_without_an_exchange_they_are_written_one_by_one(
        out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.io.directory.exchange", lambda a, b: False)
    write_files(out, texts(2))
    assert read(out)["m.c"] == "2" and read(out)["build/x.o"] == "mine"
    assert leftovers(out.parent) == []


def test_without_links(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")
    monkeypatch.setattr(os, "link", refuse)
    write_files(out, texts(2))
    assert read(out)["m.c"] == "2" and leftovers(out.parent) == []


def test_a_directory_in_the_way_is_an_error(out: Path) -> None:
    (out / "m.x").mkdir()
    with pytest.raises(InputError, match="it is a directory") as found:
        write_files(out, texts(2) | {"m.x": ""})
    assert found.value.code == "GT0330" and read(out)["m.c"] == "1"


def test_many_writers(out: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: write_files(out, texts(n)), range(40)))
    found = read(out)
    assert found["m.c"] == found["m.h"] and found["build/x.o"] == "mine"
    assert leftovers(out.parent) == []
