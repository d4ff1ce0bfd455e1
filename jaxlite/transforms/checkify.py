"""``checkify``: a function with assertions becomes one that also gives an error as a value.

The function is traced, and its equations run again with what may go wrong beside them: an error is a flag, the number
of the check, and the values of its message.  Loops and branches carry it; the first error stands.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from jaxlite.core import dtypes
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.context import context_kept
from jaxlite.core.errors import JaxRuntimeError
from jaxlite.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from jaxlite.core.primitive import Primitive, registry
from jaxlite.core.pytree_classes import register_pytree_node_class
from jaxlite.core.source import working_on
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import boundary
from jaxlite.interpreters.stage import stage
from jaxlite.lax import (
    argmax,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    broadcast_in_dim,
    eq,
    index_in_dim,
    ne,
    reduce_or,
    reshape,
    select,
)
from jaxlite.lax.control.check import check_p
from jaxlite.lax.control.cond import cond_p
from jaxlite.lax.control.scan import scan_p
from jaxlite.lax.control.trace_functions import traced
from jaxlite.lax.control.while_loop import while_p
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.arithmetic import div_p, rem_p
from jaxlite.lax.elementwise.casts import convert
from jaxlite.lax.elementwise.comparison import gt, lt
from jaxlite.lax.indexing.dynamic import dynamic_index_in_dim, dynamic_slice_p, dynamic_update_slice_p
from jaxlite.lax.indexing.gather import gather_p
from jaxlite.lax.indexing.scatter import Scatter
from jaxlite.lax.layout.shaping import full
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_operands

Message = Callable[[Sequence[Any]], str]

user_checks = frozenset({"user"})
nan_checks = frozenset({"nan"})
div_checks = frozenset({"div"})
index_checks = frozenset({"oob"})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


@final
@register_pytree_node_class
class Error:
    """Whether something went wrong, which check it was, and its message's values: arrays, batched as results are."""

    def __init__(
        self, flag: Any, code: Any, payloads: tuple[tuple[Any, ...], ...], messages: tuple[Message, ...]
    ) -> None:
        self._flag, self._code, self._payloads, self._messages = flag, code, payloads, messages

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Message, ...]]:
        """Arrays as children, messages as structure."""
        return (self._flag, self._code, self._payloads), self._messages

    @classmethod
    def tree_unflatten(cls, messages: tuple[Message, ...], children: Any) -> Error:
        """The reverse of :meth:`tree_flatten`."""
        flag, code, payloads = children
        return cls(flag, code, payloads, messages)

    def get(self) -> str | None:
        """What went wrong; None where nothing did."""
        flag, code = np.asarray(self._flag), np.asarray(self._code)
        if not flag.any():
            return None
        lines = []
        for place in np.argwhere(flag):
            index = tuple(place)
            number = int(code[index])
            text = self._messages[number]([np.asarray(p)[index] for p in self._payloads[number]])
            at = f"at mapped index {', '.join(map(str, index))}: " if flag.ndim else ""
            lines.append(at + text)
        return "\n".join(lines)

    def throw(self) -> None:
        """``JaxRuntimeError`` where something went wrong."""
        text = self.get()
        if text is not None:
            raise JaxRuntimeError(text)

    def __repr__(self) -> str:
        return "Error(traced)" if isinstance(self._flag, Tracer) else f"Error({self.get()})"


@final
@dataclasses.dataclass
class _Found:
    """Errors of a block so far: flag and code of the first, and every check's values and message."""

    flag: Any = False
    code: Any = 0
    payloads: list[list[Any]] = dataclasses.field(default_factory=list)
    messages: list[Message] = dataclasses.field(default_factory=list)

    def add(self, flag: Any, code: Any, payloads: Sequence[Sequence[Any]], messages: Sequence[Message]) -> None:
        """Errors that come after those here."""
        number = len(self.messages)
        later = convert(operand_of(code), np.dtype(np.int32)) + np.int32(number)
        earlier = convert(operand_of(self.flag), np.dtype(bool))
        flag = convert(operand_of(flag), np.dtype(bool))
        self.code = select(
            bitwise_and(flag, bitwise_not(earlier)), later, convert(operand_of(self.code), np.dtype(np.int32))
        )
        self.flag = bitwise_or(earlier, flag)
        self.payloads += [list(p) for p in payloads]
        self.messages += messages

    def flat(self) -> list[Any]:
        """Flag, code and all values."""
        flag, code = convert(operand_of(self.flag), np.dtype(bool)), convert(operand_of(self.code), np.dtype(np.int32))
        return [flag, code, *(v for payload in self.payloads for v in payload)]

    def parts(self, flat: Sequence[Any]) -> tuple[Any, Any, list[list[Any]]]:
        """Flag, code and values of each check from :meth:`flat`."""
        values = iter(flat[2:])
        return flat[0], flat[1], [[next(values) for _ in payload] for payload in self.payloads]


