"""The `metaljit` command: run, build, check, show, doctor, cache.

In: arguments. Out: files, text on standard output, diagnostics on standard error, and an exit status: 0, 1 for a
fault in the program or its data, 2 for wrong usage, 70 for a bug of metaljit, 130 for an interrupt. What the
commands do stands in `cli_inputs`, `cli_files`, `cli_calls`, `cli_kernels`, `cli_texts`, `cli_check` and `cli_doctor`,
loaded by the command that needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .cli_errors import FAULT, Group, echo, progress
from .compiled import VERSION
from .runtime.device import current

if TYPE_CHECKING:
    from .cli_kernels import TypeSpec
    from .kernels import Kernel


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="metaljit", message="%(prog)s %(version)s")
def cli() -> None:
    """Runs, builds and examines kernels in .mjk files.

    FILE[:KERNEL] names a kernel of a file, for example edges.mjk, or filters.mjk:blur where the file has several.
    """


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


_TARGET = click.argument("target", metavar="FILE[:KERNEL]")
_ARGS = click.option(
    "--arg",
    "args",
    multiple=True,
    metavar="NAME=VALUE",
    help="A number, a vector 1,2,3, or a const parameter.",
)
_TYPES = _options(
    click.option(
        "--in", "ins", multiple=True, metavar="NAME=TYPE", help="An array's type, for example u=f32[512,512]."
    ),
    _ARGS,
)


# ---- run ----


@cli.command()
@_TARGET
@click.option(
    "--in",
    "ins",
    multiple=True,
    metavar="NAME=VALUE",
    help="An array: a .npy, .npz, .png or .jpg file, or random:f32[512,512] (also zeros, ones, arange).",
)
@_ARGS
@click.option(
    "--out",
    "outs",
    multiple=True,
    metavar="[NAME=]PATH",
    help="Where a result goes; a .npz file takes all results.",
)
@click.option(
    "--device", metavar="NAME", help="cpu, metal or emulator; METALJIT_DEVICE or the best one if left out."
)
@click.option("--sanitize", is_flag=True, help="On the emulator, with every access checked.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="For random arrays (0).")
@click.option("--time", "timed", is_flag=True, help="Run again and again, and print the times.")
def run(
    target: str,
    ins: tuple[str, ...],
    args: tuple[str, ...],
    outs: tuple[str, ...],
    device: str | None,
    sanitize: bool,
    seed: int,
    timed: bool,
) -> None:
    """Runs a kernel on files, or on made-up arrays.

    A result is called `out`, several are `out0`, `out1`, …; those of a grid kernel have the names of its Out and
    InOut parameters. Without --out a small result is printed, a large one summarised.

    A picture becomes what its parameter declares: floats 0 … 1 or integers 0 … 255, grey for two axes, (H, W, 3) for
    three, and RGB for f32x3[H, W]. `grey:`, `rgb:`, `rgba:` or an element type before a file ask for something
    else: --in u=grey:photo.jpg, --in x=f32:float64.npy. A result in a picture is clipped to 0 … 1 (floats) or
    0 … 255.
    """
    from . import cli_calls as calls
    from . import cli_inputs as inputs
    from .cli_kernels import pairs, the_kernel

    wanted = inputs.parse_outs(outs)
    arrays, numbers = pairs("--in", ins, "u=photo.png"), pairs("--arg", args, "alpha=0.5")
    kernel = calls.placed(the_kernel(target), calls.sanitized(device) if sanitize else device)
    values = inputs.call_values(kernel, arrays, numbers, seed)
    with progress(f"Compiling {kernel.__name__}"):
        program = kernel.program(*values)
    inputs.check_outs(wanted, program)
    place = "emulator" if sanitize else device or current().name
    first_s, results = calls.call(kernel, program, values, place)
    more_s = calls.repeat(kernel, values) if timed else []
    written: dict[str, list[str]] = {}
    for name, path in wanted:
        for held in inputs.write_out(name, path, results):
            written.setdefault(held, []).append(path)
    click.echo(f"{kernel.__name__} on {place}")
    for a in program.outputs:
        click.echo(f"  {a.name}: {calls.described(a, results[a.name], written.get(a.name, []))}")
    for line in calls.times(first_s, more_s) if timed else ():
        click.echo(line)


# ---- build, check, show ----


def _types(ins: tuple[str, ...]) -> dict[str, TypeSpec]:
    from .cli_kernels import pairs, parse_type

    given = pairs("--in", ins, "u=f32[512,512]")
    return {name: parse_type(text, f"--in {name}") for name, text in given.items()}


def _check_options(kernels: list[Kernel], types: dict[str, Any], args: dict[str, str]) -> None:
    """UsageError for a name that no kernel has."""
    from .cli_kernels import check_names, signature

    params = [p for k in kernels for p in signature(k).params]
    check_names("--in", types, params, arrays=True)
    check_names("--arg", args, params, arrays=False)


@cli.command()
@_TARGET
@_TYPES
@click.option(
    "-o", "--output", required=True, metavar="PATH", help="x.metal, or x.metallib where Xcode is installed."
)
def build(target: str, ins: tuple[str, ...], args: tuple[str, ...], output: str) -> None:
    """Writes a kernel's Metal source, with a comment that says how to launch it.

    A kernel that is declared for several element types or ranks needs --in to choose.
    """
    from . import cli_texts as texts
    from .cli_files import check_writable, write_bytes
    from .cli_kernels import pairs, the_kernel, the_kind

    ending = texts.output_kind(output)
    check_writable(output)
    types, numbers = _types(ins), pairs("--arg", args, "radius=3")
    kernel = the_kernel(target)
    _check_options([kernel], types, numbers)
    with progress(f"Compiling {kernel.__name__}"):
        program = kernel.program(*the_kind(kernel, types, numbers).values)
    made = texts.metallib(program) if ending == ".metallib" else texts.metal_text(program).encode()
    write_bytes(output, made)
    click.echo(f"{kernel.__name__} -> {output}, {len(made)} bytes")


@cli.command()
@click.argument("targets", metavar="FILE[:KERNEL]...", nargs=-1, required=True)
@_TYPES
@click.option(
    "--std", default="2.3", metavar="VERSION", help="For .metal files: Metal's version, 2.3 (or 2.4 … 4.0)."
)
@click.option("-I", "include", multiple=True, metavar="FOLDER", help="For .metal files: where headers are.")
@click.option("-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="For .metal files: a macro.")
@click.pass_context
def check(
    ctx: click.Context,
    targets: tuple[str, ...],
    ins: tuple[str, ...],
    args: tuple[str, ...],
    std: str,
    include: tuple[str, ...],
    defines: tuple[str, ...],
) -> None:
    """Checks kernels for every declared element type, and packs of 0 to 4 axes; and Metal source files.

    Prints all errors, and the guards that remain: places where an index was not proved to be in range, with
    what the test costs. A kind that a static_assert of the kernel rules out is no error; neither is one whose
    number of axes does not fit the default of a const tuple.

    A .metal file, whoever wrote it, is refused where Apple's compiler would refuse it.
    """
    from . import cli_check as metal
    from . import cli_texts as texts
    from .cli_kernels import chosen, load, pairs

    types, numbers = _types(ins), pairs("--arg", args, "radius=3")
    version, macros = metal.version(std), metal.macros(defines)
    sources = [target for target in targets if target.endswith(metal.ENDING)]
    found_kernels = {target: chosen(*load(target)) for target in targets if target not in sources}
    _check_options([k for kernels in found_kernels.values() for k in kernels], types, numbers)
    wrong = sum(metal.check(path, version, include, macros) for path in dict.fromkeys(sources))
    for target, kernels in found_kernels.items():
        if len(targets) > 1:
            click.echo(f"{target}:")
        for kernel in kernels:
            found = texts.check(kernel, *_relevant(kernel, types, numbers))
            for text in found.error_texts():
                echo(text)
            for line in found.lines():
                echo(line, err=False)
            wrong += bool(found.errors)
    ctx.exit(FAULT if wrong else 0)


def _relevant(
    kernel: Kernel, types: dict[str, Any], args: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Of the options for several kernels those that this one has."""
    from .cli_kernels import signature

    names = {p.name for p in signature(kernel).params}
    return {n: t for n, t in types.items() if n in names}, {n: v for n, v in args.items() if n in names}


