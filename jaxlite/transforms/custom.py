"""Functions with derivative rules of the user's own: ``custom_jvp`` and ``custom_vjp``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core.avals import aval_of
from jaxlite.core.pytree import PyTreeDef, tree_flatten, tree_map
from jaxlite.core.ref import ref_type
from jaxlite.interpreters.zeros import has_tangent, instantiate, zero_of
from jaxlite.lax.control.custom import custom_jvp_call_p, custom_vjp_call_p
from jaxlite.lax.control.keeping_refs import KeepingRefs
from jaxlite.lax.convert import operand_of
from jaxlite.lax.elementwise.casts import convert
from jaxlite.transforms.arguments import check_callable, flat_function, flat_operands, operands_but_refs
from jaxlite.transforms.symbolic_zeros import CustomVJPPrimal, SymbolicZero, as_symbolic


def bound_arguments(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Positional arguments, keywords and defaults put in their places."""
    try:
        signature = inspect.signature(function)
        given = signature.bind(*args, **kwargs)
    except ValueError:
        return tuple(args)
    given.apply_defaults()
    if given.kwargs:
        raise TypeError(
            f"{getattr(function, '__name__', function)} has keyword-only arguments "
            f"{sorted(given.kwargs)}, which custom rules cannot take: make them positional."
        )
    return given.args


def _split(args: Sequence[Any], nondiff: Sequence[int]) -> tuple[list[Any], list[Any]]:
    return [args[i] for i in nondiff], [a for i, a in enumerate(args) if i not in nondiff]


def _fixed(function: Callable[..., Any], args: Sequence[Any], nondiff: Sequence[int]) -> Callable[..., Any]:
    """``function`` of its other arguments, those at ``nondiff`` fixed."""

    @functools.wraps(function, updated=())
    def partial(*rest: Any) -> Any:
        given = iter(rest)
        return function(*(args[i] if i in nondiff else next(given) for i in range(len(args))))

    return partial if nondiff else function


@final
class custom_jvp:
    """A function whose forward derivative is given by ``defjvp``; the reverse one follows from it.

    >>> @custom_jvp
    ... def f(x):
    ...     return x * x
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     return f(*primals), 2 * primals[0] * tangents[0]
    """

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        check_callable(fun, "custom_jvp")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _with_names(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Sets the rule: ``jvp(*nondiff_args, primals, tangents)`` gives value and tangent; with ``symbolic_zeros``
        tangents that vanish come as ``SymbolicZero``, and may be given so."""
        check_callable(jvp, "defjvp")
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Sets a rule for each argument: ``jvp_i(tangent_i, value, *primals)``, summed over the arguments; None is
        zero."""
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            value = self(*primals)
            parts = [f(t, value, *primals) for f, t in zip(jvps, tangents, strict=True) if f is not None]
            zeros = tree_map(lambda v: instantiate(zero_of(v)), value)
            return value, functools.reduce(lambda a, b: tree_map(lambda x, y: x + y, a, b), parts, zeros)

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            name = getattr(self.fun, "__name__", "function")
            raise AttributeError(f"No JVP defined for custom_jvp function {name} using defjvp.")
        args = bound_arguments(self.fun, args, kwargs)
        fixed, rest = _split(args, self.nondiff_argnums)
        leaves, in_tree = flat_operands(tuple(rest))
        out: list[PyTreeDef] = []
        call = flat_function(_fixed(self.fun, args, self.nondiff_argnums), in_tree, out)
        rule = functools.partial(self._flat_rule, fixed, in_tree, out)
        results = custom_jvp_call_p.bind(*leaves, call=call, jvp=rule, num_consts=0, symbolic_zeros=self.symbolic_zeros)
        return out[0].unflatten(results)

    def _flat_rule(self, fixed: Sequence[Any], in_tree: PyTreeDef, out: list[PyTreeDef], *values: Any) -> list[Any]:
        half = len(values) // 2
        primals, tangents = in_tree.unflatten(values[:half]), in_tree.unflatten(as_symbolic(values[half:]))
        assert self.jvp is not None
        pair = self.jvp(*fixed, primals, tangents)
        name = getattr(self.jvp, "__name__", "the jvp rule")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"Custom JVP rule {name} must produce a pair (list or tuple of length two) "
                f"representing primal and tangent outputs, got {pair}."
            )
        (primal_leaves, tree), (tangent_leaves, t_tree) = flat_operands(pair[0]), tree_flatten(pair[1])
        if tree != t_tree:
            raise TypeError(
                f"Custom JVP rule {name} must produce primal and tangent outputs with equal "
                f"container (pytree) structures, but got {tree} and {t_tree} respectively."
            )
        out[:] = [tree]
        moved = []
        for p, t in zip(primal_leaves, tangent_leaves, strict=True):
            if not has_tangent(aval_of(p)) or isinstance(t, SymbolicZero):
                moved.append(zero_of(p))
                continue
            t = operand_of(t)
            want, have = aval_of(p).to_tangent_aval(), aval_of(t)
            if have.shape != want.shape or (have.dtype != want.dtype and not have.weak_type):
                raise TypeError(
                    f"Custom JVP rule {name} must produce primal and tangent outputs with "
                    f"corresponding shapes and dtypes, but got {aval_of(p)} with tangent {have}, "
                    f"expected {want}."
                )
            moved.append(t if have.dtype == want.dtype else convert(t, want.dtype))
        return [*primal_leaves, *moved]


