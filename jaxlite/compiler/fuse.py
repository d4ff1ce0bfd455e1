"""Fusion: decides which equations share a kernel, and says why for every edge where it decides.

In: a simplified jaxpr.  Out: :class:`Group` objects in an order that respects what reads what, and decisions.  Rules:

* elementwise equations of one shape that depend on each other join into one ``map``;
* a reduction over the trailing axes makes its group a ``row`` group: what is broadcast back along the row stays in it;
* a reduction over other axes closes its group, if nothing of the full shape must be written;
* layout and indexing equations are index arithmetic inside each reader, and their operands lie in memory;
* everything else (contractions, scatters, sorts, loops, branches) is a step of its own.
"""

from __future__ import annotations

from typing import Any, final

from jaxlite.compiler.dependencies import Dependencies
from jaxlite.compiler.groups import Group, Shape, is_row_shape, operand_vars
from jaxlite.compiler.report import Decision
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal, Var

MOST_EQUATIONS = 256  # in one kernel: code generation takes more than proportionally long beyond
ROW_LIMIT = 1 << 16  # elements of a row that is reduced and read again: beyond, rows are split over threads instead
# Indexing is computed again by each of its readers: beyond so many equations behind one value, counted as often as they
# run, it is written to memory if there is more than one reader; beyond so many one behind the other, in any case.
MOST_REPEATED = 16
DEEPEST = 64
STEP_KINDS = {
    "contraction": "contraction",
    "scatter": "scatter",
    "branch": "branch",
    "while_loop": "loop",
    "scan": "loop",
    "sort": "host",
    "linalg": "linalg",
    "cumulative": "cumulative",
    "arg_reduction": "reduce",
    "barrier": "barrier",
}
INLINE_FAMILIES = ("layout", "indexing")


def fuse(closed: ClosedJaxpr) -> tuple[list[Group], list[Decision]]:
    """The groups of ``closed``, in an order in which they can run."""
    return _Fuser(closed).run()


