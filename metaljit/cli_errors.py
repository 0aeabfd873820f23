"""How the command line fails, and how it shows that something takes long.

In: an exception that a command let through. Out: its text on standard error and an exit status: 1 for a fault in
the program or its data, 2 for wrong usage (click's own), 70 for a bug of metaljit, 130 for an interrupt.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from .source import MAX_REPORTED, Diagnostic, InternalError, MetaljitError

FAULT = 1
BUG = 70
INTERRUPTED = 130
PATIENCE_S = 1.0  # what takes longer says so
_TRACEBACK = "metaljit.traceback"
_STYLES = (
    (r"(?m)^\S.*?:\d+:\d+: ", "bold"),
    (r"(?m)(?:(?<=^)|(?<=: ))error:", "bold red"),
    (r"(?m)(?:(?<=^)|(?<=: ))note:", "bold cyan"),
    (r"(?m) \[[a-z0-9-]+\]$", "dim"),
    (r"(?m)^ +\| +\^.*$", "red"),
    (r"(?m)^ +\| +-.*$", "blue"),
    (r"(?m)^  help: .*$", "green"),
)


class Command(click.Command):
    """A command with the options that all have."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(_traceback_option())


class Group(click.Group):
    """The `metaljit` command: turns what a subcommand raises into text and an exit status."""

    command_class = Command

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.params.append(_traceback_option())

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except InternalError as e:
            _fail_as_bug(ctx, str(e))
        except MetaljitError as e:
            report(e.diagnostics)
            ctx.exit(FAULT)
        except MemoryError as e:
            click.echo(f"error: there is not enough memory{f': {e}' if str(e) else ''}", err=True)
            ctx.exit(FAULT)
        except Exception as e:
            name = type(e).__name__
            _fail_as_bug(ctx, f"error: metaljit itself failed: {name}{f': {e}' if str(e) else ''}")


def _traceback_option() -> click.Option:
    return click.Option(
        ["--traceback"],
        is_flag=True,
        expose_value=False,
        callback=_note_traceback,
        help="Show the Python traceback of an internal error.",
    )


def _note_traceback(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_TRACEBACK] = True


def _fail_as_bug(ctx: click.Context, message: str) -> NoReturn:
    click.echo(message, err=True)
    click.echo(
        "This is our bug, not yours: please report it, with this command and the kernel's text.", err=True
    )
    if ctx.meta.get(_TRACEBACK):
        click.echo(traceback.format_exc(), err=True, nl=False)
    else:
        click.echo("--traceback shows where it happened.", err=True)
    ctx.exit(BUG)


def fault(slug: str, message: str, help: str = "") -> MetaljitError:
    """An error of the command line's own, about a file or a tool."""
    return MetaljitError(Diagnostic(slug, message, help=help))


def reason(e: BaseException) -> str:
    """Why the system or a library refused, in one line."""
    text = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
    return " ".join(text.split()) or type(e).__name__


# ---- showing ----


def report(diagnostics: Any, limit: int = MAX_REPORTED) -> None:
    """Diagnostics on standard error, in colour where it is a terminal that wants any."""
    for d in diagnostics[:limit]:
        echo(str(d))
    if len(diagnostics) > limit:
        echo(f"… and {len(diagnostics) - limit} more errors")


def echo(text: str, err: bool = True) -> None:
    """Text with its parts coloured as those of a diagnostic are."""
    if not _coloured(err):
        click.echo(text, err=err)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    for pattern, style in _STYLES:
        styled.highlight_regex(pattern, style)
    Console(stderr=err, highlight=False).print(styled, soft_wrap=True)


def _coloured(err: bool) -> bool:
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(message: str) -> Iterator[None]:
    """A spinner on a terminal's standard error, once the body has taken a second."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    spinner = _Spinner(message)
    timer = threading.Timer(PATIENCE_S, spinner.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        spinner.stop()


class _Spinner:
    """rich's spinner, started by one thread and stopped by another, at most once each."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._lock = threading.Lock()
        self._status: Any = None
        self._ended = False

    def start(self) -> None:
        from rich.console import Console

        with self._lock:
            if not self._ended:
                self._status = Console(stderr=True).status(self._message)
                self._status.start()

    def stop(self) -> None:
        with self._lock:
            self._ended = True
            if self._status is not None:
                self._status.stop()
