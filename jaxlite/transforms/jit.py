"""``jit``: traces a function once for each signature of its arguments, compiles it, and calls the machine code.

A call flattens its arguments, looks its signature up, hands the arrays over and wraps the results.  Under another
transformation (or with traced arguments) the call becomes one ``jit`` equation.
"""

from __future__ import annotations

import functools
import inspect
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

from jaxlite.core import config, key_reuse, locks, runtime
from jaxlite.core.array import Array, to_array
from jaxlite.core.avals import ShapedArray, aval_of
from jaxlite.core.bounded import Bounded
from jaxlite.core.context import context
from jaxlite.core.device import CPU, check_placement
from jaxlite.core.errors import refuse
from jaxlite.core.jaxpr import ClosedJaxpr
from jaxlite.core.mesh_in_use import mesh_in_use
from jaxlite.core.pytree import PyTreeDef, tree_flatten
from jaxlite.core.ref import CapturedRef, Ref, belongs_here, noted
from jaxlite.core.trace import Tracer
from jaxlite.core.tracebacks import shorten
from jaxlite.interpreters.stage import closed_over_nothing, refuse_escaped
from jaxlite.lax.control.call import jit_p
from jaxlite.lax.control.trace_functions import traced
from jaxlite.lax.convert import operand_of
from jaxlite.transforms.arguments import check_callable, debug_info_of, flat_operands
from jaxlite.transforms.donation import Donation, read_arguments, used_up, warn_of
from jaxlite.transforms.jaxprs import ShapeDtypeStruct, abstract
from jaxlite.transforms.jit_arguments import Options, name_of
from jaxlite.transforms.jit_refs import Split, call_with_refs
from jaxlite.transforms.jit_shardings import InShardings, laying_out
from jaxlite.transforms.recent_call import CALLS_BEFORE, MISS, RecentCall

logger = logging.getLogger("jaxlite")


MOST_SIGNATURES = 1024  # programs of a function that are kept: the latest
MOST_PREPARED = 64  # of them, those with a short way


@final
class Traced:
    """One signature's program: its jaxpr, what it closes over, the structure of its result, and its machine code."""

    def __init__(
        self, name: str, closed: ClosedJaxpr, out_tree: PyTreeDef, seconds: float, avals: Sequence[ShapedArray]
    ) -> None:
        self.name, self.closed, self.out_tree = name, closed, out_tree
        self.seconds = seconds  # that tracing took
        self.opened, consts = closed_over_nothing(closed)
        # handles of its own: an array that is donated elsewhere or deleted stays here, as in JAX
        self.consts = tuple([c.of_type(c.aval) if type(c) is Array else c for c in consts])
        lie = [*[aval_of(c).sharding for c in self.consts], *[a.sharding for a in avals]]
        self.shardings = lie if any(s is not None for s in lie) else ()
        uses = key_reuse.used_by(closed.jaxpr) if config.debug_key_reuse.value else {}
        self.used_up = [i for i, v in enumerate(closed.jaxpr.invars) if v in uses]
        self.calls = 0
        self._executable: runtime.Executable | None = None
        self._donations: dict[tuple[bool, ...], Donation] = {}
        self._lock = locks.lock()

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
                    executable = runtime.current().compile(self.opened, self.name, self.shardings)
                    executable.seconds["trace"] = self.seconds
                    self._executable = executable
        return self._executable

    def donating(self, donated: tuple[bool, ...]) -> Donation:
        """The same, called with donated leaves; where some are of no use, the first call warns."""
        donation = self._donations.get(donated)
        if donation is None:
            used, unused = used_up(self.closed, donated)
            before = len(self.consts)
            read = [before + number for number in read_arguments(self.closed)]
            donation = Donation(self.executable(), [before + number for number in used], read)
            self._donations[donated] = donation
            if unused:
                warn_of(unused, self.name)
        return donation