@cli.command()
@_TARGET
@_TYPES
@click.option(
    "--msl", "form", flag_value="msl", default=True, help="The Metal source (this is the usual form)."
)
@click.option("--tree", "form", flag_value="tree", help="What the parser made of the text.")
@click.option("--ir", "form", flag_value="ir", help="The typed form that the compiler works on.")
@click.option(
    "--cpu", "form", flag_value="cpu", help="The C++ loops that call the Metal source on the cpu device."
)
def show(target: str, ins: tuple[str, ...], args: tuple[str, ...], form: str) -> None:
    """Prints what the compiler makes of kernels.

    Without --in for every declared element type, and packs of 0 to 4 axes.
    """
    from . import cli_texts as texts
    from .cli_kernels import chosen, kinds_of, load, pairs
    from .kernels import Function, Kernel

    types, numbers = _types(ins), pairs("--arg", args, "radius=3")
    file, name = load(target)
    kernels = chosen(file, name)
    _check_options(kernels, types, numbers)
    if form == "tree":
        own = file.__metaljit_text__.members.values()
        members: list[Any] = kernels if name else [m for m in own if isinstance(m, Kernel | Function)]
        click.echo("\n".join(line for m in members for line in texts.tree_text(m.definition.tree)))
        return
    comment = "# " if form == "ir" else "// "
    for kernel in kernels:
        kinds = kinds_of(kernel, *_relevant(kernel, types, numbers))
        for kind in kinds.kinds:
            if len(kernels) > 1 or len(kinds.kinds) > 1:
                click.echo(f"{comment}==== {kernel.__name__}{f' for {kind}' if kind.choices else ''} ====")
            click.echo(_form(kernel, kind, form), nl=False)


