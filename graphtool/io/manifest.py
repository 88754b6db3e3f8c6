"""Reading build.json; compile/build.py writes it. Nothing of the compiler is here."""

from pathlib import Path

from graphtool.errors import InputError
from graphtool.io import files, manifest_ranges
from graphtool.io.manifest_rows import Manifest
from graphtool.io.rows import RowError, decode
from graphtool.io.versions import BUILD, checked


def read_manifest(build_dir: Path) -> Manifest:
    """build.json, checked. Raises InputError GT0339 for a file, GT2201 for another build.json."""
    path = build_dir / "build.json"
    if build_dir.is_file():
        name = "FILE" if len(str(build_dir)) > 60 else str(build_dir)
        raise InputError("GT0339", "a build directory is wanted, and this is a file",
                         where=str(build_dir),
                         hint=f"graphtool build {name} -o build/ compiles a graph, a program or a "
                              f"model\ngraphtool eval {name} --random runs a graph or a model "
                              "without compiling it")
    if not build_dir.exists():
        from graphtool.io.directory import recover
        recover(build_dir.resolve())
    raw = files.read_json(files.read_bytes(path), str(path))
    try:
        m = decode(checked(BUILD, raw, str(path)), Manifest)
        manifest_ranges.check(m)
    except (RowError, manifest_ranges.OutOfRange) as error:
        raise InputError("GT2201", f"malformed build.json: {error}", where=str(path)) from error
    tokens = m.language.tokenizer if m.language else "-"
    for name in (m.library, m.header, m.weights, m.executable or "-", tokens, *m.files):
        if name in ("", ".", "..") or any(c in name for c in "/\\\0"):
            raise InputError("GT2206", f"{name[:80]!r} is not the name of a file of the build",
                             where=str(path))
    return m


def check_hashes(m: Manifest, build_dir: Path) -> None:
    """Raises InputError GT2205 if the library or the weights are not those that were built."""
    import hashlib
    for name in (m.library, m.weights):
        if name not in m.files:
            continue
        try:
            with (build_dir / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            found = error.strerror or "unreadable"
        if found != m.files[name]:
            raise InputError("GT2205", f"{name} is not as it was built",
                             where=str(build_dir / name), hint="build again")
