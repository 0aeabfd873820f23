"""The disk cache and the once-only builds: concurrency, damage, limits, folders that cannot be used."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaljit.runtime import cache
from metaljit.runtime.cache import Disk, Once, key
from metaljit.source import DeviceFault, Diagnostic

K = key("k")
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(str(tmp_path))


def files(disk: Disk) -> list[Path]:
    assert disk.folder is not None
    return [f for f in Path(disk.folder).rglob("*") if f.is_file()]


FIELDS = st.lists(st.one_of(st.text(max_size=3), st.binary(max_size=3)), max_size=4)


@given(FIELDS, FIELDS)
def test_keys_tell_lists_of_fields_apart(a: list[str | bytes], b: list[str | bytes]) -> None:
    as_bytes = [[f.encode() if isinstance(f, str) else f for f in fields] for fields in (a, b)]
    assert (key(*a) == key(*b)) == (as_bytes[0] == as_bytes[1])


def test_keys_are_sha256_over_lengths_and_fields() -> None:
    import hashlib

    assert key("ab", b"c") == hashlib.sha256(b"2:ab1:c").hexdigest()
    assert key("a", "bc") != key("ab", "c")


def test_bytes_come_back(disk: Disk) -> None:
    assert disk.get(K) is None
    assert disk.path(K) is None
    path = disk.put(K, b"one")
    assert path is not None
    assert disk.get(K) == b"one"
    assert disk.path(K) == path
    assert Path(path).read_bytes() == b"one"
    assert disk.get(key("other")) is None
    assert disk.info().entries == 1
    assert disk.info().nbytes == 3


@pytest.mark.parametrize("damage", [b"", b"on", b"onE", b"one\0", b"two"])
def test_damage_is_a_miss_and_is_removed(disk: Disk, damage: bytes) -> None:
    path = disk.put(K, b"one")
    assert path is not None
    Path(path).write_bytes(damage)
    assert disk.get(K) is None
    assert files(disk) == []
    disk.put(K, b"one")
    assert disk.get(K) == b"one"


def test_no_trace_of_a_write_that_fails(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert disk.put(K, b"one") is None
    assert disk.get(K) is None
    assert files(disk) == []
    assert "No space left" in str(disk.info().trouble)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def into_the_full(path: Any, flags: int, mode: int = 0o777) -> int:
        return opened("/dev/full", os.O_WRONLY) if str(path).endswith(".tmp") else opened(path, flags, mode)

    monkeypatch.setattr(os, "open", into_the_full)
    assert disk.put(K, b"one") is None
    assert "No space left" in str(disk.info().trouble)


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path / "file" / "inside"))
    disk = cache.disk()
    assert disk.put(K, b"one") is None
    assert disk.get(K) is None
    assert disk.clear() == 0
    assert disk.info().folder is None
    assert disk.info().trouble


def test_the_folder_is_made_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path / "new"))
    path = cache.disk().put(K, b"one")
    assert path is not None
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert Path(path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int
) -> None:
    folder = tmp_path / str(mode)
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(folder))
    with pytest.raises(DeviceFault, match="may be written by other users") as caught:
        cache.disk()
    assert caught.value.slug == "cache-folder-unsafe"
    folder.chmod(0o755)
    assert cache.disk().folder == str(folder)


@ROOT_ONLY
def test_somebody_elses_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, -1)
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    with pytest.raises(DeviceFault, match="belongs to user 12345"):
        cache.disk()


def test_a_file_as_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "file").chmod(0o600)
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path / "file"))
    assert cache.disk().folder is None


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALJIT_CACHE", "0")
    assert cache.disk().put(K, b"one") is None
    assert cache.disk().info().folder is None


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("512MB", 512_000_000), ("2 gib", 2**31), ("3k", 3000), ("10B", 10)]
)
def test_sizes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, size: int) -> None:
    monkeypatch.setenv("METALJIT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("METALJIT_CACHE_SIZE", text)
    assert cache.disk().limit == size


@pytest.mark.parametrize("text", ["lots", "-1", "5TB", "1.5GB", "MB"])
def test_sizes_that_are_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("METALJIT_CACHE_SIZE", text)
    with pytest.raises(DeviceFault, match="is no size"):
        cache.disk()


@pytest.mark.parametrize(
    ("system", "xdg", "expected"),
    [
        ("linux", "", "/home/u/.cache/metaljit"),
        ("linux", "/x", "/x/metaljit"),
        ("darwin", "/x", "/home/u/Library/Caches/metaljit"),
    ],
)
def test_the_usual_folder_is_platformdirs(
    monkeypatch: pytest.MonkeyPatch, system: str, xdg: str, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    if sys.platform == system:
        import platformdirs

        assert cache._usual_folder() == platformdirs.user_cache_dir("metaljit")
    monkeypatch.setattr(sys, "platform", system)
    assert cache._usual_folder() == expected


def test_the_entries_unused_for_longest_go_first(disk: Disk) -> None:
    disk.limit = 100
    keys = [key(str(i)) for i in range(4)]
    for age, k in enumerate(keys[:3]):
        path = disk.put(k, bytes([age]) * 30)
        assert path is not None
        os.utime(path, (10**9 + 10**5 * age,) * 2)
    assert disk.get(keys[0]) is not None  # a use counts
    disk.put(keys[3], b"x" * 30)
    assert [disk.get(k) is not None for k in keys] == [True, False, True, True]
    assert disk.info().nbytes <= 100


def test_the_limit_holds_over_many_entries(tmp_path: Path) -> None:
    disks = [Disk(str(tmp_path), limit=1000) for _ in range(2)]
    for i in range(60):
        disks[i % 2].put(key(str(i)), os.urandom(90))
    assert Disk(str(tmp_path)).info().nbytes <= 2000  # each writer looks when its own count passes the limit
    disks[0].put(key("last"), os.urandom(950))
    assert disks[0].get(key("last")) is not None
    assert Disk(str(tmp_path)).info().nbytes <= 1900


def test_an_entry_larger_than_the_limit_is_not_kept(disk: Disk) -> None:
    disk.limit = 10
    assert disk.put(K, b"x" * 11) is None


def test_stale_drafts_are_removed_and_fresh_ones_are_not(disk: Disk) -> None:
    path = disk.put(K, b"one")
    assert path is not None
    drafts = [Path(path).with_name(f".{i}.{'0' * 12}.tmp") for i in (1, 2)]
    for draft in drafts:
        draft.write_bytes(b"half")
    os.utime(drafts[0], (10**9, 10**9))
    Disk(disk.folder).put(key("other"), b"two")
    assert [d.exists() for d in drafts] == [False, True]


def test_clear_removes_entries_and_nothing_else(disk: Disk, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "notes").write_text("mine")
    for i in range(3):
        disk.put(key(str(i)), b"x")
    assert disk.clear() == 3
    assert disk.info().entries == 0
    assert {f.name for f in files(disk)} == {"thesis.txt", "notes"}


def test_many_processes_write_one_entry(tmp_path: Path) -> None:
    script = (
        "import sys; from metaljit.runtime.cache import Disk, key\n"
        "disk = Disk(sys.argv[1])\n"
        "for i in range(50):\n"
        "    disk.put(key(str(i % 5)), str(i % 5).encode() * 1000)\n"
        "    found = disk.get(key(str(i % 5)))\n"
        "    assert found == str(i % 5).encode() * 1000, found\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(6)]
    assert [process.wait(60) for process in running] == [0] * 6
    assert Disk(str(tmp_path)).info().entries == 5
    assert len(files(Disk(str(tmp_path)))) == 5


def test_threads_build_once() -> None:
    once: Once[int] = Once()
    built: list[int] = []
    ready = threading.Barrier(8)

    def make() -> int:
        built.append(1)
        threading.Event().wait(0.02)
        return 7

    def ask() -> None:
        ready.wait()
        results.append(once.get("k", make))

    results: list[int] = []
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [7] * 8
    assert built == [1]


def test_a_failure_is_remembered_and_an_interruption_is_not() -> None:
    once: Once[int] = Once()
    calls: list[int] = []

    def fail() -> int:
        calls.append(1)
        raise DeviceFault(Diagnostic(slug, f"attempt {len(calls)}"))

    slug = "metal-refused"
    for _ in range(2):
        with pytest.raises(DeviceFault, match="attempt 1"):
            once.get("k", fail)
    slug = "toolchain-missing"
    for attempt in (2, 3):
        with pytest.raises(DeviceFault, match=f"attempt {attempt}"):
            once.get("mended later", fail)
    assert once.get("mended later", lambda: 4) == 4

    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once.get("other", interrupted)
    assert once.get("other", lambda: 3) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_build_under_way_at_a_fork_does_not_block_the_child() -> None:
    script = """
import os, threading
from metaljit.runtime.cache import Once
once, started, go_on = Once(), threading.Event(), threading.Event()
def slow():
    started.set(); go_on.wait(20); return 1
thread = threading.Thread(target=once.get, args=("k", slow)); thread.start(); started.wait()
once._lock.acquire()  # as if another thread were about to add a key
child = os.fork()
if child == 0:
    os._exit(once.get("k", lambda: 2) + once.get("new", lambda: 5))
status = os.waitpid(child, 0)[1]
once._lock.release()
go_on.set(); thread.join()
assert os.waitstatus_to_exitcode(status) == 7
assert once.get("k", lambda: 3) == 1
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)
