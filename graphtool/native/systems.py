"""The systems that libraries are linked for: what files are called there, and the linker's flags.

A compiler that names its target links for the system in that name, any other for this machine's.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """One kind of system.

    `words`: one of them stands in the name of a target for it. `library` and `program` are the
    names of files, `{}` being that of the model. `shared` are the flags that link a shared library;
    those in `named` are added where the linker knows them, with the library's file name and the
    model's as `{file}` and `{name}`. `position` says whether code can be told to run anywhere.
    """

    name: str
    words: tuple[str, ...]
    library: str
    program: str = "{}"
    shared: tuple[str, ...] = ("-shared",)
    named: tuple[str, ...] = ()
    position: bool = True


LINUX = System("linux", (), "lib{}.so", named=("-Wl,-soname,{file}",))
MACOS = System("macos", ("macos", "darwin"), "lib{}.dylib",
               named=("-Wl,-install_name,@rpath/{file}",))
# a program is linked with NAME.lib, and needs NAME.dll when it runs
WINDOWS = System("windows", ("windows", "mingw"), "{}.dll", "{}.exe",
                 named=("-Wl,--out-implib,{name}.lib",), position=False)
# a module without a main program, whose caller asks it for memory
WASM = System("wasm", ("wasm32",), "{}.wasm", "{}_program.wasm",
              ("-mexec-model=reactor", "-Wl,--export-dynamic", "-Wl,--export=aligned_alloc",
               "-Wl,--export=malloc", "-Wl,--export=free"), position=False)
SYSTEMS = {s.name: s for s in (LINUX, MACOS, WINDOWS, WASM)}
_HERE = {"darwin": MACOS, "win32": WINDOWS}


def here() -> System:
    """That of this machine; what is neither macOS nor Windows links as Linux does."""
    return _HERE.get(sys.platform, LINUX)


def system_of(command: tuple[str, ...]) -> System:
    """The system that a compiler's command links for."""
    named = [word for word in command if "-" in word.strip("-")]
    for system in SYSTEMS.values():
        if any(word in text for word in system.words for text in named):
            return system
    return LINUX if any("linux" in text for text in named) else here()
