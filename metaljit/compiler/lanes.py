"""A cooperative kernel's statements as loops over its threads, for one processor core.

In: a kernel without `return`. Out: C++ for one threadgroup. The statements between two barriers become a loop over
simdgroups, and in that loops over 32 lanes, which clang can vectorise; control flow around a barrier stands around those
loops. What is the same for all threads (or for a simdgroup) is computed once and stands in a plain variable. A thread's
value that outlives its loop lies in an array with a place for each lane.

The text is written twice: the first time finds which variables outlive their loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from enum import IntEnum
from math import prod

from ..dtypes import DType, Type
from ..frozen import frozen, mutable
from ..operation_rules import ADD
from ..source import Span
from . import ir
from .lane_rules import LANE, changed, leaves, position, source
from .msl_statements import Emitter, Printer, is_zero
from .spelling import literal, type_name
from .uniformity import SIMD_WIDTH, Level, flat_thread
from .usage import Usage, blocks, walk, walk_expressions

WORDS = ("unit", "begin", "end", "block", "simd", "lane", "memory", "element", "a", "b")  # of the text itself
FIRST_OF_OWN = 1 << 40  # numbers of variables and arrays that the kernel does not have


class Mode(IntEnum):
    """For whom a statement is printed: the group, one simdgroup, one lane."""

    GROUP = 0
    SIMD = 1
    LANE = 2


@mutable
class Home:
    """Where a variable was declared, and whether it is read outside of that loop over lanes, over simdgroups."""

    mode: Mode
    lanes: int
    simds: int
    type: Type
    size: int | None = None
    leaves_lanes: bool = False
    leaves_simds: bool = False

    @property
    def places(self) -> str:
        """ "" for a plain variable; else a place for each lane, each simdgroup, each thread."""
        if self.mode is Mode.GROUP:
            return ""
        if self.mode is Mode.SIMD:
            return "simds" if self.leaves_simds else ""
        return "threads" if self.leaves_simds else "lanes" if self.leaves_lanes else ""


@frozen
class Array:
    name: str
    type: str
    extents: str
    nbytes: int


@mutable
class Lanes(Printer):
    """The printer of one group's text; `levels` are those of the kernel's variables."""

    words = WORDS

    levels: dict[int, Level] = field(default_factory=dict)
    used: Usage = field(default_factory=Usage)
    homes: dict[int, Home] = field(default_factory=dict)
    arrays: list[Array] = field(default_factory=list)
    mode: Mode | None = None  # None: a device function, whose variables are its own
    lanes: int = 0  # loops over lanes so far
    simds: int = 0
    final: bool = False
    pending: list[ir.Stmt] = field(default_factory=list)

    @property
    def threads(self) -> int:
        return prod(self.kernel.threads)

    def group(self) -> None:
        """The text of a group, in `out`; twice."""
        for self.final in (False, True):
            self.out, self.arrays, self.mode = Emitter(depth=self.out.depth), [], Mode.GROUP
            self.lanes = self.simds = 0
            taken, names = set(self.scope.taken), dict(self.vars)
            self.block(self.kernel.body)
            if not self.final:
                self.scope.taken, self.vars = taken, names
        self.mode = None

    # ---- where variables lie ----

    def define(self, var: ir.Var, text: str, span: Span, *, constant: bool = True) -> None:
        if self.mode is None:
            super().define(var, text, span, constant=constant)
            return
        home = self._home(var.number, var.type)
        if not home.places:
            super().define(var, text, span, constant=constant)
            return
        name = self.vars[var.number] = self.scope.new(var.name)
        self._array(name, home)
        if text:
            self.out.line(f"{self.read(var)} = {text};", span)

    def declare(self, var: ir.Var) -> str:
        if self.mode is not None:
            self._home(var.number, var.type)
        return super().declare(var)

    def _home(self, number: int, type: Type, size: int | None = None) -> Home:
        if not self.final or number not in self.homes:
            assert self.mode is not None
            same = self.levels.get(number, Level.THREAD) <= Level(int(self.mode))
            self.homes[number] = Home(self.mode if same else Mode.LANE, self.lanes, self.simds, type, size)
        return self.homes[number]

    def _array(self, name: str, home: Home) -> None:
        counts = {"lanes": SIMD_WIDTH, "simds": self.threads // SIMD_WIDTH, "threads": self.threads}
        n, extra = counts[home.places], "" if home.size is None else f"[{max(home.size, 1)}]"
        nbytes = n * max(home.size or 1, 1) * home.type.lanes * max(home.type.scalar.nbytes, 4)
        self.arrays.append(Array(name, type_name(home.type), f"[{n}]{extra}", nbytes))

    def read(self, var: ir.Var) -> str:
        if var == LANE:
            return "lane"
        if self.mode is Mode.GROUP and var in self.kernel.positions[len(self.kernel.threads) :]:
            return "0"  # of a value that is the same for all threads, by the user's word
        return self.vars[var.number] + self._place(var.number)

    def array(self, local: ir.Local) -> str:
        return self.vars[local.number] + self._place(local.number)

    def _place(self, number: int) -> str:
        home = self.homes.get(number)
        if self.mode is None or home is None:
            return ""
        home.leaves_simds |= self.mode is Mode.GROUP or home.simds != self.simds
        home.leaves_lanes |= self.mode is not Mode.LANE or home.lanes != self.lanes
        if home.mode is Mode.GROUP:
            return ""
        return _PLACES[home.places, self.mode]

    def local_array(self, s: ir.LocalArray) -> None:
        if self.mode is None:
            super().local_array(s)
            return
        home = self._home(s.local.number, s.local.type, s.local.size)
        if not home.places:
            super().local_array(s)
            return
        name = self.vars[s.local.number] = self.scope.new(s.local.name)
        self._array(name, home)
        at = self.array(s.local)
        if is_zero(s.values):
            self.out.line(f"for (auto& element : {at}) {{ element = {type_name(s.local.type)}(0); }}")
            return
        for k, value in enumerate(s.values):
            self.out.line(f"{at}[{k}] = {self.expr(value)};")

    def _atomic(self, s: ir.Atomic) -> None:
        """A group's threads run one after the other here, so that its own arrays need no atomic access."""
        if self.mode is None or s.buffer.size is None:
            super()._atomic(s)
            return
        place = f"{self.buffers[s.buffer.name]}[{self.expr(s.offset)}]"
        self.define(s.var, literal(0, s.buffer.dtype), s.span, constant=False)
        new = self.expr(changed(s))
        self._guarded(s.guard, [f"{self.read(s.var)} = {place};", f"{place} = {new};"], s.span)

    # ---- blocks ----

    def block(self, body: Sequence[ir.Stmt]) -> None:
        if self.mode in (None, Mode.LANE):
            super().block(body)
            return
        outer, self.pending = self.pending, []
        for s in body:
            self._next(s)
        self._flush()
        self.pending = outer

    def _next(self, s: ir.Stmt) -> None:
        """One statement of a block that is not printed for lanes: it stands here, or in the next loop."""
        match s:
            case ir.Barrier():
                self._flush()
            case ir.Collective() if s.of_group == (self.mode is Mode.GROUP):
                self._together(s)
            case ir.TileFill() | ir.TileMove() | ir.TileMultiply() if self.mode is Mode.SIMD:
                self._flush()
                self.tiles(s)
            case ir.Let(var, value, _) if self._is_same(var):
                if not self._may_precede(value):
                    self._flush()
                self.statement(s)
            case _ if self._stands_here(s):
                self._flush()
                self.statement(s)
            case _:
                self.pending.append(s)

    def _is_same(self, var: ir.Var) -> bool:
        assert self.mode is not None
        return self.levels.get(var.number, Level.THREAD) <= Level(int(self.mode))

    def _may_precede(self, value: ir.Expr) -> bool:
        """Whether a value may be computed before the statements that are pending: nothing there changes it."""
        given = {s.var.number for s in walk(self.pending) if isinstance(s, _WITH_VARIABLE)}
        given |= {v.number for s in walk(self.pending) if isinstance(s, ir.CallInto) for v in s.results}
        for e in walk_expressions(value):
            if isinstance(e, ir.LocalLoad | ir.Call) or (isinstance(e, ir.Load) and e.buffer.writable):
                return not self.pending
            if isinstance(e, ir.Read) and e.var.number in given:
                return False
        return True

    def _stands_here(self, s: ir.Stmt) -> bool:
        """Whether a statement decides for the whole group (or simdgroup), or holds one that does."""
        match s:
            case ir.Break() | ir.Continue():
                return True
            case ir.Declare(var, _, _):
                return self._is_same(var)
            case ir.Assign(var, _, _):
                home = self.homes.get(var.number)
                return home is not None and home.mode is self.mode
            case ir.If() | ir.For() | ir.Loop() | ir.Once():
                return self._holds_one(s) or leaves(s) or self._goes_outside(s)
            case _:
                return False

    def _holds_one(self, s: ir.Stmt) -> bool:
        for inner in (i for b in blocks(s) for i in walk(b)):
            match inner:
                case ir.Barrier():
                    return True
                case ir.Collective() if inner.of_group == (self.mode is Mode.GROUP):
                    return True
                case ir.TileFill() | ir.TileMove() | ir.TileMultiply() if self.mode is Mode.SIMD:
                    return True
                case ir.Assign(var, _, _):
                    home = self.homes.get(var.number)
                    if home is not None and home.mode is self.mode:
                        return True
        return False

    def _goes_outside(self, s: ir.Stmt) -> bool:
        """Whether a counted loop goes around the lanes: then each turn is one vector operation after the other."""
        if self.mode is not Mode.SIMD or not isinstance(s, ir.For) or not self._is_same(s.var):
            return False
        return not any(map(leaves, s.body))

    def _flush(self) -> None:
        """The pending statements, in a loop over simdgroups or over lanes."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        if self.mode is Mode.GROUP:
            self.simds += 1
            with self.out.block(f"for (int simd = 0; simd < {self.threads // SIMD_WIDTH}; ++simd)"):
                self.mode = Mode.SIMD
                self._positions(Level.SIMD)
                self.block(pending)
            self.mode = Mode.GROUP
            return
        self.lanes += 1
        with self.out.block(f"for (int lane = 0; lane < {SIMD_WIDTH}; ++lane)"):
            self.mode = Mode.LANE
            self._positions(Level.THREAD)
            if self.used.checks:
                self.out.line(f"const uint gid = uint(unit * {self.threads} + 32 * simd + lane);")
            self.block(pending)
        self.mode = Mode.SIMD

    def _positions(self, level: Level) -> None:
        """Where the threads of this loop stand in their group, as far as it is the same for them; else the first one."""
        rank = len(self.kernel.threads)
        for k, var in enumerate(self.kernel.positions[rank:]):
            own = self.levels[var.number]
            if own is level or (level is Level.SIMD and own is not Level.GROUP):
                text = position(
                    prod(self.kernel.threads[k + 1 :]), self.kernel.threads[k], level, first=not k
                )
                self.out.line(f"const int {self.vars[var.number]} = {text};")

    # ---- what threads compute together ----

    def _together(self, s: ir.Collective) -> None:
        """Each lane's value goes to an array; what is made of them lies there too, or is one number."""
        of_group, type = s.of_group, s.value.type.scalar
        count = self.threads if of_group else SIMD_WIDTH
        own = flat_thread(self.kernel) if of_group else ir.Read(LANE)
        values = ir.Local(f"{s.var.name}_of", type, count, FIRST_OF_OWN + 2 + s.var.number)
        self.vars[values.number] = name = self.scope.new(values.name)
        self.arrays.append(Array(name, type_name(type), f"[{count}]", count * max(type.nbytes, 4)))
        self.pending.append(ir.LocalStore(values, own, s.value, None, s.span))
        self._flush()
        kind = s.op.partition("_")[2]
        match kind:
            case "sum" | "min" | "max":
                self.define(s.var, f"mj_lanes_reduce({name}, {count}, {self._combined(kind, type)})", s.span)
                return
            case "ballot":
                self.define(s.var, f"mj_lanes_ballot({name})", s.span)
                return
            case "prefix_inclusive_sum" | "prefix_exclusive_sum":
                exclusive = "true" if "exclusive" in kind else "false"
                self.out.line(
                    f"mj_lanes_prefix<{exclusive}>({name}, {count}, {self._combined('sum', type)});"
                )
                found = ir.LocalLoad(values, own)
            case "broadcast" if self._is_same(s.var):
                assert s.by is not None
                self.define(s.var, f"{name}[{self.expr(s.by)}]", s.span)
                return
            case _:
                assert s.by is not None
                found = ir.LocalLoad(values, source(kind, s.by))
        self.pending.append(ir.Let(s.var, found, s.span))

    def tiles(self, s: ir.TileFill | ir.TileMove | ir.TileMultiply) -> None:
        """A tile is an array of each simdgroup."""
        match s:
            case ir.TileFill(tile, value, makes, _):
                if makes:
                    name = self.vars[tile.number] = self.scope.new(tile.name)
                    simds = self.threads // SIMD_WIDTH
                    self.arrays.append(Array(name, type_name(tile.dtype), f"[{simds}][64]", 256 * simds))
                self.out.line(f"mj_tile_fill({self._tile(tile)}, {self.expr(value)});")
            case ir.TileMove(op, tile, buffer, offset, stride, guard, span):
                pointer = f"{self.buffers[buffer.name]} + {self.place(buffer, offset, ADD + 1)}"
                self._guarded(
                    guard, [f"mj_tile_{op}({self._tile(tile)}, {pointer}, {self.expr(stride)});"], span
                )
                if op == "load" and guard is not None:
                    zero = literal(0, tile.dtype)
                    self.out.lines[-1] += f" else {{ mj_tile_fill({self._tile(tile)}, {zero}); }}"
            case ir.TileMultiply(result, left, right, added, _):
                names = ", ".join(map(self._tile, (result, left, right, added)))
                self.out.line(f"mj_tile_multiply({names});")

    def _tile(self, tile: ir.Tile) -> str:
        return f"{self.vars[tile.number]}[simd]"

    def _combined(self, kind: str, type: DType) -> str:
        """A function of two values, as the operation table has it."""
        op = {"sum": "add", "min": "minimum", "max": "maximum"}[kind]
        a, b = ir.Var("a", type, FIRST_OF_OWN), ir.Var("b", type, FIRST_OF_OWN + 1)
        self.vars |= {a.number: "a", b.number: "b"}
        text = self.expr(ir.Apply(op, (ir.Read(a), ir.Read(b)), type))
        return f"[]({type_name(type)} a, {type_name(type)} b) {{ return {text}; }}"


_WITH_VARIABLE = (ir.Let, ir.Declare, ir.Assign, ir.Atomic, ir.Collective)
_PLACES = {
    (places, mode): text
    for places, texts in {
        "": ("", "", ""),
        "lanes": ("[0]", "[0]", "[lane]"),
        "simds": ("[0]", "[simd]", "[simd]"),
        "threads": ("[0]", "[32 * simd]", "[32 * simd + lane]"),
    }.items()
    for mode, text in zip(Mode, texts, strict=True)
}
