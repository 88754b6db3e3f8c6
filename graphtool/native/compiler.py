"""Finding and calling the C compiler: which one, with which flags, through the object cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from graphtool.errors import CompilerError
from graphtool.io import host, release
from graphtool.machines import cpu_flags
from graphtool.native import cache
from graphtool.native.probes import run, supports, version_of
from graphtool.native.systems import LINUX, WINDOWS, System, here, system_of
from graphtool.target import TABLE, Target

# what an object, library or program begins with: ELF, Mach-O, Windows, WebAssembly, LLVM, archives
MADE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ",
        b"d\x86", b"d\xaa", b"\0asm", b"BC\xc0\xde", b"!<arch>")
BASE: tuple[str, ...] = ("-std=gnu11", "-O3", "-fPIC", "-fwrapv", "-fno-math-errno",
                         "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi")
SMALL: tuple[str, ...] = ("-std=c99", "-O2", "-fwrapv", "-fno-math-errno", "-ffunction-sections",
                          "-fdata-sections", "-fno-unwind-tables",
                          "-fno-asynchronous-unwind-tables", "-Wall", "-Wextra")
# gcc joins the two comparisons of a clamp into branches that it then undoes by eleven masks; and
# it computes both sides of a choice only where no one may ask whether a side raised an exception
PLAIN = ("-fno-thread-jumps", "-fno-trapping-math")
DEBUG = "-g"
USED = "-Wl,--as-needed"  # only libraries that something uses
THREADS = ("-pthread", "-DGT_THREADS=1")  # of POSIX, where there is no OpenMP to say that they are
GOMP = ("-l:libgomp.a", "-lpthread", "-ldl")  # gcc's OpenMP inside the program


@dataclass(frozen=True, slots=True)
class Compiler:
    """A command, its version line, and the flags every file is compiled with.

    `machine` is what -march=native means here, so that a cache shared by machines stays right.
    """

    command: tuple[str, ...]
    version: str
    flags: tuple[str, ...]
    openmp: bool
    machine: str = ""
    libraries: tuple[str, ...] = ()

    def of_class(self, precision: str, debug: bool = False) -> Compiler:
        """The compiler for a class of numerics; for `strict` it fuses no multiply and add.

        With `debug` it writes what a debugger needs, which changes no machine code. A vector loop
        and its remainder would fuse differently, and the number of threads decides which of them
        computes an element."""
        strict = ("-ffp-contract=off",) if precision == "strict" else ()
        return replace(self, flags=(*self.flags, *strict, *((DEBUG,) if debug else ())))

    def of_file(self, name: str) -> Compiler:
        """The compiler for a C file of a build: only kernels are worth the time of -O3.

        The rest, that is drivers and main programs, does little in a run, and is smaller so."""
        if re.search(r"_kernels\d+\.c$", name):
            return self
        return replace(self, flags=(*self.flags, "-O1"))

    @property
    def identity(self) -> tuple[str, ...]:
        """Everything that an object file depends on besides its text."""
        return (*self.command, self.version, *self.flags, self.machine)

    def run(self, *args: str, cwd: Path | None = None) -> None:
        """Run the compiler in folder `cwd`. Raises CompilerError GT2121 with the end of its output
        if it fails."""
        done = run([*self.command, *args], cwd)
        if done.returncode:
            raise CompilerError("GT2121", f"{self.command[0]} failed", where=_tail(done.stderr),
                                hint="the sources stay out of the build directory; "
                                     "`graphtool emit` writes them for a look")

    def compile(self, source: Path, headers: str) -> Path:
        """The object of a C file, from the cache where its text and flags were seen before."""
        target = source.with_suffix(".o")
        h = hashlib.sha256()
        for part in (source.name, source.read_text("utf-8"), headers, *self.identity):
            h.update(part.encode() + b"\0")
        if not cache.get(h.hexdigest(), target):
            here = (f"-fdebug-prefix-map={source.parent}=.",) if DEBUG in self.flags else ()
            self.run(*self.flags, *here, "-c", source.name, "-o", target.name, cwd=source.parent)
            self.check(target)
            cache.put(h.hexdigest(), target)
        return target

    def compile_data(self, source: Path) -> Path:
        """The object of a C file that contains only data: it is not optimised, and too large for
        the cache."""
        target = source.with_suffix(".o")
        self.run("-std=gnu11", "-O0", "-fPIC", "-fvisibility=hidden", "-c", source.name, "-o",
                 target.name, cwd=source.parent)
        self.check(target)
        return target

    @property
    def implied(self) -> tuple[str, ...]:
        """Link flags that bring the libraries of OpenMP, if something in the objects needs them.

        The threads are our own: -fopenmp is there for vectors, and adds libgomp where the linker
        keeps what nothing uses.
        """
        if not self.openmp:
            return tuple(f for f in self.flags if f == THREADS[0])
        return (*((USED,) if supports(self.command, USED) else ()), "-fopenmp")

    @property
    def system(self) -> System:
        """The system that it links for."""
        return system_of(self.command)

    def link(self, objects: list[Path], target: Path) -> None:
        """Link a shared library. Programs look for it by its file name, in any folder."""
        threaded = self.system.threaded if THREADS[1] in self.flags else ()
        flags = (*self.system.shared, *threaded, *self.naming(target), *self.stripping)
        self.run(*flags, *(o.name for o in objects), *self.implied, *self.libraries, "-lm", "-o",
                 target.name, cwd=target.parent)
        self.check(target)

    @property
    def stripping(self) -> tuple[str, ...]:
        """The link flag that leaves out what zig's own C library has for debuggers, which can be
        four times the code."""
        return ("-s",) if "ziglang" in self.command and DEBUG not in self.flags else ()

    def naming(self, target: Path) -> tuple[str, ...]:
        """The link flags that tell a library its name; none where the linker knows none."""
        def flags(file: str, name: str) -> list[str]:
            return [f.format(file=file, name=name) for f in self.system.naming]
        # the probe links a program, where a name has no effect; not every linker of Linux knows one
        known = self.system is not LINUX or supports(self.command, *flags("libmodel.so", "model"))
        return tuple(flags(target.name, target.stem)) if known else ()

    def link_program(self, objects: list[Path], target: Path, *, static: bool = False) -> None:
        """An executable that needs only libc at run time, if possible; `static`: no library at all.

        Raises CompilerError GT2125 where there are no static libraries.
        """
        openmp = self.implied
        if static:
            if not supports(self.command, "-static", *openmp):
                raise CompilerError("GT2125", f"{self.command[0]} cannot link statically here",
                                    hint="install the static C library, or build without --static")
            openmp = ("-static", *openmp)
        elif openmp and supports(self.command, "-fopenmp", libraries=GOMP):
            openmp = GOMP
        self.run(*self.stripping, *(o.name for o in objects), *openmp, *self.libraries, "-lm", "-o",
                 target.name, cwd=target.parent)
        self.check(target)

    def check(self, path: Path) -> None:
        """Raises CompilerError GT2121 unless the compiler has written code to `path`."""
        begin = None
        if path.is_file():
            with path.open("rb") as file:
                begin = file.read(8)
        if begin is None or not begin.startswith(MADE):
            kind = "" if begin is None else " of machine code"
            raise CompilerError("GT2121", f"{self.command[0]} reported success but wrote no "
                                          f"{path.name}{kind}", hint="name another: --cc gcc")

    def archive(self, objects: list[Path], target: Path) -> None:
        """Write a static library of these objects with the same bytes each time. Raises
        CompilerError GT2122."""
        command = archiver(self.command)
        done = run([*command, "rcsD", target.name, *(o.name for o in objects)], target.parent)
        if done.returncode:
            raise CompilerError("GT2122", f"{command[0]} failed", where=_tail(done.stderr))


def find(cc: str | None, target: Target, *, threads: bool = True, mpi: bool = False) -> Compiler:
    """`cc`, else $CC, cc, gcc, clang, `python -m ziglang cc`; with `mpi` else mpicc.

    Raises CompilerError GT2120 where there is none, GT2124 where it does not know the machine,
    GT2126 where it does not know MPI.
    """
    if target.freestanding:
        cc, threads = cc or target.cross, False
    elif target.system and target.foreign and not os.environ.get("CC"):
        cc = cc or target.cross
    for command in candidates(cc) if cc or not mpi else mpi_candidates():
        version = version_of(command)
        if version is None or not _as_gcc(command):
            continue
        if mpi and not supports(command, "-DGT_MPI"):
            raise _no_mpi(f"{' '.join(command)} finds no <mpi.h>, or not its library")
        spelled = march_flags(target, command)
        with_openmp = threads and supports(command, "-fopenmp", *spelled)
        extra = "-fopenmp" if with_openmp else (
            "-fopenmp-simd" if not target.freestanding and supports(command, "-fopenmp-simd")
            else "")
        base, linked = (SMALL, ("-c",)) if target.freestanding else (BASE, ())
        if not system_of(command).pic:
            base = tuple(f for f in base if f != "-fPIC")
        own = THREADS[1:] if system_of(command) is WINDOWS else THREADS  # no library has them
        plain = PLAIN if supports(command, "-Werror", *linked, *PLAIN) else ()
        flags = (*base, *plain, *spelled, *((extra,) if extra else ()),
                 *(("-DGT_OPENMP_SIMD",) if extra == "-fopenmp-simd" else ()),
                 *(own if threads and not with_openmp and not target.alone
                   and supports(command, *own, *spelled) else ()),
                 *(("-DGT_MPI",) if mpi else ()))
        machine = " ".join(sorted(cpu_flags())) if target.native else ""
        return Compiler(command, version, flags, with_openmp, machine)
    if mpi and not cc:
        raise _no_mpi("no mpicc found")
    wanted = cc or "cc, gcc, clang or ziglang"
    install = f"`{release.install('zig')}`"
    raise CompilerError("GT2120", f"no C compiler found: {wanted}",
                        hint=install if cc == target.cross and "ziglang" in target.cross else
                        f"install gcc or clang, or {install}")


def _as_gcc(command: tuple[str, ...]) -> bool:
    """Whether a compiler takes the flags of gcc; one of Windows may take those of MSVC alone."""
    return here() is not WINDOWS or supports(command, "-lm")


def mpi_candidates() -> Iterator[tuple[str, ...]]:
    """mpicc of the path, and mpicc of a package beside this Python."""
    for folder in (None, str(Path(sys.executable).parent)):
        if wrapper := shutil.which("mpicc", path=folder):
            yield (wrapper,)


def _no_mpi(message: str) -> CompilerError:
    return CompilerError("GT2126", message, hint=f"{release.install('mpi')}, or the system's "
                                                 "openmpi or mpich, or name one: --cc mpicc")


def archiver(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command that archives the compiler's objects: zig's own, that of a cross compiler, else
    ar."""
    if "cc" in command[1:]:  # `zig cc`, `python -m ziglang cc`
        return (*command[:command.index("cc", 1)], "ar")
    prefix, dash, tool = command[0].removesuffix(".exe").rpartition("-")
    cross = f"{prefix}-ar"
    return (cross,) if dash and tool in ("gcc", "cc", "clang") and shutil.which(cross) else ("ar",)