@boundary
def checkify(f: Callable[..., Any], errors: frozenset[str] = user_checks) -> Callable[..., Any]:
    """``f``, giving (error, result): ``errors`` says what is looked for besides :func:`check`.

    >>> def f(x):
    ...     check(x > 0, "not positive: {x}", x=x)
    ...     return x
    >>> error, value = checkify(f)(-1.0)
    >>> error.get()
    'not positive: -1.0 (`check` failed)'
    """
    check_callable(f, "checkify")

    @boundary
    @functools.wraps(f, updated=())
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, tree = flat_operands((args, kwargs))
        info = debug_info_of(f, args, kwargs)
        closed, out_tree = traced(lambda a, k: f(*a, **k), tree, [aval_of(x) for x in leaves], info)
        found = _Found()
        results = _run(closed, leaves, found, frozenset(errors))
        flag, code, payloads = found.parts(found.flat())
        error = Error(flag, code, tuple(map(tuple, payloads)), tuple(found.messages))
        return error, out_tree.unflatten(results)

    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Asserts inside a function for :func:`checkify` that ``pred`` holds; ``msg`` is formatted with the values given.

    Outside ``checkify`` it raises at once where values are known, and refuses to be compiled.
    """
    pred = operand_of(pred)
    if not dtypes.is_bool(aval_of(pred).dtype):
        raise TypeError(f"checkify.check takes a bool (or an array of them), got {aval_of(pred)}.")
    leaves, tree = flat_operands((fmt_args, fmt_kwargs), "format argument")

    def message(values: Sequence[Any]) -> str:
        args, kwargs = tree.unflatten(values)
        return msg.format(*args, **kwargs) + " (`check` failed)"

    if aval_of(pred).shape:
        pred = bitwise_not(reduce_or(bitwise_not(pred), tuple(range(len(aval_of(pred).shape)))))
    check_p.bind(pred, *leaves, message=message, debug=debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A :func:`check` that is left out where the function is not checkified."""
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raises, or inside another ``checkify`` passes on, an error."""
    if isinstance(error._flag, Tracer):
        raise NotImplementedError(
            "check_error of an error that is itself traced is not supported: return the error instead."
        )
    error.throw()


@context_kept
def _run(closed: ClosedJaxpr, args: Sequence[Any], found: _Found, errors: frozenset[str]) -> list[Any]:
    """The results of ``closed``; what goes wrong is added to ``found``."""
    env: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(closed.jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in closed.eqns:
        operands = [read(a) for a in eqn.invars]
        with working_on(eqn.source):
            results = _equation(eqn, operands, found, errors)
        env.update(zip(eqn.outvars, results, strict=True))
    return [read(a) for a in closed.jaxpr.outvars]


def _equation(eqn: JaxprEqn, operands: list[Any], found: _Found, errors: frozenset[str]) -> Sequence[Any]:
    primitive, params = eqn.primitive, eqn.params
    inner = primitive.inlined(**params)
    rule = RULES.get(primitive)
    if rule is not None:
        return rule(operands, params, found, errors)
    if isinstance(inner, ClosedJaxpr):
        return _run(inner, operands, found, errors)
    if "oob" in errors:
        _add_index_check(eqn, operands, found)
    if "div" in errors and primitive in DIVISIONS:
        zero = eq(operands[1], np.zeros((), aval_of(operands[1]).dtype)[()])
        found.add(_any(zero), 0, [[]], [lambda _: "division by zero"])
    results = primitive.bind(*operands, **params)
    results = results if primitive.multiple_results else [results]
    if "nan" in errors:
        _add_nan_check(primitive.name, operands, results, found)
    return results


def _add_nan_check(name: str, operands: Sequence[Any], results: Sequence[Any], found: _Found) -> None:
    """Whether there is a NaN among the results and none among the operands."""
    made, given = (
        functools.reduce(bitwise_or, [_any(ne(v, v)) for v in values if _is_float(v)], False)
        for values in (results, operands)
    )
    if made is not False:
        flag = made if given is False else bitwise_and(made, bitwise_not(given))
        found.add(flag, 0, [[]], [lambda _: f"nan generated by primitive: {name}."])


def _is_float(value: Any) -> bool:
    dtype = aval_of(value).dtype
    return not dtypes.is_key(dtype) and dtypes.is_float(dtype)


def _any(values: Any) -> Any:
    return reduce_or(values, tuple(range(len(aval_of(values).shape)))) if aval_of(values).shape else values


def _check(operands: list[Any], params: dict[str, Any], found: _Found, errors: frozenset[str]) -> Sequence[Any]:
    if "user" not in errors:
        return []
    condition, *fields = operands
    failed = bitwise_not(condition)
    rank = len(aval_of(condition).shape)
    if rank:  # batched: the values of the first example that fails
        flat = reshape(failed, (aval_of(failed).size,))
        first = argmax(flat, 0, np.int32)
        fields = [_entry(f, rank, first) for f in fields]
    found.add(_any(failed), 0, [fields], [params["message"]])
    return []


def _entry(values: Any, rank: int, place: Any) -> Any:
    """The entry at a row-major place of the first ``rank`` axes."""
    shape = aval_of(values).shape
    flat = reshape(values, (int(np.prod(shape[:rank])), *shape[rank:]))
    return dynamic_index_in_dim(flat, place, 0, keepdims=False)


def _add_index_check(eqn: JaxprEqn, operands: list[Any], found: _Found) -> None:
    """Windows that stick out of the operand, for gathers, scatters and dynamic slices."""
    shape = aval_of(operands[0]).shape
    windows = WINDOWS.get(eqn.primitive)
    if windows is None:
        return
    axes, columns, window = windows(operands, eqn.params)
    for axis, start in zip(axes, columns, strict=True):
        dtype = aval_of(start).dtype
        last = shape[axis] - window[axis]
        outside = bitwise_or(lt(start, dtype.type(0)), gt(start, dtype.type(last)))
        flat, starts = (reshape(v, (aval_of(v).size,)) for v in (outside, start))
        if not aval_of(flat).size:
            continue
        worst = dynamic_index_in_dim(starts, argmax(flat, 0, np.int32), 0, keepdims=False)
        found.add(_any(flat), 0, [[worst]], [_out_of_bounds(shape, axis)])


Windows = tuple[Sequence[int], Sequence[Any], Sequence[int]]  # axes, starts along each, extents along every axis


def _gathered(operands: Sequence[Any], params: dict[str, Any]) -> Windows:
    axes = params["dimension_numbers"].start_index_map
    return axes, _columns(operands[1], len(axes)), params["slice_sizes"]


def _scattered(operands: Sequence[Any], params: dict[str, Any]) -> Windows:
    numbers = params["dimension_numbers"]
    axes = numbers.scatter_dims_to_operand_dims
    window = Scatter.window(numbers, aval_of(operands[0]).shape, aval_of(operands[2]).shape)
    return axes, _columns(operands[1], len(axes)), window


def _sliced(operands: Sequence[Any], params: dict[str, Any]) -> Windows:
    return range(len(operands) - 1), operands[1:], params["slice_sizes"]


def _updated(operands: Sequence[Any], _: dict[str, Any]) -> Windows:
    return range(len(operands) - 2), operands[2:], aval_of(operands[1]).shape


def _columns(indices: Any, count: int) -> list[Any]:
    last = len(aval_of(indices).shape) - 1
    return [index_in_dim(indices, k, last, keepdims=False) for k in range(count)]


def _out_of_bounds(shape: tuple[int, ...], axis: int) -> Message:
    def message(values: Sequence[Any]) -> str:
        return (
            f"out-of-bounds indexing for array of shape {shape}: "
            f"index {int(values[0])} is out of bounds for axis {axis} with size {shape[axis]}."
        )

    return message


# -- loops and branches ------------------------------------------------------------------------


def _learned(closed: ClosedJaxpr, errors: frozenset[str]) -> tuple[_Found, list[ShapedArray]]:
    """The checks of a body, and the types of their flat form."""
    found = _Found()

    def body(*args: Any) -> list[Any]:
        _run(closed, args, found, errors)
        return found.flat()

    return found, stage(body, closed.in_avals).out_avals


def _nothing(avals: Sequence[ShapedArray]) -> list[Any]:
    return [full(a.shape, dtypes.physical(a.dtype).type(0)) for a in avals]


def _first(old: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """The old error where there is one, else the new."""
    failed = old[0]
    return [select(_like(failed, a), a, b) for a, b in zip(old, new, strict=True)]


def _like(flag: Any, value: Any) -> Any:
    shape = aval_of(value).shape
    return broadcast_in_dim(flag, shape, ()) if shape else flag


def _with_error(closed: ClosedJaxpr, n_before: int, n_error: int, errors: frozenset[str]) -> ClosedJaxpr:
    """A loop's body whose carry begins with an error: (constants, error, carry, inputs) -> (error, results)."""
    avals = closed.in_avals
    _, error_avals = _learned(closed, errors)

    def body(*args: Any) -> list[Any]:
        before, error, rest = args[:n_before], args[n_before : n_before + n_error], args[n_before + n_error :]
        found = _Found()
        results = _run(closed, [*before, *rest], found, errors)
        return [*_first(error, found.flat()), *results]

    return stage(body, [*avals[:n_before], *error_avals, *avals[n_before:]], closed.jaxpr.debug_info)


