"""Archives without times, owners or order of their own: equal files give equal bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Mapping

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file knows


def tar_gz(files: Mapping[str, bytes], *, folders: bool = False) -> bytes:
    """A .tar.gz of the files; `folders`: with entries for their folders."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        known = set[str]()
        for name, data in sorted(files.items()):
            parts = name.split("/")
            for n in range(1, len(parts)) if folders else ():
                folder = "/".join(parts[:n])
                if folder not in known | {".", ""}:
                    known.add(folder)
                    row = tarfile.TarInfo(f"{folder}/")
                    row.type, row.mode = tarfile.DIRTYPE, 0o755
                    tar.addfile(row)
            row = tarfile.TarInfo(name)
            row.size, row.mode = len(data), 0o644
            tar.addfile(row, io.BytesIO(data))
    return gzip.compress(raw.getvalue(), 6, mtime=0)


def zipped(files: Mapping[str, bytes]) -> bytes:
    """A .zip of the files, in their order."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            row = zipfile.ZipInfo(name, EPOCH)
            row.compress_type, row.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(row, data)
    return raw.getvalue()


def ar(members: Mapping[str, bytes]) -> bytes:
    """An archive in the format of ar, as dpkg reads it."""
    out = b"!<arch>\n"
    for name, data in members.items():
        out += b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name.encode(), 0, 0, 0, b"100644", len(data))
        out += data + b"\n" * (len(data) % 2)
    return out
