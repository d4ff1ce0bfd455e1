"""The graph payload: a jaxpr as nodes, edges and nested groups.

In: a jaxpr and, where it was compiled, its fusion groups. Out: a dict of

    nodes   inputs, constants, equations, results; with type, bytes, the user's line, the kernel
    edges   [from, to] node ids: data that flows
    groups  nested jaxprs (foldable) and kernels (clusters); ``parent`` nests them
    lines   the user's lines that the nodes speak of

An equation that holds jaxprs becomes a group of its own id: an entry node takes its operands, an
exit node gives its results.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, final

from jaxlite.core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from jaxlite.core.printing import equation_text, literal_text, namer
from jaxlite.inspect.quantities import VERSION, predicted
from jaxlite.inspect.sources import FileLabel, Lines

if TYPE_CHECKING:
    from jaxlite.compiler.groups import Group

CONTROL = ("loop", "branch")  # kinds that are drawn as their nested jaxprs, not as a cluster
LONGEST = 400  # characters of an equation's text: nested jaxprs are shown by their own nodes


def graph_payload(
    closed: ClosedJaxpr,
    groups: Sequence[Group] = (),
    name: str = "",
    file_label: FileLabel | None = None,
) -> dict[str, Any]:
    """The payload of ``closed``, with the kernels of ``groups`` as clusters."""
    builder = _Builder(groups, Lines(file_label))
    builder.program(closed.jaxpr)
    return {
        "version": VERSION,
        "kind": "graph",
        "name": name or closed.jaxpr.debug_info.function,
        "nodes": builder.nodes,
        "edges": [list(edge) for edge in builder.edges],
        "groups": builder.groups,
        "lines": builder.lines.lines,
    }


def value_data(name: str, aval: Any) -> dict[str, Any]:
    """A value's name, type and size."""
    return {
        "name": name,
        "type": aval.short(),
        "shape": list(aval.shape),
        "dtype": aval.dtype.name,
        "bytes": predicted(aval.nbytes, "B"),
    }


def kernel_id(number: int) -> str:
    """The id of a report's group ``number``, in every payload of that report."""
    return f"K{number}"


