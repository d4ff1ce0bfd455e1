"""The programs of test_guard_pages.py; run as ``python guard_pages.py GROUP``, which prints each one's name.

Each program runs eagerly and compiled on arrays between pages without access, and must give what NumPy gives.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import guarded_memory
import numpy as np

import jaxlite as jax
import jaxlite.numpy as jnp
from jaxlite import lax
from jaxlite.core.array import from_numpy

Case: TypeAlias = tuple[str, Callable[..., Any], Any, tuple[Any, ...]]  # name, function, what it gives, operands

LENGTHS = (1, 2, 3, 7, 15, 17, 31, 33, 67)  # beside the multiples of vectors of 2 to 64 elements
NAMES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float16", "bfloat16", "float32", "float64")  # fmt: skip
DTYPES = {name: np.dtype(getattr(jnp, "bool_" if name == "bool" else name)) for name in NAMES}
FAR = (0, 2, -1, -2, 5, 6, 100, -100, 2**31 - 1, -(2**31))  # indices, of which most are out of range


def values(shape: Any, dtype: str, top: int = 3, seed: int = 0) -> Any:
    """Integers below ``top``: sums and products are exact in every dtype."""
    return np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else top, shape).astype(DTYPES[dtype])


# -- the groups ----------------------------------------------------------------------------------


def elementwise() -> Iterator[Case]:
    def f(x: Any, y: Any, one: Any) -> Any:
        if x.dtype == bool:
            return ~x, x & y, x ^ one
        return x + y, x * y + one, jnp.where(x > y, x, one), x == y

    def g(x: Any, y: Any, one: Any) -> Any:
        if x.dtype == bool:
            return ~x, x & y, x ^ one
        return x + y, x * y + one, np.where(x > y, x, one), x == y

    for dtype in DTYPES:
        for n in LENGTHS:
            x, y, one = values(n, dtype), values(n, dtype, seed=1), values((), dtype, 2, seed=2)
            yield f"{dtype}[{n}]", f, g(x, y, one), (x, y, one)
        x, row, column = values((5, 19), dtype), values(19, dtype, seed=1), values((5, 1), dtype, seed=2)
        yield f"{dtype} rows and columns", f, g(x, row, column), (x, row, column)
    x, y = values(300_001, "float32"), values(300_001, "float32", seed=1)  # split over threads
    yield "long", f, g(x, y, np.float32(1)), (x, y, np.ones((), np.float32))
    z = np.linspace(0.1, 2, 37).astype(np.float32)
    yield "functions", lambda x: (jnp.exp(x), jnp.log(x), jnp.sin(x), x**1.5), (
        np.exp(z), np.log(z), np.sin(z), z**np.float32(1.5),
    ), (z,)  # fmt: skip


def casts() -> Iterator[Case]:
    for dtype in DTYPES:
        for n in (1, 19, 65):
            x = values(n, dtype)
            targets = list(DTYPES.values())
            yield f"{dtype}[{n}]", lambda x, t=targets: [x.astype(d) for d in t], [x.astype(d) for d in targets], (x,)


def reductions() -> Iterator[Case]:
    def of(np: Any, x: Any, axis: Any) -> Any:
        if x.dtype == bool:
            return x.any(axis), x.all(axis)
        return x.sum(axis), x.max(axis), x.min(axis), x.argmax(axis)

    for dtype in DTYPES:
        for shape in ((1,), (67,), (3, 17), (17, 3), (2, 19, 3)):
            x = values(shape, dtype)
            axes = (*range(len(shape)), None)
            yield (
                f"{dtype}{list(shape)}",
                lambda x, axes=axes: [of(jnp, x, a) for a in axes],
                [of(np, x, a) for a in axes],
                (x,),
            )
    x = values(300_001, "float32")
    yield "long", lambda x: x.sum(), x.sum(dtype=np.float64), (x,)
    for shape in ((3, 17), (17, 5), (1, 31)):
        x = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
        e = np.exp(x)
        yield f"softmax {shape}", lambda x: jax.nn.softmax(x, -1), e / e.sum(-1, keepdims=True), (x,)
        yield f"columns {shape}", lambda x: x - x.mean(0), x - x.mean(0), (x,)
    for dtype in ("int32", "float32", "float64", "int8"):
        for n in LENGTHS:
            x = values(n, dtype, 2)
            yield f"cumulative {dtype}[{n}]", lambda x: (
                jnp.cumsum(x), lax.cummax(x), lax.cumsum(x, reverse=True),
            ), (np.cumsum(x), np.maximum.accumulate(x), np.cumsum(x[::-1])[::-1]), (x,)  # fmt: skip


def layout() -> Iterator[Case]:
    for dtype in DTYPES:
        for shape in ((33, 17), (1, 19)):
            x = values(shape, dtype)
            zero = jnp.zeros((), x.dtype)
            yield f"{dtype}{list(shape)}", lambda x, z=zero: (
                x.T, x[::-1], x[:, ::-2], x[1:, 1:], x.reshape(-1)[1:], jnp.roll(x, 2, 1), jnp.tile(x, (2, 1)),
                jnp.concatenate([x, x[:1]]), lax.pad(x, z, [(1, -1, 0), (0, 2, 1)]), jnp.repeat(x, 3, 1),
            ), (
                x.T, x[::-1], x[:, ::-2], x[1:, 1:], x.reshape(-1)[1:], np.roll(x, 2, 1), np.tile(x, (2, 1)),
                np.concatenate([x, x[:1]]), padded(x), np.repeat(x, 3, 1),
            ), (x,)  # fmt: skip
        x = values((3, 13, 2), dtype)
        orders = [(2, 1, 0), (1, 0, 2), (0, 2, 1)]
        yield (
            f"{dtype} three axes",
            lambda x, o=orders: [x.transpose(p) for p in o],
            [x.transpose(p) for p in orders],
            (x,),
        )
    x = values((301, 203), "float32")
    yield "large", lambda x: x.T, x.T, (x,)


def padded(x: Any) -> Any:
    """``lax.pad(x, 0, [(1, -1, 0), (0, 2, 1)])``."""
    out = np.zeros((x.shape[0], 2 * x.shape[1] - 1 + 2), x.dtype)
    out[1:, : 2 * x.shape[1] - 1 : 2] = x[:-1]
    return out


def wrapped(index: Any, n: int) -> Any:
    """As indexing does: negative indices count from the end, once."""
    return np.where(index < 0, index + n, index)


def placed(start: int, n: int, width: int) -> int:
    """Where a window begins in an axis of ``n``: negative starts count from the end, and it stays inside."""
    return min(max(start + n if start < 0 else start, 0), n - width)


def indexing() -> Iterator[Case]:
    far = np.array(FAR)
    for dtype in DTYPES:
        for shape in ((6,), (6, 17)):
            x = values(shape, dtype)
            n = shape[0]
            for kind in ("int32", "int64", "int8") if dtype == "float32" else ("int32",):
                info = np.iinfo(kind)
                i = far[(far >= info.min) & (far <= info.max)].astype(kind)
                w = wrapped(i.astype(np.int64), n)
                inside = (w >= 0) & (w < n)
                clipped, taken = x[np.clip(w, 0, n - 1)], x[np.clip(w, 0, n - 1)].copy()
                taken[~inside] = 1
                yield f"gather {dtype}{list(shape)} by {kind}", lambda x, i: (
                    x[i], x.at[i].get(mode="clip"), x.at[i].get(mode="fill", fill_value=1),
                    jnp.take(x, i, 0, mode="wrap"),
                ), (clipped, clipped, taken, x[i.astype(np.int64) % n]), (x, i)  # fmt: skip
                if dtype == "bool":
                    continue
                u = values((len(i), *shape[1:]), dtype, seed=3)
                added, put, clip = x.copy(), x.copy(), x.copy()
                np.add.at(added, w[inside], u[inside])
                np.maximum.at(put, w[inside], u[inside])
                np.add.at(clip, np.clip(w, 0, n - 1), u)
                yield f"scatter {dtype}{list(shape)} by {kind}", lambda x, i, u: (
                    x.at[i].add(u), x.at[i].max(u, mode="drop"), x.at[i].add(u, mode="clip"),
                ), (added, put, clip), (x, i, u)  # fmt: skip
        x, u = values((6, 7), dtype), values((2, 3), dtype, seed=1)
        for start in ((0, 0), (5, 6), (-1, -3), (100, 2), (-(2**31), 2**31 - 1)):
            at = [placed(s, m, k) for s, m, k in zip(start, x.shape, u.shape, strict=True)]
            window = tuple(slice(a, a + k) for a, k in zip(at, u.shape, strict=True))
            updated = x.copy()
            updated[window] = u
            yield f"dynamic slice {dtype} at {start}", lambda x, u, a, b: (
                lax.dynamic_slice(x, (a, b), (2, 3)), lax.dynamic_update_slice(x, u, (a, b)),
            ), (x[window], updated), (x, u, np.int32(start[0]), np.int32(start[1]))  # fmt: skip
    x, i = values((5, 7), "float32"), np.array([[9, -9, 3], [0, 6, -7], [7, 8, -1], [2, 2, 2], [-8, 1, 0]], np.int32)
    w = wrapped(i, 7)
    along = np.where((w >= 0) & (w < 7), np.take_along_axis(x, np.clip(w, 0, 6), 1), np.nan)
    yield "take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), along, (x, i)
    starts = np.array([0, 3, 99, -99, -1], np.int32)
    rows = np.stack([x[placed(s, 5, 2) :][:2] for s in starts])
    yield "dynamic slices", lambda x, s: jax.vmap(lambda a: lax.dynamic_slice_in_dim(x, a, 2))(s), rows, (x, starts)
    yield "one_hot", lambda i: jax.nn.one_hot(i, 7), (i[..., None] == np.arange(7)).astype(np.float32), (i,)
    ordered = np.sort(values(19, "float32", 50))
    probes = np.array([-1, 0, 7.5, 49, 1000, np.inf, -np.inf], np.float32)
    yield "searchsorted", lambda s, p: (jnp.searchsorted(s, p), jnp.searchsorted(s, p, side="right")), (
        np.searchsorted(ordered, probes), np.searchsorted(ordered, probes, side="right"),
    ), (ordered, probes)  # fmt: skip
    yield (
        "nonzero",
        lambda x: jnp.nonzero(x, size=40, fill_value=-1)[0],
        np.concatenate([np.nonzero(x.ravel())[0], np.full(40, -1)])[:40],
        (x.ravel(),),
    )


def sorting() -> Iterator[Case]:
    for dtype in DTYPES:
        for n in LENGTHS:
            x = values(n, dtype, 50)
            yield f"{dtype}[{n}]", lambda x: (jnp.sort(x), jnp.argsort(x, stable=True)), (
                np.sort(x), np.argsort(x, kind="stable"),
            ), (x,)  # fmt: skip
        x = values((7, 5), dtype, 50)
        yield f"{dtype} columns", lambda x: (jnp.sort(x, 0), jnp.argsort(x, 0)), (
            np.sort(x, 0), np.argsort(x, 0, kind="stable"),
        ), (x,)  # fmt: skip
        keys, payload = values(37, dtype, 5), np.arange(37, dtype=np.int32)
        order = np.argsort(keys, kind="stable")
        yield f"{dtype} with payload", lambda k, p: lax.sort((k, p), num_keys=1), (keys[order], payload[order]), (
            keys, payload,
        )  # fmt: skip


def products() -> Iterator[Case]:
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int8"):
        for m, k, n in ((1, 1, 1), (3, 5, 7), (17, 1, 3), (1, 33, 9), (13, 67, 31), (65, 33, 17)):
            x, y = values((m, k), dtype, 2), values((k, n), dtype, 2, seed=1)
            wide = x.astype(np.int64) @ y.astype(np.int64)
            yield f"{dtype} {m} {k} {n}", lambda x, y: (x @ y, (y.T @ x.T).T, x @ y[:, 0], x[0] @ y), (
                wide, wide, wide[:, 0], wide[0],
            ), (x, y)  # fmt: skip
        x, y = values((3, 5, 7), dtype, 2), values((3, 7, 11), dtype, 2, seed=1)
        yield f"{dtype} batches", lambda x, y: (x @ y, jnp.einsum("bij,bjk->kbi", x, y)), (
            np.matmul(x.astype(np.int64), y.astype(np.int64)),
            np.einsum("bij,bjk->kbi", x.astype(np.int64), y.astype(np.int64)),
        ), (x, y)  # fmt: skip
    x, y = values((301, 99), "float32", 2), values((99, 203), "float32", 2, seed=1)
    yield "large", lambda x, y: x @ y, x @ y, (x, y)


def loops() -> Iterator[Case]:
    for dtype in ("float32", "float64", "int32", "int8", "bfloat16"):
        for n in (1, 5, 17):
            x = values((7, n), dtype, 2)
            sums = np.cumsum(x.astype(np.int64), 0)
            back = np.cumsum(x[::-1].astype(np.int64), 0)[::-1]

            def forward(x: Any) -> Any:
                return lax.scan(lambda c, r: (c + r, (c + r, c)), jnp.zeros_like(x[0]), x)

            def backward(x: Any) -> Any:
                return lax.scan(lambda c, r: (c + r, c + r), jnp.zeros_like(x[0]), x, reverse=True)[1]

            yield f"scan {dtype} {n}", forward, (sums[-1], (sums, np.concatenate([0 * sums[:1], sums[:-1]]))), (x,)
            yield f"scan back {dtype} {n}", backward, back, (x,)
            yield (
                f"fori {dtype} {n}",
                lambda x: lax.fori_loop(-3, 12, lambda i, v: lax.dynamic_update_slice(v, x[:1], (i, 0)), x),
                np.tile(x[:1], (7, 1)),
                (x,),
            )
            yield (
                f"while {dtype} {n}",
                lambda x: lax.while_loop(lambda v: v[0, 0] < 9, lambda v: v[::-1] + jnp.ones_like(x), x),
                rolled(x),
                (x,),
            )
            for index in (-5, 0, 1, 2, 77):
                yield (
                    f"switch {dtype} {n} {index}",
                    lambda i, x: lax.switch(i, [lambda v: v, lambda v: v[::-1], lambda v: v + v], x),
                    (x, x[::-1], x + x)[min(max(index, 0), 2)],
                    (np.int32(index), x),
                )
    x = values((17, 3), "float32", 2)
    yield "associative", lambda x: lax.associative_scan(jnp.add, x), np.cumsum(x, 0), (x,)
    yield (
        "nested",
        lambda x: lax.scan(lambda c, r: lax.scan(lambda d, e: (d + e, d * e), c, r), jnp.float32(0), x)[1],
        nested(x),
        (x,),
    )
    yield (
        "gradient",
        jax.grad(lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x)[1].sum()),
        gradient(x),
        (x,),
    )


def rolled(x: Any) -> Any:
    while x[0, 0] < 9:
        x = (x[::-1] + np.ones_like(x)).astype(x.dtype)
    return x


def nested(x: Any) -> Any:
    out, d = np.zeros_like(x), np.float32(0)
    for position in np.ndindex(*x.shape):
        out[position] = d * x[position]
        d += x[position]
    return out


def gradient(x: Any) -> Any:
    """Of the sum of all carries c(k+1) = c(k) / 2 + x(k), from c(0) = x(0)."""
    n = len(x)
    slope = np.array([sum(0.5**j for j in range(n - 1 - k)) for k in range(n)])
    slope[0] += sum(0.5**j for j in range(n))
    return np.repeat(slope[:, None], x.shape[1], 1)


def linalg() -> Iterator[Case]:
    for dtype in ("float32", "float64"):
        for n in (1, 3, 7, 17, 33):
            rng = np.random.default_rng(n)
            a = rng.uniform(-1, 1, (n, n)).astype(dtype)
            s = a @ a.T + n * np.eye(n, dtype=dtype)
            b = rng.uniform(-1, 1, (n, 3)).astype(dtype)
            yield f"{dtype} {n}", lambda s, b: (
                jnp.linalg.cholesky(s), jnp.linalg.solve(s, b), jnp.linalg.inv(s), jnp.linalg.slogdet(s)[1],
            ), (
                np.linalg.cholesky(s), np.linalg.solve(s, b), np.linalg.inv(s), np.linalg.slogdet(s)[1],
            ), (s, b)  # fmt: skip
        stack = np.stack([s[:5, :5], s[5:10, 5:10], s[:5, :5] * 2])
        yield f"{dtype} batch", lambda s: jnp.linalg.cholesky(s), np.linalg.cholesky(stack), (stack,)


def random() -> Iterator[Case]:
    for n in (1, 2, 3, 17, 67, 1001):
        for draw in (jax.random.bits, jax.random.uniform, jax.random.normal, jax.random.permutation):
            what = n if draw is jax.random.permutation else (n,)
            want = np.asarray(draw(jax.random.key(n), what))  # before memory is guarded
            words = np.asarray(jax.random.key_data(jax.random.key(n)))
            yield f"{draw.__name__} {n}", lambda w, d=draw, s=what: d(jax.random.wrap_key_data(w), s), want, (words,)


GROUPS = {
    g.__name__: g for g in (elementwise, casts, reductions, layout, indexing, sorting, products, loops, linalg, random)
}

# Integers are exact; elementary functions, sums and factorisations of well-conditioned matrices lose a few ulps.
CLOSE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-4, "float64": 1e-10}


def compare(name: str, got: Any, want: Any) -> None:
    gots, wants = jax.tree.leaves(got), jax.tree.leaves(want)
    assert len(gots) == len(wants), f"{name}: {len(gots)} results"
    for g, w in zip(gots, wants, strict=True):
        have, expected = np.asarray(g), np.asarray(w)
        assert have.shape == expected.shape, f"{name}: shape {have.shape}, not {expected.shape}"
        close = CLOSE.get(have.dtype.name, 0)
        wide = np.float64 if close else expected.dtype
        np.testing.assert_allclose(have.astype(wide), expected.astype(wide), rtol=close, atol=close, err_msg=name)


def run(group: str) -> None:
    with jax.enable_x64(True):
        cases = list(GROUPS[group]())
        guarded_memory.install()
        for name, function, want, given in cases:
            print(name, flush=True)  # the last that is printed is the one that died
            for where in ("before", "after"):
                with guarded_memory.placed(where):
                    operands = [from_numpy(guarded_memory.guarded(np.asarray(a))) for a in given]
                    for call in (function, jax.jit(function)):
                        got = call(*operands)
                        guarded_memory.check()
                        compare(name, got, want)
                for operand, original in zip(operands, given, strict=True):
                    np.testing.assert_array_equal(operand, original, err_msg=f"{name}: an operand changed")
    print(f"{len(cases)} programs passed", flush=True)


if __name__ == "__main__":
    run(sys.argv[1])