def _scan(operands: list[Any], params: dict[str, Any], found: _Found, errors: frozenset[str]) -> Sequence[Any]:
    local, avals = _learned(params["jaxpr"], errors)
    if not local.messages:
        return scan_p.bind(*operands, **params)  # type: ignore[no-any-return]
    nc, n = params["num_consts"], len(avals)
    body = _with_error(params["jaxpr"], nc, n, errors)
    changed = {"jaxpr": body, "num_carry": params["num_carry"] + n}
    results = scan_p.bind(*operands[:nc], *_nothing(avals), *operands[nc:], **{**params, **changed})
    found.add(*local.parts(results[:n]), local.messages)
    return results[n:]  # type: ignore[no-any-return]


def _while(operands: list[Any], params: dict[str, Any], found: _Found, errors: frozenset[str]) -> Sequence[Any]:
    """Checks of the body in each round, and of the condition on what it gives (and once before the loop)."""
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    for_cond, carry = operands[:n_cond], operands[n_cond + n_body :]
    _run(params["cond_jaxpr"], [*for_cond, *carry], found, errors)
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]

    def both(*args: Any) -> list[Any]:
        consts, rest = args[:n_cond], args[n_cond:]
        inner = _Found()
        results = _run(body, rest, inner, errors)
        _run(cond, [*consts, *results], inner, errors)
        learned[:] = [inner]
        return [*inner.flat(), *results]

    learned: list[_Found] = []
    in_avals = [*cond.in_avals[:n_cond], *body.in_avals]
    avals = stage(both, in_avals).out_avals[: -len(body.out_avals) or None]
    local, n = learned[0], len(avals)
    if not local.messages:
        return while_p.bind(*operands, **params)  # type: ignore[no-any-return]

    def step(*args: Any) -> list[Any]:
        consts, error, state = args[: n_cond + n_body], args[n_cond + n_body :][:n], args[n_cond + n_body + n :]
        results = both(*consts, *state)
        return [*_first(error, results[:n]), *results[n:]]

    def going(*args: Any) -> list[Any]:
        return _run(cond, [*args[:n_cond], *args[n_cond + n :]], _Found(), frozenset())

    state_avals = body.in_avals[n_body:]
    new_body = stage(step, [*in_avals[: n_cond + n_body], *avals, *state_avals], body.jaxpr.debug_info)
    new_cond = stage(going, [*cond.in_avals[:n_cond], *avals, *state_avals], cond.jaxpr.debug_info)
    results = while_p.bind(
        *for_cond,
        *operands[: n_cond + n_body],
        *_nothing(avals),
        *carry,
        cond_jaxpr=new_cond,
        body_jaxpr=new_body,
        cond_nconsts=n_cond,
        body_nconsts=n_cond + n_body,
    )
    found.add(*local.parts(results[:n]), local.messages)
    return results[n:]  # type: ignore[no-any-return]


