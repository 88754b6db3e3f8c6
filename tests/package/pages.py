"""What tests of npm packages share: a package as a folder of a site, and programs that use it in
Node and in a page of Chromium."""

from __future__ import annotations

import subprocess
import tarfile
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

from benchmarks.browser import tab
from graphtool.cli.demo_web import Files
from graphtool.package.forms import package


def site(folder: Path, built: Path, results: str) -> Path:
    """The folder, with the package of a build in it, an empty page, and the module results.js."""
    with tarfile.open(package(built, "npm", folder).path) as archive:
        archive.extractall(folder, filter="data")
    (folder / "index.html").write_text("<!doctype html><title>x</title>")
    (folder / "results.js").write_text(results)
    return folder


def in_node(folder: Path, program: str, *flags: str) -> str:
    """What a program prints that lies in the site."""
    (folder / "run.mjs").write_text(program)
    done = subprocess.run(["node", *flags, "run.mjs"], cwd=folder, capture_output=True, text=True,
                          timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def in_pages(folder: Path, expressions: Sequence[str]) -> Iterator[str]:
    """What each expression is in a page of the site, which is isolated."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        for expression in expressions:
            with tab() as page:
                page.ask("Page.navigate", url=address)
                while page.value("location.origin + '/'") != address:
                    pass
                yield page.value(expression)
        server.shutdown()