@final
class JitFunction:
    """What ``jit`` returns: call it, or look at it with ``trace``, ``lower`` and ``eval_shape``."""

    def __init__(self, fun: Callable[..., Any], options: Options, in_shardings: InShardings | None = None) -> None:
        functools.update_wrapper(self, fun, updated=())
        self.fun, self.options, self.in_shardings = fun, options, in_shardings
        self._cache = _cache_for(fun, options)
        # refs that the function closes over, and programs of refs' values, by signature
        self._captured: Bounded[Any, list[Ref]] = Bounded(MOST_SIGNATURES)
        self._on_values: Bounded[Any, dict[Any, JitFunction]] = Bounded(MOST_SIGNATURES)
        self._recent: RecentCall | None = None
        self._prepared: Bounded[Traced, RecentCall] = Bounded(MOST_PREPARED)

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
        recent = self._recent
        if recent is not None and recent.version == config.settings.version and context.trace is None:
            result = recent.call(args, kwargs)
            if result is not MISS:
                return result
        if self.in_shardings is not None:
            args = self.in_shardings.place(args, kwargs)
        if config.disable_jit.value:
            return self.fun(*args, **kwargs)
        static: tuple[Any, ...] = ()
        if self.options.divides:
            args, kwargs, static = self.options.without_static(args, kwargs)
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
        operands = [x if type(x) is Array else to_array(operand_of(x)) for x in leaves]
        donated = self.options.donated(args, kwargs) if self.options.donates else ()
        run = program.donating(donated) if donated else program.executable()
        outs = run([*program.consts, *operands])
        if not self.options.divides:
            self._remember(program, tree, avals, run)
        return program.out_tree.unflatten(outs)

    def _remember(
        self, program: Traced, tree: PyTreeDef, avals: Sequence[Any], run: runtime.Executable | Donation
    ) -> None:
        """Prepares the short way for programs that come again, unless settings differ among threads."""
        program.calls += 1
        if program.calls < CALLS_BEFORE or program.used_up or not config.settings.version:
            return
        recent = self._prepared.get(program)
        if recent is None:
            recent = RecentCall(tree, program.out_tree, run, program.consts)
            self._prepared[program] = recent
        recent.renew(avals, config.settings.version)
        self._recent = recent

    def _call_with_refs(self, captured: list[Ref], split: Split, signature: Any) -> Any:
        programs = self._on_values.setdefault(signature, {})
        result = call_with_refs(self.fun, captured, split, self.options.together, programs, jit)
        if self.options.donates:
            args, kwargs, _ = split
            for leaf, given in zip(tree_flatten((args, kwargs))[0], self.options.donated(args, kwargs), strict=True):
                if given and type(leaf) is Array:
                    leaf.delete()
        return result

    def _trace(self, args: Any, kwargs: Any, static: Any, tree: PyTreeDef, avals: Any) -> Traced:
        full_args, full_kwargs = self.options.together(args, kwargs, static)
        info = debug_info_of(self.fun, full_args, full_kwargs)
        if static:
            dynamic_names = [n for n in info.argument_names if not self.options.is_static_name(n, static)]
            info = type(info)(info.function, info.file, info.line, tuple(dynamic_names))

        def positional(dynamic: Any, keywords: Any) -> Any:
            a, k = self.options.together(dynamic, keywords, static)
            return self.fun(*a, **k)

        if config.explain_cache_misses.value and self._cache:
            logger.warning("%s", explain_miss(self, info, avals, list(self._cache)))
        start = time.perf_counter()
        closed, out_tree = traced(positional, tree, avals, info)
        return Traced(name_of(self.fun), closed, out_tree, time.perf_counter() - start, avals)

    def stages_of_a_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Callable[[], Any]]:
        """For each stage of a warm call with these arguments, a function that does everything up to its end."""
        if self.options.divides or self.options.donates:
            raise ValueError(
                f"The calls of {name_of(self.fun)} are not taken apart: it has static or donated arguments. "
                "jit it without them to see what its calls cost."
            )
        for _ in range(CALLS_BEFORE):
            self._call(args, kwargs)
        recent = self._recent
        if recent is None or recent.call(args, kwargs) is MISS:
            raise ValueError(
                f"The calls of {name_of(self.fun)} are not warm ones with these arguments: give arrays and numbers "
                "outside of transformations and of blocks that set flags."
            )
        return recent.prefixes(args, kwargs)

    # -- looking at it ------------------------------------------------------------------------

    def _signature(self, args: Any, kwargs: Any) -> tuple[Traced, tuple[bool, ...], PyTreeDef]:
        if self.in_shardings is not None:
            args = self.in_shardings.place(args, kwargs)
        args, kwargs, static = self.options.without_static(args, kwargs)
        leaves, tree = tree_flatten((args, kwargs), lambda x: isinstance(x, ShapeDtypeStruct))
        avals = tuple(map(abstract, leaves))
        key = (tree, avals, static, *_more_of_the_key())
        if key not in self._cache:
            self._cache[key] = self._trace(args, kwargs, static, tree, avals)
        return self._cache[key], self.options.donated(args, kwargs), tree

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
        self._prepared.clear()
        config.settings.changed()  # short ways too

    def _cache_size(self) -> int:
        return len(self._cache)


def _more_of_the_key() -> tuple[Any, ...]:
    """Named axes in scope and flags: what a program depends on besides its arguments."""
    axes = context.axis_sizes
    return tuple(axes.items()) if axes else (), config.tracing_key(), mesh_in_use.value, context.resolving


_caches: weakref.WeakKeyDictionary[Any, dict[Any, Bounded[Any, Traced]]] = weakref.WeakKeyDictionary()


def _cache_for(fun: Callable[..., Any], options: Options) -> Bounded[Any, Traced]:
    """The programs of ``fun``: shared by every ``jit`` of it with the same static arguments."""
    key = (options.static_argnums, options.static_argnames)
    try:
        return _caches.setdefault(fun, {}).setdefault(key, Bounded(MOST_SIGNATURES))
    except TypeError:  # not hashable, or cannot be referred to weakly
        return Bounded(MOST_SIGNATURES)


def clear_programs() -> None:
    """Forgets the programs of every function."""
    for by_options in list(_caches.values()):
        for programs in list(by_options.values()):
            programs.clear()
    config.settings.changed()  # short ways too


def explain_miss(function: JitFunction, info: Any, avals: Sequence[Any], keys: Sequence[Any]) -> str:
    """Why a call is traced anew: how its arguments differ from those of the nearest earlier call."""
    where = f"{name_of(function.fun)} at {info.file}:{info.line}"

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
        raise TypeError(f"jit expected an ordinary function, got the coroutine function {name_of(fun)}.")
    if compiler_options:
        raise ValueError(
            f"compiler_options {compiler_options} are XLA's: jaxlite has its own compiler, which takes none."
        )
    check_placement("jit", device=device)
    if backend not in (None, CPU.platform):
        refuse("jit", "backend", backend, None, "programs run on the CPU")
    refuse("jit", "abstracted_axes", abstracted_axes, None, "shapes are fixed while tracing")
    options = Options(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    ins = None if in_shardings is None else InShardings(in_shardings, fun)
    return JitFunction(fun if out_shardings is None else laying_out(fun, out_shardings), options, ins)
