"""The systems that libraries are linked for: what files are called there, and the linker's flags.

A compiler that names its target links for the system in that name, any other for this machine's.
"""

from __future__ import annotations

import platform
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """One kind of system.

    `name` is what Python's platform.system() calls it, in small letters. One of the `words` stands
    in the name of a compiler's target for it. `library` and `program` are the names of files, where
    `{}` is the name of the model. `shared` are the flags that link a shared library; `naming` are
    flags that tell it its name, with the library's file name for `{file}` and the model's name for
    `{name}`, and `threaded` those that a library with threads needs besides. `pic`: the compiler
    takes -fPIC.
    """

    name: str
    words: tuple[str, ...]
    library: str
    program: str = "{}"
    shared: tuple[str, ...] = ("-shared",)
    naming: tuple[str, ...] = ()
    threaded: tuple[str, ...] = ()
    pic: bool = True


LINUX = System("linux", (), "lib{}.so", naming=("-Wl,-soname,{file}",))
MACOS = System("darwin", ("macos", "darwin"), "lib{}.dylib",
               naming=("-Wl,-install_name,@rpath/{file}",))
# a program is linked with NAME.lib, and needs NAME.dll when it runs
WINDOWS = System("windows", ("windows", "mingw"), "{}.dll", "{}.exe",
                 naming=("-Wl,--out-implib,{name}.lib",), pic=False)
# a module without a main program, whose caller asks it for memory
WASM = System("wasi", ("wasm32",), "{}.wasm", "{}_program.wasm",
              ("-mexec-model=reactor", "-Wl,--export-dynamic", "-Wl,--export=aligned_alloc",
               "-Wl,--export=malloc", "-Wl,--export=free"), threaded=(
                   "-matomics", "-mbulk-memory", "-Wl,--shared-memory", "-Wl,--import-memory",
                   "-Wl,--export-memory", "-Wl,--max-memory=4294901760", "-Wl,--export-table",
                   "-Wl,--export=__stack_pointer"), pic=False)
SYSTEMS = {s.name: s for s in (LINUX, MACOS, WINDOWS, WASM)}


def here() -> System:
    """That of this machine; what is neither macOS nor Windows links as Linux does."""
    return SYSTEMS.get(platform.system().lower(), LINUX)


def system_of(command: tuple[str, ...]) -> System:
    """The system that a compiler's command links for. A folder's name says nothing of it."""
    named = [name for word in command if "-" in (name := re.split(r"[\\/]", word)[-1]).strip("-")]
    for system in SYSTEMS.values():
        if any(word in text for word in system.words for text in named):
            return system
    return LINUX if any("linux" in text for text in named) else here()
