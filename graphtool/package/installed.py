"""`cmake` and `deb`: a build as it lies in a system or a prefix, with the files by which CMake and
pkg-config find it. Both take any build, as a library in C."""

from __future__ import annotations

from hashlib import md5

from graphtool.emit.project import Project, config_files
from graphtool.errors import UsageError
from graphtool.package.archives import ar, tar_gz
from graphtool.package.platform import platform_of
from graphtool.package.record import Archive, Files, PackageForm, Subject, register
from graphtool.package.wrappers import wrappers

_MAINTAINER = "nobody <nobody@localhost>"  # an archive that publishes it has its own


def layout(s: Subject, library_at: str, share_at: str) -> dict[str, bytes]:
    """The files of an installation below a prefix, with the library in `library_at`."""
    weights = s.weights
    include = f"include/{s.name}"
    linked = s.folder / f"{s.name}.lib"  # what programs of Windows are linked with
    libraries = [s.library, *([linked] if linked.is_file() else [])]
    files = {**{f"{library_at}/{p.name}": p.read_bytes() for p in libraries},
             **{f"{include}/{h.name}": h.read_bytes() for h in s.headers},
             **{f"{include}/{file}": text.encode() for file, text in wrappers(s).items()}}
    if weights is not None:
        files[f"{share_at}/{weights.name}"] = weights.read_bytes()
    for folder in (f"{library_at}/cmake/{s.name}", f"{library_at}/pkgconfig"):
        up = "/".join([".."] * len(folder.split("/")))
        project = Project(s.name, s.manifest.library, weights.name if weights else "", s.version,
                          library_at=f"{up}/{library_at}", header_at=f"{up}/{include}",
                          weights_at=f"{up}/{share_at}")
        files |= {f"{folder}/{file}": text.encode() for file, text in config_files(project).items()
                  if file.endswith(".pc") == folder.endswith("pkgconfig")}
    return files


def cmake(s: Subject) -> Files:
    """include/, lib/ and share/: a prefix that CMAKE_PREFIX_PATH takes."""
    return layout(s, "lib", f"share/{s.name}")


def _tar(s: Subject, files: Files) -> Archive:
    stem = f"{s.name}-{s.version}"
    return f"{stem}.tar.gz", tar_gz({f"{stem}/{f}": d for f, d in files.items()})


def debian_name(name: str) -> str:
    """The name of the package: Debian has no capitals and no underscores."""
    return f"lib{name.lower().replace('_', '-').strip('-')}-dev"


def deb(s: Subject) -> Files:
    """The files of the package and of its control archive, from the root of the system; one package
    is both the library and what programs are compiled with."""
    machine = platform_of(s.library).debian
    if not machine:
        raise UsageError("GT2242", "Debian has no name for this machine", where=str(s.library))
    files = {f"./usr/{f}": d for f, d in layout(s, "lib", f"share/{s.name}").items()}
    size = -(-sum(map(len, files.values())) // 1024)
    control = (f"Package: {debian_name(s.name)}\nVersion: {s.version}\nArchitecture: {machine}\n"
               f"Maintainer: {_MAINTAINER}\nInstalled-Size: {size}\nDepends: libc6\n"
               f"Section: libdevel\nPriority: optional\n"
               f"Description: the compiled model {s.name}\n"
               f" A library of C with one function for a machine-learning model.\n")
    sums = "".join(f"{md5(d, usedforsecurity=False).hexdigest()}  {f[2:]}\n"
                   for f, d in sorted(files.items()))
    return files | {"control": control.encode(), "md5sums": sums.encode(),
                    "triggers": b"activate-noawait ldconfig\n"}


def _deb(s: Subject, files: Files) -> Archive:
    control = {f"./{f}": d for f, d in files.items() if not f.startswith("./")}
    data = {f: d for f, d in files.items() if f.startswith("./")}
    machine = platform_of(s.library).debian
    return f"{debian_name(s.name)}_{s.version}_{machine}.deb", ar({
        "debian-binary": b"2.0\n", "control.tar.gz": tar_gz(control),
        "data.tar.gz": tar_gz(data, folders=True)})


register(PackageForm(
    "cmake", "a .tar.gz to unpack into a prefix: CMake and pkg-config find it", cmake,
    archive=_tar, calls=False))
register(PackageForm(
    "deb", "a Debian package of the library and its header", deb, archive=_deb, calls=False))
