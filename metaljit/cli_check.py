"""What `check` makes of Metal source files.

In: paths. Out: diagnostics on standard error, a summary on standard output, and whether a file was refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from .cli_errors import echo, fault, progress, reason
from .cli_errors import report as report_all
from .source import MetaljitError, shown_path, undecodable

ENDING = ".metal"
MOST_BYTES = 64_000_000


def version(text: str) -> tuple[int, int]:
    """`2.3` … `4.0` as numbers; UsageError for another one."""
    from .runtime.msl.compile import VERSIONS

    known = {f"{major}.{minor}": (major, minor) for major, minor in VERSIONS}
    found = known.get(text.removeprefix("macos-").removeprefix("ios-").removeprefix("metal"))
    if found is None:
        raise click.UsageError(f"--std {text}: use one of {', '.join(known)}")
    return found


def macros(given: Sequence[str]) -> dict[str, str]:
    """`name=value` or `name`, which is 1."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name.isidentifier():
            raise click.UsageError(f"-D {text}: write -D NAME or -D NAME=VALUE")
        found[name] = value if equals else "1"
    return found


def check(path: str, std: tuple[int, int], include: Sequence[str], defines: dict[str, str]) -> bool:
    """Checks a file and says what was found; True where it is refused. Headers are looked for beside it too."""
    from .runtime.msl.check import check as check_text

    folders = (os.path.dirname(os.path.abspath(path)), *include)
    try:
        text = _read(path)
    except MetaljitError as e:  # the files behind it are checked all the same
        report_all(e.diagnostics)
        return True
    with progress(f"Checking {path}"):
        report = check_text(text, file=shown_path(path), version=std, include=folders, defines=defines)
    for diagnostic in report.findings:
        echo(str(diagnostic))
    errors = sum(d.severity == "error" for d in report.findings)
    verdict = f"{errors} error{'s' if errors > 1 else ''}" if errors else "ok"
    echo(f"{shown_path(path)}: {verdict}, for Metal {std[0]}.{std[1]}", err=False)
    if not report.judged and not errors:
        echo(f"  address spaces were not checked: {report.reason}", err=False)
    return report.refused


def _read(path: str) -> str:
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise fault("file-too-large", f"{path} has more than {MOST_BYTES // 1_000_000} million bytes")
        with open(path, "rb") as file:
            return file.read().decode()
    except OSError as e:
        raise fault("unreadable-file", f"{path} cannot be read: {reason(e)}") from e
    except UnicodeDecodeError as e:
        raise fault("msl-text", f"{path} is no UTF-8 text: {undecodable(e)}", "save it as UTF-8") from e
