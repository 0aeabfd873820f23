"""The interface of the package metalcompute, on any machine: programs written for it run on the emulator.

    import metaljit.metalcompute as mc          # instead of: import metalcompute as mc
    sys.modules["metalcompute"] = mc            # for a program whose text stays as it is

It is the interface of version 0.2.9, in both of its generations and with its habits: a number is tried before bytes,
a buffer of no bytes cannot be made, only buffers are shared and anything else is copied, the grid is rounded up to
whole threadgroups, a run goes on in the background until it is deleted, texts are compiled for Metal 2.3.

Two things differ. What a run does wrong is not lost: a synchronous `run` raises `error`, and where a `Run` is deleted
Python prints the fault at once, as it does for every exception in a destructor, and the next call here raises it too.
And a run writes into a buffer when it ends, all at once: what Python writes there meanwhile is overwritten.

A buffer's last page is the kernel's, as on a GPU: the rounded grid of an unguarded kernel does no harm there. With
`METALJIT_SANITIZE=1` a buffer ends where it ends, and that kernel is reported.
"""

from metaljit.metalcompute_arguments import error
from metaljit.metalcompute_objects import Device, get_devices
from metaljit.metalcompute_simple import compile, init, release, rerun, run

for _made in (Device, compile, get_devices, init, release, rerun, run):
    _made.__module__ = __name__

__all__ = ["Device", "compile", "error", "get_devices", "init", "release", "rerun", "run"]
