"""The process in which kernels run, so that a kernel can crash without taking Python along.

Started by `process.py` as a script, without packages. In: requests from a pipe, memory in a shared file. Out: a
status for each run on another pipe, the outcome in the shared file's first page. It ends when the pipe does.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

HEAD = struct.Struct("<III")  # bytes that follow, bytes of the path, bytes of the entry's name
REPLY = struct.Struct("<iI")  # status, bytes of a message that follows
RAN, NO_MEMORY, NOT_LOADED = 0, -1, -2
MOST_LOADED = 512


def serve(runtime: str, requests: int, replies: int, shared: int, control: int, page: int) -> None:
    library = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
    library.__emu_start.argtypes = (ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong)
    if library.__emu_start(shared, control, page):
        sys.exit("the shared memory cannot be mapped")
    run = library.__emu_run
    run.argtypes = (ctypes.c_char_p, ctypes.c_void_p)
    kernels: dict[bytes, ctypes.CDLL] = {}
    while (head := read(requests, HEAD.size)) is not None:
        nbytes, path_size, entry_size = HEAD.unpack(head)
        body = read(requests, nbytes)
        if body is None:
            return
        path, entry = body[:path_size], body[path_size : path_size + entry_size]
        try:
            kernel = kernels.get(path) or load(kernels, path)
            address = ctypes.cast(kernel[entry.decode()], ctypes.c_void_p)
        except (OSError, AttributeError) as e:
            text = str(e).encode()
            os.write(replies, REPLY.pack(NOT_LOADED, len(text)) + text)
            continue
        status = run(body[path_size + entry_size :], address)
        os.write(replies, REPLY.pack(status, 0))


def load(kernels: dict[bytes, ctypes.CDLL], path: bytes) -> ctypes.CDLL:
    if len(kernels) == MOST_LOADED:
        import _ctypes

        for old in kernels.values():
            _ctypes.dlclose(old._handle)
        kernels.clear()
    kernels[path] = kernel = ctypes.CDLL(os.fsdecode(path))
    return kernel


def read(pipe: int, nbytes: int) -> bytes | None:
    """That many bytes, or None where the pipe ends."""
    data = os.read(pipe, nbytes)
    while len(data) < nbytes:
        more = os.read(pipe, nbytes - len(data))
        if not more:
            return None
        data += more
    return data


if __name__ == "__main__":
    serve(sys.argv[1], *map(int, sys.argv[2:]))