@final
class custom_vjp:
    """A function whose reverse derivative is given by ``defvjp(fwd, bwd)``.

    ``fwd(*args)`` gives (value, residuals); ``bwd(*nondiff_args, residuals, cotangent)`` a cotangent for each other
    argument.
    """

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        check_callable(fun, "custom_vjp")
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = _with_names(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., Any],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Sets the rules.  With ``symbolic_zeros`` the leaves of ``fwd``'s arguments are ``CustomVJPPrimal`` (``value``
        and whether it is ``perturbed``), and cotangents that vanish reach ``bwd`` as ``SymbolicZero``."""
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            name = getattr(self.fun, "__name__", "function")
            raise AttributeError(f"No VJP defined for custom_vjp function {name} using defvjp.")
        args = bound_arguments(self.fun, args, kwargs)
        fixed, rest = _split(args, self.nondiff_argnums)
        given = operands_but_refs(tuple(rest))  # refs are closed over: no derivative goes through them
        leaves = given.leaves
        out: list[PyTreeDef] = []
        call = flat_function(_fixed(self.fun, args, self.nondiff_argnums), given, out)

        def fwd(perturbed: Sequence[bool], *values: Any) -> tuple[list[Any], list[Any], Callable[..., list[Any]]]:
            assert self.fwd is not None
            if self.symbolic_zeros:
                values = tuple(CustomVJPPrimal(v, p) for v, p in zip(values, perturbed, strict=True))
            pair = _fixed(self.fwd, args, self.nondiff_argnums)(*given.unflatten(values))
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(
                    f"Custom VJP fwd rule {getattr(self.fwd, '__name__', '')} must produce a pair "
                    "(list or tuple of length two): the output and the residuals, got "
                    f"{type(pair).__name__}."
                )
            results, out_tree = flat_operands(pair[0], "output of the fwd rule")
            kept = operands_but_refs(pair[1], "residual of the fwd rule")
            residuals = kept.leaves
            out[:] = [out_tree]

            def bwd(*values: Any) -> list[Any]:
                assert self.bwd is not None
                n = kept.num_leaves
                cotangents = out_tree.unflatten(as_symbolic(values[n:]))
                return self._flat_cotangents(self.bwd(*fixed, kept.unflatten(values[:n]), cotangents), given)

            return residuals, results, bwd

        results = custom_vjp_call_p.bind(*leaves, call=call, fwd=fwd, num_consts=0, symbolic_zeros=self.symbolic_zeros)
        return out[0].unflatten(results)

    def _flat_cotangents(self, pulled: Any, given: KeepingRefs) -> list[Any]:
        name = getattr(self.bwd, "__name__", "the bwd rule")
        if isinstance(pulled, list):
            pulled = tuple(pulled)
        if not isinstance(pulled, tuple):
            raise TypeError(
                f"Custom VJP bwd rule {name} must produce a tuple with one cotangent for each "
                f"argument, got {type(pulled).__name__}."
            )
        arguments = given.each()
        if len(pulled) != len(arguments):
            raise TypeError(
                f"Custom VJP bwd rule {name} must produce one cotangent for each of "
                f"{len(arguments)} arguments, got {len(pulled)}."
            )
        flat: list[Any] = []
        for number, (cotangent, (tree, own, kept)) in enumerate(zip(pulled, arguments, strict=True)):
            if cotangent is None:
                flat += [zero_of(x) for x in own]
                continue
            values, structure = tree_flatten(cotangent, is_leaf=lambda x: x is None)
            if structure != tree:
                raise TypeError(
                    f"Custom VJP bwd rule {name} must produce a cotangent of the structure {tree} "
                    f"for argument {number}, got {structure}."
                )
            for value, ref in zip(values, kept, strict=True):
                if ref is not None and value is not None:
                    raise TypeError(
                        f"Custom VJP bwd rule {name} must produce None for the {ref_type(ref.type)} in argument "
                        f"{number}, got {value}."
                    )
            for value, x in zip([v for v, ref in zip(values, kept, strict=True) if ref is None], own, strict=True):
                if value is None or isinstance(value, SymbolicZero) or not has_tangent(aval_of(x)):
                    flat.append(zero_of(x))
                elif aval_of(value).shape != aval_of(x).shape:
                    raise ValueError(
                        f"Custom VJP bwd rule {name} must produce a cotangent of shape "
                        f"{aval_of(x).shape} for argument {number}, got {aval_of(value).shape}."
                    )
                else:
                    flat.append(value)
        return flat


def _with_names(fun: Callable[..., Any], numbers: Sequence[int], names: Sequence[str]) -> tuple[int, ...]:
    """Argument numbers, those of the named arguments included."""
    positions = list(inspect.signature(fun).parameters) if names else []
    return tuple(sorted({*numbers, *(positions.index(n) for n in names)}))
