"""What was built once: on disk for every process, in memory for this one.

On disk, bytes by key: `get`, `put`, `path` (a file that the loader of shared libraries can open), `info`,
`clear`. A key is SHA-256 over length-prefixed fields. An entry is one file whose name holds the key and
the checksum of its contents, so it appears whole or not at all, needs no second file, and shows damage. A
folder that cannot be written is worked without; one that somebody else could write to is refused, since
entries are code that gets loaded. `METALJIT_CACHE=0` turns the disk off, `METALJIT_CACHE_DIR` moves it,
`METALJIT_CACHE_SIZE` bounds it.

In memory, `Once`: one build per key, whatever the number of threads; failures are kept here only.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from functools import lru_cache
from typing import Generic, TypeVar

from metaljit.frozen import frozen, mutable
from metaljit.source import DeviceFault, Diagnostic, MetaljitError

try:  # hashlib loads OpenSSL, which takes longer than the first call of a cached kernel should
    from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from hashlib import sha256

VERSION = "v1"
DEFAULT_SIZE = 512_000_000
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}
_DIGEST = 32  # hexadecimal digits of the checksum in a name
# Faults of the surroundings, which may be mended before the next call; all others stay as they are.
_PASSING = frozenset({"toolchain-missing", "toolchain-unusable", "cache-folder-unsafe", "library-not-loaded"})
_STALE = 3600.0  # seconds after which a temporary file has no writer any more, and a use is noted again
T = TypeVar("T")


def key(*fields: str | bytes) -> str:
    """SHA-256 over the fields, each behind its length, so that no two lists of fields run together."""
    total = sha256()
    for item in fields:
        data = item.encode() if isinstance(item, str) else item
        total.update(b"%d:" % len(data))
        total.update(data)
    return str(total.hexdigest())


@frozen
class Info:
    """The state of the disk cache: `folder` is None where it is off, `trouble` says why it cannot be used."""

    folder: str | None
    entries: int
    nbytes: int
    limit: int
    trouble: str | None


@mutable
class Disk:
    """The entries in one folder (None: nothing is kept). Any number of processes may use a folder at once."""

    folder: str | None
    limit: int = DEFAULT_SIZE
    trouble: str | None = None
    _written: int | None = field(default=None, repr=False)

    def get(self, key: str) -> bytes | None:
        """The bytes of a key, or None. An entry whose contents do not match its name is removed."""
        found = self._find(key)
        return found and found[1]

    def path(self, key: str) -> str | None:
        """The file of a key, checked like `get`. It may vanish at any time: a load that fails is a miss."""
        found = self._find(key)
        return found and found[0]

    def put(self, key: str, data: bytes) -> str | None:
        """Keeps the bytes and gives their file, or None where nothing can be kept (`trouble` says why)."""
        if self.folder is None or len(data) > self.limit:
            return None
        shard = self._shard(key)
        final = os.path.join(shard, f"{key}.{_checksum(data)}")
        draft = os.path.join(shard, f".{os.getpid()}.{os.urandom(6).hex()}.tmp")
        try:
            os.makedirs(shard, mode=0o700, exist_ok=True)
            try:
                with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(data)
                os.replace(draft, final)
            except BaseException:
                with suppress(OSError):
                    os.unlink(draft)
                raise
        except OSError as e:
            self.trouble = str(e)
            return None
        self._shrink(len(data), final)
        return final

    def info(self) -> Info:
        sizes = [status.st_size for _, status in self._entries()]
        return Info(self.folder, len(sizes), sum(sizes), self.limit, self.trouble)

    def clear(self) -> int:
        """Removes the entries (and nothing else that may lie in the folder); gives their number."""
        removed = 0
        for path, _ in self._entries(drafts=True):
            with suppress(OSError):
                os.unlink(path)
                removed += not path.endswith(".tmp")
        return removed

    def _shard(self, key: str) -> str:
        assert self.folder is not None
        return os.path.join(self.folder, VERSION, key[:2])

    def _find(self, key: str) -> tuple[str, bytes] | None:
        if self.folder is None:
            return None
        shard = self._shard(key)
        try:
            names = [name for name in os.listdir(shard) if name.startswith(key)]
        except OSError:
            return None
        for name in names:
            path = os.path.join(shard, name)
            with suppress(OSError):
                with open(path, "rb") as file:
                    data = file.read()
                    used = os.fstat(file.fileno()).st_mtime
                if name == f"{key}.{_checksum(data)}":
                    if time.time() - used > _STALE:
                        os.utime(path)
                    return path, data
                os.unlink(path)
        return None

    def _entries(self, drafts: bool = False) -> Iterator[tuple[str, os.stat_result]]:
        if self.folder is None:
            return
        for shard in _scan(os.path.join(self.folder, VERSION)):
            for entry in _scan(shard.path):
                if _ENTRY.fullmatch(entry.name) or (drafts and _DRAFT.fullmatch(entry.name)):
                    with suppress(OSError):
                        yield entry.path, entry.stat(follow_symlinks=False)

    def _shrink(self, added: int, newest: str) -> None:
        """Removes the entries unused for longest once the limit is passed; looks only when that may be so."""
        if self._written is not None and self._written + added <= self.limit:
            self._written += added
            return
        entries = sorted(self._entries(drafts=True), key=lambda e: e[1].st_mtime)
        total = sum(status.st_size for _, status in entries)
        goal = self.limit if total <= self.limit else self.limit * 9 // 10
        for path, status in entries:
            stale = path.endswith(".tmp") and time.time() - status.st_mtime > _STALE
            if (total > goal and path != newest and not path.endswith(".tmp")) or stale:
                with suppress(OSError):
                    os.unlink(path)
                    total -= status.st_size
        self._written = total


_ENTRY = re.compile(rf"[0-9a-f]{{64}}\.[0-9a-f]{{{_DIGEST}}}")
_DRAFT = re.compile(r"\.\d+\.[0-9a-f]{12}\.tmp")


def _checksum(data: bytes) -> str:
    return str(sha256(data).hexdigest()[:_DIGEST])


def _scan(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def disk() -> Disk:
    """The disk cache that the environment asks for. DeviceFault where its folder is not safe to load from."""
    setting = os.environ.get
    return _disk(setting("METALJIT_CACHE", ""), setting("METALJIT_CACHE_DIR", ""),
                 setting("METALJIT_CACHE_SIZE", ""))  # fmt: skip


@lru_cache(maxsize=8)
def _disk(switch: str, folder: str, size: str) -> Disk:
    limit = _size(size) if size else DEFAULT_SIZE
    if switch == "0":
        return Disk(None, limit)
    folder = os.path.abspath(folder or _usual_folder())
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as e:
        return Disk(None, limit, str(e))
    _refuse_unsafe(folder, status)
    return Disk(folder, limit)


def _usual_folder() -> str:
    """What platformdirs says for these systems; importing it takes longer than a cached kernel should."""
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/metaljit")
    base = os.environ.get("XDG_CACHE_HOME", "").strip() or os.path.expanduser("~/.cache")
    return os.path.join(base, "metaljit")


def _refuse_unsafe(folder: str, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        reason = "is not a folder"
    elif status.st_uid != os.geteuid():
        reason = f"belongs to user {status.st_uid}, and this process runs as user {os.geteuid()}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        reason = f"may be written by other users (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise DeviceFault(
        Diagnostic(
            "cache-folder-unsafe",
            f"the cache folder {folder} {reason}; it holds code that gets loaded",
            help="name a private folder in METALJIT_CACHE_DIR, `chmod 700` this one, or set METALJIT_CACHE=0",
        )
    )


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([KMG]?I?B?)", text.strip().upper())
    unit = found and _UNITS.get(found[2].rstrip("B"))
    if found is None or unit is None:
        raise DeviceFault(
            Diagnostic(
                "bad-setting",
                f"METALJIT_CACHE_SIZE is {text!r}, which is no size",
                help="write a number of bytes, or one like 512MB or 2GB",
            )
        )
    return int(found[1]) * unit


class _Slot(Generic[T]):
    __slots__ = ("error", "lock", "value")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.value: T | None = None
        self.error: MetaljitError | None = None


class Once(Generic[T]):
    """Values by key, each made once; a failed build is kept too, and fails again at every call."""

    def __init__(self) -> None:
        self._reset()
        if hasattr(os, "register_at_fork"):
            # A lock that another thread held when the process forked is never released in the child.
            os.register_at_fork(after_in_child=self._unlock)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[str, _Slot[T]] = {}

    def _unlock(self) -> None:
        self._lock = threading.Lock()
        for slot in self._slots.values():
            slot.lock = threading.Lock()

    def get(self, key: str, make: Callable[[], T]) -> T:
        slot = self._slots.get(key)
        if slot is None:
            with self._lock:
                slot = self._slots.setdefault(key, _Slot())
        if slot.value is None and slot.error is None:
            with slot.lock:
                if slot.value is None and slot.error is None:
                    try:
                        slot.value = make()
                    except MetaljitError as e:
                        if e.slug in _PASSING:
                            raise
                        slot.error = e
        if slot.error is not None:
            raise slot.error.with_traceback(None)
        assert slot.value is not None
        return slot.value
