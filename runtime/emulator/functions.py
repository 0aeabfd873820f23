"""Metal's library and function: a text's kernels, compiled when they are asked for, and run.

    library = Library(text)                       # preprocessed, checked; DeviceFault where it is refused
    saxpy = library.function("saxpy")             # compiled, or found in the cache
    saxpy.run({0: Binding(...), 1: ...}, groups=(4, 1, 1), threadgroup=(256, 1, 1))

Buffers are bound by their `[[buffer(i)]]` index, as an encoder binds them. What a run finds wrong is raised,
or given back in lenient mode.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property

from metaljit.frozen import frozen
from metaljit.runtime.emulator.faults import Fault
from metaljit.runtime.emulator.process import Binding, Run, run
from metaljit.runtime.msl import compile as clang
from metaljit.runtime.msl.check import check
from metaljit.runtime.msl.compile import DEFAULT, Message, Options, Refused
from metaljit.runtime.msl.kernels import Kernel
from metaljit.runtime.msl.places import Edited, Places
from metaljit.runtime.msl.rewrite import Translation, translate
from metaljit.runtime.msl.tokens import Tokens, Unbalanced
from metaljit.source import DeviceFault, Diagnostic, Span

Size = tuple[int, int, int]
MOST_THREADS = 1024


class Library:
    """The kernels of an MSL text. `names` are what `function` takes: names, or host names of instantiations."""

    def __init__(self, text: str, options: Options = DEFAULT, *, strict: bool = True) -> None:
        """DeviceFault with every error where Metal would refuse the text.

        Without `strict` a kernel is looked at when it is compiled, and by clang alone: for text that was made here.
        """
        self.text, self.options = clang.plain(text), options
        self._functions: dict[tuple[object, ...], Function] = {}
        if strict:
            self._check()
        self.translation = self._translate()
        self.names = tuple(self.translation.kernels)

    def _check(self) -> None:
        o = self.options
        report = check(self.text, file=o.file, version=o.version, include=o.include, defines=dict(o.defines))
        if report.refused:
            raise DeviceFault(*(d for d in report.findings if d.severity == "error"))

    def _translate(self) -> Translation:
        try:
            return translate(clang.preprocess(self.text, self.options))
        except Refused as e:
            raise self.refused(e.messages) from None
        except Unbalanced as e:
            raise self.refused([Message(self.options.file, *e.place, "error", str(e))]) from None

    def refused(self, messages: Sequence[Message]) -> DeviceFault:
        return DeviceFault(*map(self._diagnostic, messages))

    def _diagnostic(self, message: Message) -> Diagnostic:
        """Clang's message, drawn on the user's line."""
        places = Places(Tokens(), self.options.file, self.text)
        span = places.line(message.file, message.line, message.column)
        where = "" if span else f"{message.file}:{message.line}:{message.column}"
        return Diagnostic("msl-refused", message.text, span, severity=message.severity, where=where)

    def described(self, fault: Fault) -> Diagnostic:
        """A fault of a run, drawn on the line of the kernel's text."""
        span = self._span(fault.location) if fault.location else None
        second = None
        if fault.second and (other := self._span(fault.second[0])):
            second = (other, fault.second[1])
        where = "" if span else fault.location or self.options.file
        return Diagnostic(fault.kind, f"{fault.kernel}: {fault.message}", span, second=second, where=where)

    def _span(self, location: str) -> Span | None:
        """The word at `file:line:column` of the translated text, where the user wrote it."""
        *named, line, column = location.rsplit(":", 2)
        edited, places = self._places
        at = edited.token(named[0] if named else self.options.file, int(line), int(column))
        return places.span(at) if at is not None else None

    @cached_property
    def _places(self) -> tuple[Edited, Places]:
        tokens = self.translation.tokens
        return Edited(tokens), Places(tokens, self.options.file, self.text)

    def function(
        self, name: str, constants: Mapping[str, str] | None = None, *, sanitize: bool = False
    ) -> Function:
        """A kernel with these values of function constants, by name or index, as C++ spells them.

        KeyError where the text has no such kernel, DeviceFault where it does not compile.
        """
        given = tuple(sorted((constants or {}).items()))
        made = self._functions.get((name, given, sanitize))
        if made is None:
            source = self.translation.source([name], constants)
            made = Function(self, self.translation.kernels[name], source, sanitize)
            made.path()
            self._functions[name, given, sanitize] = made
        return made

    def build(self, source: str, sanitize: bool) -> str:
        """The path of the library of a kernel."""
        try:
            return clang.build(source, clang.SANITIZED if sanitize else ())
        except Refused as e:
            raise self.refused(e.messages) from None


@frozen
class Function:
    """A compiled kernel: `most_threads` is what a threadgroup of it may have."""

    library: Library
    kernel: Kernel
    source: str
    sanitize: bool

    @cached_property
    def most_threads(self) -> int:
        return min(self.kernel.most_threads or MOST_THREADS, MOST_THREADS)

    @cached_property
    def _paths(self) -> list[str]:
        return [self.library.build(self.source, self.sanitize)]

    def path(self) -> str:
        """The shared library, compiled again where the cache has been cleared meanwhile."""
        if not os.path.exists(self._paths[0]):
            self._paths[0] = self.library.build(self.source, self.sanitize)
        return self._paths[0]

    def run(
        self,
        buffers: Mapping[int, Binding],
        *,
        groups: Size | None = None,
        threads: Size | None = None,
        threadgroup: Size,
        memory: Mapping[int, int] | None = None,
        lenient: bool = False,
        seed: int | None = None,
    ) -> tuple[Fault, ...]:
        """Runs the grid: `groups` threadgroups of `threadgroup` threads, or `threads` threads with partial groups.

        `memory` is the length in bytes of each `[[threadgroup(i)]]` argument. Writable buffers hold the results
        afterwards, unless a run that is not lenient found faults: they are returned. Crash where the run did not end.
        """
        what = Run(
            self.path(),
            "__emu_entry_0",
            self.kernel.name,
            buffers,
            memory or {},
            groups,
            threads,
            threadgroup,
            self.sanitize,
            lenient,
            seed,
        )
        return run(what)