def _cond(operands: list[Any], params: dict[str, Any], found: _Found, errors: frozenset[str]) -> Sequence[Any]:
    learned = [_learned(b, errors) for b in params["branches"]]
    if not any(local.messages for local, _ in learned):
        return cond_p.bind(*operands, **params)  # type: ignore[no-any-return]
    branches = tuple(_branch_with_errors(b, n, learned, errors) for n, b in enumerate(params["branches"]))
    results = cond_p.bind(*operands, branches=branches)
    for local, avals in learned:
        own, results = results[: len(avals)], results[len(avals) :]
        found.add(*local.parts(own), local.messages)
    return results  # type: ignore[no-any-return]


def _branch_with_errors(
    closed: ClosedJaxpr, number: int, learned: Sequence[Any], errors: frozenset[str]
) -> ClosedJaxpr:
    """A branch that gives the errors of every branch: its own, and none for the others."""

    def body(*args: Any) -> list[Any]:
        found = _Found()
        results = _run(closed, args, found, errors)
        flat = [found.flat() if n == number else _nothing(avals) for n, (_, avals) in enumerate(learned)]
        return [*(v for part in flat for v in part), *results]

    return stage(body, closed.in_avals, closed.jaxpr.debug_info)


# What holds or is a check -> its results, the errors added to those found.
Rule = Callable[[list[Any], dict[str, Any], _Found, frozenset[str]], Sequence[Any]]
RULES: dict[Primitive, Rule] = {check_p: _check, scan_p: _scan, while_p: _while, cond_p: _cond}
# What reads or writes windows -> where these are.
WINDOWS: dict[Primitive, Callable[[Sequence[Any], dict[str, Any]], Windows]] = {
    gather_p: _gathered,
    dynamic_slice_p: _sliced,
    dynamic_update_slice_p: _updated,
    **{p: _scattered for p in registry.values() if isinstance(p, Scatter)},
}
DIVISIONS = frozenset({div_p, rem_p})
