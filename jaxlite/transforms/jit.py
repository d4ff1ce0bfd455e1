"""``jit``: traces a function once for each signature of its arguments, compiles it, and calls the machine code.

A call flattens its arguments, looks its signature up, hands the arrays over and wraps the results.  Under another
transformation (or with traced arguments) the call becomes one ``jit`` equation.
"""

from __future__ import annotations

import functools
import inspect
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core import config, key_reuse, runtime
from jaxlite.core.array import Array, to_array
from jaxlite.core.avals import aval_of
from jaxlite.core.context import context
from jaxlite.core.device import CPU, check_placement
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.core.ref import CapturedRef, Ref, belongs_here, noted
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import shorten
from jaxlite.interpreters.stage import closed_over_nothing, refuse_escaped
from jaxlite.lax.control.call import jit_p
from jaxlite.lax.control.trace_functions import traced
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_operands
from jaxlite.transforms.jaxprs import ShapeDtypeStruct, abstract
from jaxlite.transforms.jit_refs import Split, call_with_refs

logger = logging.getLogger("jaxlite")


@final
class Options:
    """What ``jit`` was told: static and donated arguments, by position and by name."""

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Any,
        static_argnames: Any,
        donate_argnums: Any,
        donate_argnames: Any,
    ) -> None:
        parameters = _parameters(fun)
        self.static_argnums, self.static_argnames = _positions(static_argnums, static_argnames, parameters, "static")
        self.donate_argnums, self.donate_argnames = _positions(donate_argnums, donate_argnames, parameters, "donate")
        both = sorted(set(self.static_argnums) & set(self.donate_argnums))
        if both:
            raise ValueError(
                f"Arguments {both} are both static and donated: a static argument is no array, so it cannot be donated."
            )