def _form(kernel: Kernel, kind: Any, form: str) -> str:
    from .cli_texts import ir_text

    if form == "ir":
        return ir_text(kernel, kind)
    program = kernel.program(*kind.values)
    return program.msl if form == "msl" else program.cpu.text


# ---- doctor, cache ----


@cli.command("ops")
@click.argument("name", required=False)
def ops_command(name: str | None) -> None:
    """Lists the standard ops, or prints the entry of one."""
    from . import cli_ops

    for line in cli_ops.listing() if name is None else cli_ops.described(name):
        click.echo(line)


@cli.command()
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Says what was found, what is missing and what to do.

    Exit status 1 where no device works.
    """
    from . import cli_doctor

    broken = False
    for finding in cli_doctor.examine():
        broken = broken or finding.state == "broken"
        for line in finding.lines():
            click.echo(line)
    ctx.exit(FAULT if broken or not cli_doctor.works() else 0)


@cli.group(cls=click.Group)
def cache() -> None:
    """The compiled kernels on disk."""


@cache.command("info")
def cache_info() -> None:
    """Prints the folder, what it holds and its limit."""
    from .cli_doctor import describe_cache
    from .runtime.cache import disk

    info = disk().info()
    if info.trouble:
        click.echo(f"nothing is kept on disk: {info.trouble}")
    elif info.folder is None:
        click.echo("the disk cache is off (METALJIT_CACHE=0)")
    else:
        click.echo(describe_cache(info))


@cache.command("clear")
def cache_clear() -> None:
    """Removes the compiled kernels, and nothing else that may lie in the folder."""
    from .runtime.cache import disk

    removed = disk().clear()
    click.echo(f"removed {removed} entr{'y' if removed == 1 else 'ies'}")


def main() -> None:
    """The console script."""
    cli(prog_name="metaljit")


if __name__ == "__main__":
    main()