def march_flags(target: Target, command: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The flags that make the compiler use the target's instructions: the first spelling of the
    machine that it knows, with what else the target asks for.

    Raises CompilerError GT2124 if it knows none.
    """
    # one without -target makes code for this machine, where that of another kind needs a flag
    foreign = target.foreign and not crosses(command)
    for flags in target.flags:
        given = (*flags, *target.more)
        # most compilers have OpenMP: `find` then asks the same question
        if target.freestanding:
            if supports(command, "-c", *given):  # linking takes a board's own script
                return given
        elif (not flags and not foreign) or (flags and (
                supports(command, "-fopenmp", *given) or supports(command, *given))):
            return given
    if foreign:
        raise CompilerError("GT2124", f"{' '.join(command)} cannot compile for {target.title}",
                            hint=f"--cc '{target.cross}'" if target.cross else "")
    raise CompilerError("GT2124", f"{' '.join(command)} does not know the machine {target.march!r}",
                        hint=f"name the one to compile for: --march {', '.join(TABLE)}")


def crosses(command: tuple[str, ...]) -> bool:
    """Whether the command compiles for a machine that it names."""
    return any(word.lstrip("-").partition("=")[0] == "target" for word in command[1:])


def _python(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with this Python for the first, if that is `python`: a module of it is meant."""
    return (sys.executable, *words[1:]) if words[:2] == ("python", "-m") else words


def candidates(cc: str | None) -> Iterator[tuple[str, ...]]:
    """The compiler commands to try, in order: `cc` alone if given, else $CC, cc, gcc, clang, and
    zig's."""
    if cc:
        yield _python(_words(cc, "--cc"))
        return
    if os.environ.get("CC"):
        yield _words(os.environ["CC"], "$CC")
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            yield (name,)
    if find_spec("ziglang"):
        yield (sys.executable, "-m", "ziglang", "cc")


def _words(command: str, where: str) -> tuple[str, ...]:
    """The words of a command as a shell reads them."""
    try:
        words = tuple(host.words(command))
    except ValueError as error:
        raise CompilerError("GT2127", f"cannot read the command {command!r}: {error}", where=where,
                            hint="quote it as for a shell: --cc 'zig cc -target x86_64-linux-musl'"
                            ) from None
    if not words or "\0" in command:
        raise CompilerError("GT2127", f"{command!r} is no command", where=where)
    return words


def _tail(stderr: str) -> str:
    return "\n".join(stderr.strip().splitlines()[-8:])