@final
class _Fuser:
    def __init__(self, closed: ClosedJaxpr) -> None:
        self.closed = closed
        self.jaxpr = closed.jaxpr
        self.groups: list[Group] = []
        self.order = Dependencies()
        self.group_of: dict[Var, Group] = {}
        self.maker: dict[Var, JaxprEqn] = {v: e for e in closed.eqns for v in e.outvars if isinstance(v, Var)}
        self.place = {id(e): n for n, e in enumerate(closed.eqns)}
        self.decisions: list[Decision] = []
        self.last_effect: Group | None = None
        self.readers: dict[Var, list[JaxprEqn]] = {}
        for eqn in closed.eqns:
            for var in operand_vars(eqn):
                self.readers.setdefault(var, []).append(eqn)
        self.results = {a for a in self.jaxpr.outvars if isinstance(a, Var)}
        self.behind_inlined: dict[Any, tuple[int, int]] = {}  # equations run, and one behind the other, to compute it

    def run(self) -> tuple[list[Group], list[Decision]]:
        for eqn in self.closed.eqns:
            self._put(eqn)
        self._find_outputs()
        self._write_inlined_results()
        return self._ordered(), self.decisions

    # -- placing ------------------------------------------------------------------------------

    def _put(self, eqn: JaxprEqn) -> None:
        family = eqn.primitive.family
        if family in INLINE_FAMILIES and not self._stays_in_row(eqn):
            if self._repeats_too_much(eqn):
                group = self._new("map", eqn.outvars[0].aval.shape, eqn, "too long to be computed again by each reader")
                group.through |= group.after
            return  # else pulled into its readers
        if family == "elementwise" or family in INLINE_FAMILIES:
            self._put_elementwise(eqn)
        elif family == "reduction":
            self._put_reduction(eqn)
        else:
            kind = STEP_KINDS.get(family, "host")
            domain = eqn.invars[0].aval.shape if kind == "reduce" else eqn.outvars[0].aval.shape if eqn.outvars else ()
            group = self._new(kind, domain, eqn, f"{eqn.primitive.name} is a step of its own")
            if kind == "reduce":
                group.axes = tuple(eqn.params["axes"])
            if eqn.effects:  # effects keep the order in which they are written
                if self.last_effect is not None:
                    self.order.require(group, [self.last_effect])
                self.last_effect = group

    def _repeats_too_much(self, eqn: JaxprEqn) -> bool:
        """Whether readers should find an indexing equation's result in memory."""
        counts = [self.behind_inlined.get(v, (0, 0)) for v in operand_vars(eqn)]
        count, depth = 1 + sum(n for n, _ in counts), 1 + max((d for _, d in counts), default=0)
        var = eqn.outvars[0]
        if not isinstance(var, Var):
            return False
        if depth > DEEPEST or (count > MOST_REPEATED and len(self.readers.get(var, ())) > 1):
            return True
        self.behind_inlined[var] = count, depth
        return False

    def _stays_in_row(self, eqn: JaxprEqn) -> bool:
        """Whether a broadcast, reshape or squeeze only repeats a row's value along the row, or keeps one a row."""
        if eqn.primitive.family != "layout" or len(eqn.invars) != 1 or isinstance(eqn.invars[0], Literal):
            return False
        group = self.group_of.get(eqn.invars[0])
        if group is None or group.kind != "row":
            return False
        old, new = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
        if not is_row_shape(old, group.domain, group.rank):
            return False
        if is_row_shape(new, group.domain, group.rank):
            return old != new  # an axis of length 1 comes or goes
        dims = eqn.primitive.repeats_along(**eqn.params)
        return new == group.domain and dims in (tuple(range(group.rank)), tuple(range(len(new))))

    def _put_elementwise(self, eqn: JaxprEqn) -> None:
        shape = eqn.outvars[0].aval.shape
        candidates = [g for g in self._soft_groups(eqn) if _accepts(g, shape)]
        home: Group | None = None
        for group in candidates:
            if home is None:
                if self._can_join(eqn, group):
                    home = group
            elif group is not home and self._can_merge(home, group):
                self._merge(home, group)
        if home is None:
            self._new("map", shape, eqn, "begins a kernel")
        else:
            self._join(home, eqn)

    def _put_reduction(self, eqn: JaxprEqn) -> None:
        operand = eqn.invars[0]
        domain, axes = operand.aval.shape, tuple(sorted(eqn.params["axes"]))
        rank = len(domain) - len(axes)
        trailing = axes == tuple(range(rank, len(domain))) and bool(axes)
        row = 1
        for d in axes:
            row *= domain[d]
        group = self.group_of.get(operand) if isinstance(operand, Var) else None
        if trailing and row <= ROW_LIMIT and domain and 0 not in domain:
            if group is not None and _can_be_rows(group, domain, rank) and self._can_join(eqn, group):
                group.kind, group.rank = "row", rank
                self._join(group, eqn)
                return
            self._new(
                "row", domain, eqn, "a reduction over the last axes begins a kernel that runs row by row", rank=rank
            )
            return
        if (
            group is not None
            and group.kind == "map"
            and group.domain == domain
            and self._only_reader(group, eqn)
            and self._can_join(eqn, group)
        ):
            group.kind, group.axes = "reduce", axes
            self._join(group, eqn)
            return
        if group is not None and group.kind == "map" and group.domain == domain:
            self._refuse(
                eqn, "other readers need the operand in memory, so the reduction reads it there", _bytes(operand)
            )
        new = self._new("reduce", domain, eqn, "folds axes that are not the last, or a whole large array")
        new.axes = axes

    def _only_reader(self, group: Group, eqn: JaxprEqn) -> bool:
        """Whether nothing that the group computes is read outside it, but by ``eqn``."""
        inside = {id(e) for e in group.eqns} | {id(eqn)}
        return all(
            v not in self.results and all(id(r) in inside for r in self.readers.get(v, ())) for v in group.defined
        )

    # -- dependencies -------------------------------------------------------------------------

    def _soft_groups(self, eqn: JaxprEqn) -> list[Group]:
        """The groups that compute the operands themselves."""
        found = dict.fromkeys(self.group_of[v] for v in operand_vars(eqn) if v in self.group_of)
        return list(found)

    def _behind(self, var: Var) -> set[Group]:
        """The groups whose results are read through layout equations to give ``var``."""
        pending, found, seen = [var], set(), set()
        while pending:
            v = pending.pop()
            if v in seen:
                continue
            seen.add(v)
            if v in self.group_of:
                found.add(self.group_of[v])
            elif v in self.maker:
                pending.extend(operand_vars(self.maker[v]))
        return found

    def _needs(self, eqn: JaxprEqn) -> tuple[set[Group], set[Group]]:
        """Groups that compute operands directly, and those read through layout equations."""
        soft, hard = set(), set()
        for var in operand_vars(eqn):
            if var in self.group_of:
                soft.add(self.group_of[var])
            else:
                hard |= self._behind(var)
        return soft, hard

    def _can_join(self, eqn: JaxprEqn, group: Group) -> bool:
        """Whether the equation can run inside ``group``: no operand waits for that group's end."""
        if len(group.eqns) >= MOST_EQUATIONS:
            self._refuse(eqn, f"the kernel has {MOST_EQUATIONS} equations already", _bytes(eqn.outvars[0]))
            return False
        soft, hard = self._needs(eqn)
        late = [g for g in hard | (soft - {group}) if self.order.reaches(g, group)]
        if late:
            self._refuse(eqn, f"an operand is read through {late[0].kind} results that need this kernel finished", 0)
        return not late

    def _can_merge(self, a: Group, b: Group) -> bool:
        """Whether two kernels can become one."""
        if (
            a.domain != b.domain
            or {a.kind, b.kind} - {"map", "row"}
            or (a.kind == b.kind == "row" and a.rank != b.rank)
        ):
            return False
        if b in a.through or a in b.through or len(a.eqns) + len(b.eqns) > MOST_EQUATIONS:
            return False
        around = any(self.order.reaches(h, b) for h in a.after if h is not b) or any(
            self.order.reaches(h, a) for h in b.after if h is not a
        )
        return not around

    def _merge(self, a: Group, b: Group) -> None:
        if b.kind == "row":
            a.kind, a.rank = "row", b.rank
        a.eqns = sorted([*a.eqns, *b.eqns], key=lambda e: self.place[id(e)])
        self.order.merge(a, b)
        for var in b.defined:
            self.group_of[var] = a
        self.groups.remove(b)
        last = b.eqns[-1]
        self.decisions.append(
            Decision(
                last.primitive.name,
                "fused",
                "kernels over one domain, read together, become one",
                {"equations": len(a.eqns)},
                last.source,
            )
        )

    def _new(self, kind: str, domain: Shape, eqn: JaxprEqn, reason: str, rank: int = 0) -> Group:
        group = Group(kind, domain, rank=rank, reason=reason)
        self.groups.append(group)
        self.order.add(group)
        self._join(group, eqn, quiet=True)
        self.decisions.append(
            Decision(
                eqn.primitive.name, "own kernel" if kind in ("map", "row", "reduce") else kind, reason, {}, eqn.source
            )
        )
        return group

    def _join(self, group: Group, eqn: JaxprEqn, quiet: bool = False) -> None:
        soft, hard = self._needs(eqn)
        self.order.require(group, soft | hard)
        group.through |= hard
        group.eqns.append(eqn)
        for var in eqn.outvars:
            if isinstance(var, Var):
                self.group_of[var] = group
        if not quiet:
            self.decisions.append(
                Decision(
                    eqn.primitive.name,
                    "fused",
                    f"same {'rows' if group.kind == 'row' else 'elements'} as its operand's kernel",
                    {"bytes saved": _bytes(eqn.outvars[0])},
                    eqn.source,
                )
            )

    def _refuse(self, eqn: JaxprEqn, reason: str, nbytes: int) -> None:
        self.decisions.append(
            Decision(
                eqn.primitive.name, "not fused", reason, {"bytes read again": nbytes} if nbytes else {}, eqn.source
            )
        )

    # -- outputs and order --------------------------------------------------------------------

    def _find_outputs(self) -> None:
        """What each group must write: results of the program, and what other groups or layout equations read."""
        for group in self.groups:
            inside = {id(e) for e in group.eqns}
            for var in group.defined:
                if var in self.results or any(id(r) not in inside for r in self.readers.get(var, ())):
                    group.outputs.append(var)

    def _write_inlined_results(self) -> None:
        """Layout results that must lie in memory (of the program, or operands of steps that are no kernels) get
        kernels."""
        wanted: dict[Var, None] = {}
        for atom in self.jaxpr.outvars:
            if isinstance(atom, Var):
                wanted[atom] = None
        for group in self.groups:
            if group.kind not in ("map", "row", "reduce"):
                for eqn in group.eqns:
                    wanted.update(dict.fromkeys(operand_vars(eqn)))
        for var in wanted:
            if var not in self.group_of and var in self.maker:
                self._new_for_layout(var)

    def _new_for_layout(self, var: Var) -> None:
        eqn = self.maker[var]
        group = Group(
            "map", var.aval.shape, [eqn], reason="written to memory for a reader that is no kernel, or as a result"
        )
        group.after = self._behind(var)
        group.outputs = [v for v in eqn.outvars if isinstance(v, Var) and v is var]
        self.groups.append(group)
        self.group_of[var] = group
        self.decisions.append(
            Decision(eqn.primitive.name, "own kernel", group.reason, {"bytes": _bytes(var)}, eqn.source)
        )

    def _ordered(self) -> list[Group]:
        """Groups after all that they need."""
        for group in self.groups:
            for eqn in group.eqns:
                for var in operand_vars(eqn):
                    group.after |= self._behind(var) - {group}
        place = {group: n for n, group in enumerate(self.groups)}
        ordered: list[Group] = []
        state: dict[Group, int] = {}
        for start in self.groups:
            stack = [(start, iter(sorted(start.after, key=place.__getitem__)))]
            while stack:
                group, rest = stack[-1]
                state.setdefault(group, 1)
                following = next((g for g in rest if g not in state), None)
                if following is not None:
                    stack.append((following, iter(sorted(following.after, key=place.__getitem__))))
                    continue
                stack.pop()
                if state[group] != 2:
                    state[group] = 2
                    ordered.append(group)
        return ordered


def _can_be_rows(group: Group, domain: Shape, rank: int) -> bool:
    """Whether a group runs, or may from now on run, row by row."""
    if group.kind == "row":
        return group.domain == domain and group.rank == rank
    return group.kind == "map" and group.domain == domain


def _bytes(atom: Any) -> int:
    return int(atom.aval.nbytes)


def _accepts(group: Group, shape: Shape) -> bool:
    """Whether values of ``shape`` fit the group's domain."""
    if group.kind == "map":
        return group.domain == shape
    if group.kind == "row":
        return group.domain == shape or is_row_shape(shape, group.domain, group.rank)
    return False
