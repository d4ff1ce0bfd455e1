"""Dead statements: pure ones whose result nobody reads. In and out: a body of statements."""

from __future__ import annotations

from dataclasses import replace

from jaxlite.compiler.loops import Constant, Load, Loop, Op, Reduction, Statement, Store, Value


def without_dead(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """`body` without what is not read; stores and loops stay."""
    return _sweep(body, set())


def _sweep(body: tuple[Statement, ...], live: set[Value]) -> tuple[Statement, ...]:
    """Walk backwards, keep what is live, and add what it reads to `live`."""
    kept: list[Statement] = []
    for statement in reversed(body):
        match statement:
            case Store():
                live.update((statement.index, statement.value))
                live.update((statement.mask,) if statement.mask else ())
            case Loop():
                statement = _sweep_loop(statement, live)
            case _ if statement.result not in live:
                continue
            case Op():
                live.update(statement.args)
            case Load():
                live.add(statement.index)
                live.update((statement.mask,) if statement.mask else ())
            case Constant():
                pass
        kept.append(statement)
    return tuple(reversed(kept))


def _sweep_loop(loop: Loop, live: set[Value]) -> Loop:
    for reduction in loop.reductions:
        live.update(reduction.initial + reduction.updates)
    body = _sweep(loop.body, live)
    reductions = tuple(_sweep_reduction(reduction, live) for reduction in loop.reductions)
    return replace(loop, body=body, reductions=reductions)


def _sweep_reduction(reduction: Reduction, live: set[Value]) -> Reduction:
    region = reduction.combine
    if region is None:
        return reduction
    live.update(region.results)
    return replace(reduction, combine=replace(region, body=_sweep(region.body, live)))