def _parameters(fun: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return []


def _positions(
    numbers: Any, names: Any, parameters: list[inspect.Parameter], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names that go together: one given alone brings the other along, as in JAX."""
    given = () if numbers is None else (numbers,) if isinstance(numbers, int) else tuple(numbers)
    named = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    if not all(isinstance(n, int) for n in given):
        raise TypeError(f"jit: {what}_argnums must be an int or a sequence of ints, got {numbers!r}.")
    by_name = {p.name: i for i, p in enumerate(parameters)}
    takes_more = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    unknown = [n for n in named if n not in by_name]
    if unknown and parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise ValueError(f"jit got invalid argnames {unknown} in {what}_argnames: the function takes {list(by_name)}.")
    if parameters and not takes_more and any(not -len(parameters) <= n < len(parameters) for n in given):
        raise ValueError(
            f"jit: {what}_argnums {given} are out of range for a function of {len(parameters)} parameters."
        )
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if names is None:
        named = tuple(
            parameters[n].name for n in given if -len(parameters) <= n < len(parameters) and parameters[n].kind in kinds
        )
    if numbers is None:
        given = tuple(by_name[n] for n in named if n in by_name and parameters[by_name[n]].kind is kinds[0])
    return given, named


@final
class Traced:
    """One signature's program: its jaxpr, what it closes over, the structure of its result, and its machine code."""

    def __init__(self, name: str, closed: ClosedJaxpr, out_tree: PyTreeDef) -> None:
        self.name, self.closed, self.out_tree = name, closed, out_tree
        self.opened, self.consts = closed_over_nothing(closed)
        uses = key_reuse.used_by(closed.jaxpr) if config.debug_key_reuse.value else {}
        self.used_up = [i for i, v in enumerate(closed.jaxpr.invars) if v in uses]
        self._executable: runtime.Executable | None = None
        self._lock = threading.Lock()

    def executable(self) -> runtime.Executable:
        """Machine code, compiled at the first use."""
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    refuse_escaped(self.consts)
                    for effect in self.closed.effects:
                        if effect.refusal:
                            raise ValueError(effect.refusal)
                    if config.log_compiles.value:
                        types = [a.short() for a in self.closed.in_avals]
                        logger.warning("Compiling %s with types %s", self.name, types)
                    self._executable = runtime.current().compile(self.opened, self.name)
        return self._executable


@final
class JitFunction:
    """What ``jit`` returns: call it, or look at it with ``trace``, ``lower`` and ``eval_shape``."""

    def __init__(self, fun: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.fun, self.options = fun, options
        self._cache = _cache_for(fun, options)
        self._captured: dict[Any, list[Ref]] = {}  # refs that the function closes over, by signature
        self._on_values: dict[Any, dict[Any, JitFunction]] = {}  # programs of refs' values, by signature
        self._plain = not (
            options.static_argnums or options.static_argnames or options.donate_argnums or options.donate_argnames
        )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jitted {self.fun!r}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return self._call(args, kwargs)
        except Exception as error:
            shorten(error)
            raise

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if config.disable_jit.value:
            return self.fun(*args, **kwargs)
        if self._plain:
            leaves, tree = tree_flatten((args, kwargs))
            static: tuple[Any, ...] = ()
        else:
            args, kwargs, static = self._without_static(args, kwargs)
            leaves, tree = tree_flatten((args, kwargs))
        try:
            avals = tuple([x.aval if type(x) is Array else aval_of(x) for x in leaves])
        except TypeError:
            if any(type(x) is Ref for x in leaves):
                return self._call_with_refs([], (args, kwargs, static), None)
            leaves, tree = flat_operands((args, kwargs))
            avals = tuple(map(aval_of, leaves))
        key = (tree, avals, static, *_more_of_the_key())
        program = self._cache.get(key)
        if program is None:
            captured = self._captured.get(key)
            if captured and all(r.usable() for r in captured):
                return self._call_with_refs(captured, (args, kwargs, static), key)
            try:
                program = self._trace(args, kwargs, static, tree, avals)
            except CapturedRef as error:
                if not belongs_here(error.ref, []):
                    raise noted(error) from None
                self._captured[key] = [error.ref]
                self._on_values.pop(key, None)
                return self._call_with_refs([error.ref], (args, kwargs, static), key)
            self._cache[key] = program
        for i in program.used_up:
            key_reuse.use(leaves[i])
        if context.trace is not None or any(isinstance(x, Tracer) for x in leaves):
            outs = jit_p.bind(*program.consts, *map(operand_of, leaves), jaxpr=program.opened, name=program.name)
            return program.out_tree.unflatten(outs)
        donated = (False,) * len(leaves) if self._plain else self._donated(args, kwargs)
        operands = [x if type(x) is Array else to_array(operand_of(x)) for x in leaves]
        outs = program.executable()([*program.consts, *operands])
        if any(donated):
            for operand, given in zip(operands, donated, strict=True):
                if given:
                    operand.delete()
        return program.out_tree.unflatten(outs)

    def _call_with_refs(self, captured: list[Ref], split: Split, signature: Any) -> Any:
        programs = self._on_values.setdefault(signature, {})
        result = call_with_refs(self.fun, captured, split, self._together, programs, jit)
        if not self._plain:
            args, kwargs, _ = split
            for leaf, given in zip(tree_flatten((args, kwargs))[0], self._donated(args, kwargs), strict=True):
                if given and type(leaf) is Array:
                    leaf.delete()
        return result

    def _without_static(
        self, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...]]:
        """Dynamic positional and keyword arguments, and the static ones as a hashable key."""
        numbers = (
            {n % len(args) if -len(args) <= n < len(args) else n for n in self.options.static_argnums}
            if args
            else set()
        )
        names = set(self.options.static_argnames)
        by_position = tuple((n, a) for n, a in enumerate(args) if n in numbers)
        by_name = tuple((k, kwargs[k]) for k in sorted(kwargs) if k in names)
        for where, value in (*by_position, *by_name):
            try:
                hash(value)
            except TypeError as error:
                label = self._label(where)
                raise ValueError(
                    f"Non-hashable static arguments are not supported: the static argument {label} "
                    f"of {_name(self.fun)} is {value!r} of type "
                    f"{type(value).__name__} ({error}).  Pass a hashable value (a tuple in place "
                    "of a list), or do not mark it static."
                ) from None
        static = tuple((k, type(v), v) for k, v in (*by_position, *by_name))
        dynamic = tuple(a for n, a in enumerate(args) if n not in numbers)
        return dynamic, {k: v for k, v in kwargs.items() if k not in names}, static

    def _label(self, where: Any) -> str:
        parameters = _parameters(self.fun)
        if isinstance(where, int):
            return parameters[where].name if where < len(parameters) else f"number {where}"
        return str(where)

    def _together(
        self, args: Sequence[Any], kwargs: dict[str, Any], static: tuple[Any, ...]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments with the static ones back in their places."""
        fixed = {k: v for k, _, v in static if isinstance(k, int)}
        named = {k: v for k, _, v in static if not isinstance(k, int)}
        given = iter(args)
        full = [fixed[n] if n in fixed else next(given) for n in range(len(args) + len(fixed))]
        return full, {**kwargs, **named}

    def _trace(self, args: Any, kwargs: Any, static: Any, tree: PyTreeDef, avals: Any) -> Traced:
        full_args, full_kwargs = self._together(args, kwargs, static)
        info = debug_info_of(self.fun, full_args, full_kwargs)
        if static:
            dynamic_names = [n for n in info.argument_names if not self._is_static_name(n, static)]
            info = type(info)(info.function, info.file, info.line, tuple(dynamic_names))

        def positional(dynamic: Any, keywords: Any) -> Any:
            a, k = self._together(dynamic, keywords, static)
            return self.fun(*a, **k)

        if config.explain_cache_misses.value and self._cache:
            logger.warning("%s", explain_miss(self, info, avals, list(self._cache)))
        closed, out_tree = traced(positional, tree, avals, info)
        return Traced(_name(self.fun), closed, out_tree)

    def _is_static_name(self, leaf: str, static: tuple[Any, ...]) -> bool:
        labels = {self._label(k) for k, _, _ in static}
        return any(leaf == label or leaf.startswith((label + "[", label + ".")) for label in labels)

    def _donated(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[bool, ...]:
        """For each leaf, whether its memory is given up; ``args`` no longer hold the static ones."""
        total = len(args) + len(self.options.static_argnums)
        static = {n % total if total else n for n in self.options.static_argnums}
        places = [n for n in range(total) if n not in static][: len(args)]
        donate = {n % total if total else n for n in self.options.donate_argnums}
        marked = tuple([n in donate for n in places])
        by_leaf = [m for m, a in zip(marked, args, strict=True) for _ in tree_flatten(a)[0]]
        names = set(self.options.donate_argnames)
        by_leaf += [k in names for k in sorted(kwargs) for _ in tree_flatten(kwargs[k])[0]]
        return tuple(by_leaf)

    # -- looking at it ------------------------------------------------------------------------

    def _signature(self, args: Any, kwargs: Any) -> tuple[Traced, tuple[bool, ...], PyTreeDef]:
        args, kwargs, static = self._without_static(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs), lambda x: isinstance(x, ShapeDtypeStruct))
        avals = tuple(map(abstract, leaves))
        key = (tree, avals, static, *_more_of_the_key())
        if key not in self._cache:
            self._cache[key] = self._trace(args, kwargs, static, tree, avals)
        return self._cache[key], self._donated(args, kwargs), tree

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """The traced program for these arguments (or ``ShapeDtypeStruct`` in their places)."""
        from jaxlite.transforms.stages import TracedProgram

        return TracedProgram(self, *self._signature(args, kwargs))

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """The lowered program for these arguments."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Shapes and dtypes of the result."""
        program, _, _ = self._signature(args, kwargs)
        shapes = [ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in program.closed.out_avals]
        return program.out_tree.unflatten(shapes)

    def clear_cache(self) -> None:
        """Forgets every traced program."""
        for cache in (self._cache, self._captured, self._on_values):
            cache.clear()

    def _cache_size(self) -> int:
        return len(self._cache)


def _more_of_the_key() -> tuple[Any, ...]:
    """Named axes in scope and flags: what a program depends on besides its arguments."""
    axes = context.axis_sizes
    return tuple(axes.items()) if axes else (), config.tracing_key()


def _name(fun: Any) -> str:
    return getattr(fun, "__name__", type(fun).__name__)


_caches: weakref.WeakKeyDictionary[Any, dict[Any, dict[Any, Traced]]] = weakref.WeakKeyDictionary()


def _cache_for(fun: Callable[..., Any], options: Options) -> dict[Any, Traced]:
    """The programs of ``fun``: shared by every ``jit`` of it with the same static arguments."""
    key = (options.static_argnums, options.static_argnames)
    try:
        return _caches.setdefault(fun, {}).setdefault(key, {})
    except TypeError:  # not hashable, or cannot be referred to weakly
        return {}


def clear_programs() -> None:
    """Forgets the programs of every function."""
    for by_options in list(_caches.values()):
        for programs in by_options.values():
            programs.clear()


def explain_miss(function: JitFunction, info: Any, avals: Sequence[Any], keys: Sequence[Any]) -> str:
    """Why a call is traced anew: how its arguments differ from those of the nearest earlier call."""
    where = f"{_name(function.fun)} at {info.file}:{info.line}"

    def differences(key: Any) -> list[str]:
        earlier = key[1]
        if len(earlier) != len(avals):
            return [f"the arguments have {len(avals)} leaves, before {len(earlier)}"]
        names = (
            info.argument_names if len(info.argument_names) == len(avals) else [f"leaf {i}" for i in range(len(avals))]
        )
        return [
            f"{n} is now {b.short()}, before {a.short()}"
            for n, a, b in zip(names, earlier, avals, strict=True)
            if a != b
        ]

    nearest = min(map(differences, keys), key=len)
    return f"TRACING CACHE MISS of {where}: {'; '.join(nearest) or 'a static argument or a setting changed'}."


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    abstracted_axes: Any = None,
    compiler_options: Any = None,
) -> Any:
    """``fun`` compiled: traced once per signature of its arguments, then run as machine code.

    Static arguments are hashable Python values that the program is specialised to; donated arrays give up their memory.

    >>> jit(lambda x: x * 2)(3)
    Array(6, dtype=int32, weak_type=True)
    """
    if fun is None:
        return functools.partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            abstracted_axes=abstracted_axes,
            compiler_options=compiler_options,
        )
    check_callable(fun, "jit")
    if inspect.iscoroutinefunction(fun):
        raise TypeError(f"jit expected an ordinary function, got the coroutine function {_name(fun)}.")
    if compiler_options:
        raise ValueError(
            f"compiler_options {compiler_options} are XLA's: jaxlite has its own compiler, which takes none."
        )
    check_placement("jit", device=device, in_shardings=in_shardings, out_shardings=out_shardings)
    if backend not in (None, CPU.platform):
        refuse("jit", "backend", backend, None, "programs run on the CPU")
    refuse("jit", "abstracted_axes", abstracted_axes, None, "shapes are fixed while tracing")
    return JitFunction(fun, Options(fun, static_argnums, static_argnames, donate_argnums, donate_argnames))
