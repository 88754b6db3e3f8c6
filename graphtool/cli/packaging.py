"""package: a build as the package of another ecosystem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli import options, terminal


def package(build: Annotated[Path, typer.Argument(
        metavar="BUILD", help="A build directory, as `graphtool build` writes it.")],
            form: Annotated[str, typer.Option(
                "--as", metavar="FORM", help="wheel (pip), npm (Node and browsers), cargo (Rust), "
                "go, cmake (a prefix for find_package), deb (Debian), single (one file of C), or "
                "the form of a plug-in.")],
            out: Annotated[Path, typer.Option(
                "-o", "--out", help="The directory that the package goes to.")] = Path(),
            version: Annotated[str, typer.Option(
                "--version", metavar="1.2.3", help="The version of the package.")] = "1.0.0",
            json: options.Json = False) -> None:
    """Make a package of a build, for a program in another language.

    It needs no graphtool where it is used. Packages in source (cargo, go, single) are compiled by
    the user's C compiler, for the processor of the build; for a wheel that runs anywhere, build
    with --march fat."""
    from graphtool.package.forms import package as write
    from graphtool.package.record import used
    from graphtool.report.table import human
    package = write(build, form, out, version)
    size = human(sum(package.files.values()), "B")
    if not json:
        terminal.note(f"{package.path}: {len(package.files)} files, {size}", *(
            [f"use it: {use}"] if (use := used(package)) else []))
    terminal.report(package, json, [package.path])
