"""The versions of Python, the system and packages, for `--version`, `doctor` and reproducers."""

from __future__ import annotations

PACKAGES = ("numpy", "onnx", "onnxruntime", "torch", "typer", "rich", "msgspec",
            "safetensors", "ml_dtypes")


def versions() -> dict[str, str]:
    """Python's, the system's and the packages' versions, read without importing them."""
    import platform
    from importlib import metadata

    from graphtool.io.release import release
    found = {"python": platform.python_version(), "system": platform.platform(),
             "graphtool": release().version}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def own_version() -> str:
    """The line that `graphtool --version` prints."""
    from graphtool.io.release import release
    return f"graphtool {release().version}"
