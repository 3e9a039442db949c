"""Where a version's files lie: a folder of this host, or whatever fsspec speaks to."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import fsspec
from aiohttp import ClientTimeout
from fsspec.core import url_to_fs

_CONNECT_S = 10
_SILENCE_S = 30


class StoreError(ValueError):
    """A store that cannot be read from; the message names it."""


class FileStore(Protocol):
    """A version's files, to be read in parts and from several threads."""

    def paths(self) -> list[str]:
        """Every file, by its path from the top, in order. Raises StoreError."""
        ...

    def size(self, path: str) -> int | None:
        """Bytes of a file, None where the store does not say. Raises FileNotFoundError."""
        ...

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end`` of a file. Raises whatever the store's library raises."""
        ...


def open_store(uri: str) -> FileStore:
    """The store that a URI names. Raises StoreError naming it.

    Credentials never stand in a URI: records are read by many.
    """
    parts = urlsplit(uri)
    if not parts.scheme or "::" in uri:
        raise StoreError(f"uri {uri!r}: is not SCHEME://...")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise StoreError(
            f"uri of scheme {parts.scheme}: must not hold a user, a password, ? or #;"
            " credentials come from the environment or its files"
        )
    if parts.scheme != "file":
        return FsspecStore(uri)
    if ".." in Path(unquote(parts.path)).parts:
        raise StoreError(f"uri {uri!r}: must not contain ..")
    if parts.netloc not in ("", "localhost"):
        raise StoreError(f"uri {uri!r}: names another host; file:///folder is this one's")
    return FolderStore(Path(unquote(parts.path)), uri)


class FolderStore:
    """A folder of this host; nothing outside it is read, whatever links lie in it."""

    def __init__(self, folder: Path, uri: str) -> None:
        if not folder.is_dir():
            raise StoreError(f"uri {uri!r}: is not a folder that this process can read")
        self._folder = folder.resolve()

    def paths(self) -> list[str]:
        """Every file; a link that leads out of the folder is an error."""
        found = [path for path in self._folder.rglob("*") if path.is_file()]
        names = sorted(path.relative_to(self._folder).as_posix() for path in found)
        for name in names:
            self._inside(name)
        return names

    def size(self, path: str) -> int:
        """Bytes of a file."""
        return self._inside(path).stat().st_size

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end`` of a file."""
        with self._inside(path).open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def _inside(self, path: str) -> Path:
        place = (self._folder / path).resolve()
        if not place.is_relative_to(self._folder):
            raise StoreError(f"{self._folder / path}: is a link out of the folder")
        return place


class FsspecStore:
    """Any store with a filesystem of fsspec that reads ranges."""

    def __init__(self, uri: str) -> None:
        self._files, self._root = _filesystem(uri)
        self._is_web = uri.startswith(("http://", "https://"))

    def paths(self) -> list[str]:
        """Every file; a web server cannot say."""
        if self._is_web:
            raise StoreError(f"uri {self._root!r}: files on a web server cannot be listed")
        root = self._root.rstrip("/") + "/"
        return sorted(str(path).removeprefix(root) for path in self._files.find(self._root))

    def size(self, path: str) -> int | None:
        """Bytes of a file, None where the store does not say."""
        size = self._files.info(self._place(path)).get("size")
        return None if size is None else int(size)

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end`` of a file."""
        data: bytes = self._files.cat_file(self._place(path), start=start, end=end)
        return data

    def _place(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{quote(path) if self._is_web else path}"


def _filesystem(uri: str) -> tuple[Any, str]:
    try:
        scheme = urlsplit(uri).scheme
        if scheme not in fsspec.available_protocols():
            raise ValueError(f"{scheme} is no scheme that fsspec knows")
        files, root = url_to_fs(uri, skip_instance_cache=True, **_patience(scheme))
    except (ImportError, ValueError) as error:
        raise StoreError(f"uri {uri!r}: {' '.join(str(error).split())}") from None
    return files, root


def _patience(scheme: str) -> dict[str, Any]:
    """How long to wait for a server that is silent, in each library's words."""
    if scheme in ("http", "https"):
        timeout = ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=_SILENCE_S)
        return {"client_kwargs": {"timeout": timeout}}
    if scheme == "s3":
        return {"config_kwargs": {"connect_timeout": _CONNECT_S, "read_timeout": _SILENCE_S}}
    return {}
