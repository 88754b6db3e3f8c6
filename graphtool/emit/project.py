"""How other build systems find a build: NAMEConfig.cmake with its version, NAME.pc, README.md.

All paths in them start from the file itself, so a build may be moved as a whole. Of the model only
its name is here, which `check_name` has seen.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

VERSION = "1.0.0"  # of a build, which has none of its own
README = "README.md"


@dataclass(frozen=True, slots=True)
class Project:
    """A library as its users see it: the folders of the library, of NAME.h and of the weights,
    each from the folder of the CMake or pkg-config file; `links` is what a static one needs too.
    """

    name: str
    library: str
    weights: str = ""  # the file that NAME_load takes; "": none
    version: str = VERSION
    links: tuple[str, ...] = ("-pthread", "-lm")
    library_at: str = "."
    header_at: str = "."
    weights_at: str = "."

    @property
    def static(self) -> bool:
        """Whether the library is an archive."""
        return self.library.endswith(".a")

    @property
    def module(self) -> bool:
        """Whether the library is WebAssembly, which no program of C links."""
        return self.library.endswith(".wasm")

    @property
    def windows(self) -> bool:
        """Whether a program is linked with NAME.lib, and finds the library in its own folder."""
        return self.library.endswith(".dll")


_CMAKE = """\
# find_package({name}) defines the target {name}::{name}{weights}.
if(NOT TARGET {name}::{name})
  add_library({name}::{name} {kind} IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/{library}"
    {more}
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}{header_at}")
endif()
"""
_CMAKE_WEIGHTS = 'set({name}_WEIGHTS "${{CMAKE_CURRENT_LIST_DIR}}/{weights}")\n'
_CMAKE_VERSION = """\
set(PACKAGE_VERSION {version})
if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""
_PKG_CONFIG = """\
here=${{pcfiledir}}
{weights}
Name: {name}
Description: The compiled model {name}
Version: {version}
Cflags: -I${{here}}{header_at}
Libs: -L${{here}}{library_at} -l{name}{more}
"""


def config_files(p: Project) -> dict[str, str]:
    """File name → text of what CMake and pkg-config read."""
    if p.module:
        return {}
    return {f"{p.name}Config.cmake": _cmake(p),
            f"{p.name}ConfigVersion.cmake": _CMAKE_VERSION.format(version=p.version),
            f"{p.name}.pc": _pkg_config(p)}


def _cmake(p: Project) -> str:
    at = f"${{CMAKE_CURRENT_LIST_DIR}}/{posixpath.normpath(f'{p.library_at}/{p.name}.lib')}"
    more = (f'INTERFACE_LINK_LIBRARIES "{";".join(p.links)}"' if p.static else
            f'IMPORTED_IMPLIB "{at}"' if p.windows else f"IMPORTED_SONAME {p.library}")
    text = _CMAKE.format(
        name=p.name, kind="STATIC" if p.static else "SHARED", more=more,
        library=posixpath.normpath(f"{p.library_at}/{p.library}"), header_at=_below(p.header_at),
        weights=f" and {p.name}_WEIGHTS,\n# the file that {p.name}_load takes" if p.weights else "")
    return text + (_CMAKE_WEIGHTS.format(
        name=p.name, weights=posixpath.normpath(f"{p.weights_at}/{p.weights}"))
        if p.weights else "")


def _pkg_config(p: Project) -> str:
    """A program that is linked so finds a shared library where it is now, in any folder."""
    library_at = _below(p.library_at)
    weights = posixpath.normpath(f"{p.weights_at}/{p.weights}")
    return _PKG_CONFIG.format(
        name=p.name, version=p.version, header_at=_below(p.header_at), library_at=library_at,
        weights=f"weights=${{here}}/{weights}\n" if p.weights else "",
        more="".join(f" {x}" for x in p.links) if p.static else "" if p.windows else
        f" -Wl,-rpath,${{here}}{library_at}")


def _below(folder: str) -> str:
    return "" if folder == "." else f"/{folder}"


def readme(p: Project, files: Collection[str], *, trains: bool) -> str:
    """The text of README.md for a build with these files; `trains`: its functions are those of
    training."""
    name, example = p.name, f"{p.name}_example.c"
    links = ("".join(f" {x}" for x in p.links) if p.static else "" if p.windows else
             " -Wl,-rpath,DIR")
    if p.module:
        return _table(p, [("JavaScript", "`graphtool package DIR --as npm`"), (
            "another host", f"`{p.library}` exports the functions of `{name}.h`, `malloc`, "
                            "`aligned_alloc`, `free` and its memory")], example in files)
    rows = [("C, C++", f"`cc app.c -IDIR -LDIR -l{name}{links}`"),
            ("CMake", f"`find_package({name} REQUIRED)`, then `target_link_libraries(app "
                      f"{name}::{name})`; `cmake -D{name}_DIR=DIR`"),
            ("pkg-config", f"`cc app.c $(PKG_CONFIG_PATH=DIR pkg-config --cflags --libs {name})`")]
    rows.append(("Go", f"`// #cgo pkg-config: {name}` and `// #include \"{name}.h\"` above "
                       "`import \"C\"`"))
    if p.windows:
        rows.append(("when it runs", f"`{p.library}` is in the folder of the program"))
    elif not p.static:
        rows.append(("Rust", "the header as an `extern \"C\"` block; "
                             f"`rustc app.rs -L DIR -l {name} -C link-arg=-Wl,-rpath,DIR`"))
    if {example, f"{name}_main.c"} & {*files} and not any(f.endswith(".cu") for f in files):
        rows.append(("the sources alone", "`cc -O3 *.c -lm -o program` in this folder"))
    if trains:
        rows.append(("the shell", "`graphtool train DIR --data FILE.npz`"))
    elif not p.static:
        rows.append(("Python, the shell", '`graphtool.load("DIR")`, `graphtool run DIR --random`'))
    return _table(p, rows, example in files)


def _table(p: Project, rows: list[tuple[str, str]], called_there: bool) -> str:
    """The text of README.md from the rows of its table; `called_there`: an example calls the
    functions."""
    name, example = p.name, f"{p.name}_example.c"
    called = f", and\n`{example}` calls them" if called_there else ""
    weights = f" `{name}_load` takes the path of `{p.weights}`." if p.weights else ""
    return (f"# {name}\n\nA compiled model. `{name}.h` states its inputs, outputs and functions"
            f"{called}.\n\n| from | how |\n|---|---|\n"
            + "".join(f"| {who} | {how} |\n" for who, how in rows)
            + f"\nDIR is this folder, which may be moved.{weights}\n")