@final
class _Builder:
    """Walks a jaxpr and its nested ones; ids are ``e0``, ``e0.in``, ... in program order."""

    def __init__(self, fusion: Sequence[Group], lines: Lines) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: dict[tuple[str, str], None] = {}
        self.groups: list[dict[str, Any]] = []
        self.lines = lines
        # Passes over a body may rebuild an equation, but it keeps the variables that it binds.
        self._kernel_of = {v: n for n, g in enumerate(fusion) for e in g.eqns for v in e.outvars}
        self._inlined: dict[Any, list[int]] = {}
        for number, group in enumerate(fusion):
            for eqn in group.inlined:
                for var in eqn.outvars:
                    self._inlined.setdefault(var, []).append(number)
        self._fusion = fusion
        self._clusters: set[str] = set()
        self._number = 0

    def program(self, jaxpr: Jaxpr) -> None:
        """Adds the outermost jaxpr, with a node for each argument, constant and result."""
        names, producers = namer(), dict[Var, str]()
        given = jaxpr.debug_info.argument_names
        for i, var in enumerate(jaxpr.constvars):
            producers[var] = self._value_node(f"c{i}", "constant", f"constant {names(var)}", var)
        for i, var in enumerate(jaxpr.invars):
            letter = names(var)
            called = given[i] if i < len(given) else letter
            kind = "input" if called else "constant"  # what a function closes over has no name
            producers[var] = self._value_node(f"i{i}", kind, called or f"constant {letter}", var)
        self._equations(jaxpr, None, producers, names)
        for i, atom in enumerate(jaxpr.outvars):
            label = f"result {i}" if len(jaxpr.outvars) > 1 else "result"
            node = self._value_node(f"o{i}", "result", label, atom)
            self._connect([atom], node, producers)

    def _value_node(self, key: str, kind: str, label: str, atom: Any) -> str:
        values = [value_data(label, atom.aval)]
        equation = literal_text(atom) if isinstance(atom, Literal) else atom.aval.short()
        self._node(key, kind, label, None, equation, values, None, None)
        return key

    def _equations(self, jaxpr: Jaxpr, parent: str | None, producers: dict[Var, str], names: Any) -> None:
        for eqn in jaxpr.eqns:
            key = f"e{self._number}"
            self._number += 1
            kernel = self._kernel(eqn)
            text = equation_text(eqn, names)
            inner = list(subjaxprs(eqn.params))
            if inner:
                made = self._nested(eqn, key, parent, producers, text, inner)
            else:
                made = self._equation(eqn, key, self._cluster(kernel, parent), text, kernel, names)
                self._connect(eqn.invars, made, producers)
            producers.update({v: made for v in eqn.outvars if not isinstance(v, DropVar)})

    def _equation(self, eqn: JaxprEqn, key: str, parent: str | None, text: str, kernel: int | None, names: Any) -> str:
        values = [value_data(names(v), v.aval) for v in eqn.outvars]
        self._node(key, "equation", eqn.primitive.name, parent, text, values, eqn, kernel)
        return key

    def _nested(
        self,
        eqn: JaxprEqn,
        key: str,
        parent: str | None,
        producers: dict[Var, str],
        text: str,
        inner: Sequence[tuple[str, ClosedJaxpr]],
    ) -> str:
        """Adds an equation that holds jaxprs; gives the node that its results come from."""
        label = str(eqn.params.get("name") or "")
        label = f"{eqn.primitive.name} {label}".strip()
        self._group(key, label, parent, "jaxpr", "", eqn)
        kernel = self._kernel(eqn)
        values = [value_data(f"result {i}", v.aval) for i, v in enumerate(eqn.outvars)]
        self._node(f"{key}.in", "entry", label, key, text, values, eqn, kernel)
        self._connect(eqn.invars, f"{key}.in", producers)
        ends: dict[str, None] = {}
        for called, closed in inner:
            home = key
            if len(inner) > 1:
                home = f"{key}.{called}"
                self._group(home, called, key, "jaxpr", "", eqn)
            body, names = closed.jaxpr, namer()
            inside = dict.fromkeys((*body.constvars, *body.invars), f"{key}.in")
            for var in (*body.constvars, *body.invars):
                names(var)
            self._equations(body, home, inside, names)
            ends.update({inside[a]: None for a in body.outvars if isinstance(a, Var)})
        self._node(f"{key}.out", "exit", f"end of {label}", key, text, values, eqn, kernel)
        for end in ends or {f"{key}.in": None}:
            self.edges[end, f"{key}.out"] = None
        return f"{key}.out"

    def _kernel(self, eqn: JaxprEqn) -> int | None:
        """The group that computes ``eqn``: its own, or the only one that recomputes it."""
        for var in eqn.outvars:
            if var in self._kernel_of:
                return self._kernel_of[var]
        users = self._users(eqn)
        return users[0] if len(users) == 1 else None

    def _users(self, eqn: JaxprEqn) -> list[int]:
        return next((self._inlined[v] for v in eqn.outvars if v in self._inlined), [])

    def _cluster(self, kernel: int | None, parent: str | None) -> str | None:
        """The id of the kernel's cluster inside ``parent``, added at its first use."""
        if kernel is None or self._fusion[kernel].kind in CONTROL:
            return parent
        key = kernel_id(kernel)
        if key not in self._clusters:
            self._clusters.add(key)
            group = self._fusion[kernel]
            self._group(key, f"{group.name} ({group.kind})", parent, "kernel", group.reason, None)
        return key

    def _group(self, key: str, label: str, parent: str | None, kind: str, reason: str, eqn: Any) -> None:
        source = self.lines.add(eqn.source) if eqn is not None else None
        group = {"id": key, "label": label, "parent": parent, "kind": kind}
        self.groups.append({**group, "reason": reason, "source": source})

    def _node(
        self,
        key: str,
        kind: str,
        label: str,
        parent: str | None,
        equation: str,
        values: list[dict[str, Any]],
        eqn: JaxprEqn | None,
        kernel: int | None,
    ) -> None:
        shared = self._users(eqn) if eqn is not None else []
        node: dict[str, Any] = {"id": key, "kind": kind, "label": label, "parent": parent}
        node["values"] = values
        node["equation"] = equation if len(equation) <= LONGEST else equation[:LONGEST] + " ..."
        node["source"] = self.lines.add(eqn.source) if eqn is not None else None
        node["kernel"] = kernel_id(kernel) if kernel is not None else None
        node["kernel_name"] = self._fusion[kernel].name if kernel is not None else None
        node["recomputed_in"] = [self._fusion[n].name for n in shared]
        self.nodes.append(node)

    def _connect(self, atoms: Iterable[Any], node: str, producers: dict[Var, str]) -> None:
        for atom in atoms:
            if isinstance(atom, Var):
                self.edges[producers[atom], node] = None
