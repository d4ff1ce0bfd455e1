"""The LLVM emitter: every opcode and dtype, every kind of loop and access, at three vector widths.

Values are compared with NumPy. The only symbols allowed in an object are its own.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from native import Native, undefined_symbols

from jaxlite.backends.cpu.emit import MOST_COPIES, emit_kernel, module_text
from jaxlite.backends.cpu.target import Target
from jaxlite.compiler.builder import Builder, Carry
from jaxlite.compiler.loop_verifier import verify_kernel
from jaxlite.compiler.loops import OPCODES, Kernel, kind

F32 = np.float32
TARGETS = [Target(64), Target(32), Target(16, masked=False)]
# What each vector width is for: (target, LLVM's CPU, triple); an empty triple is this machine's.
MACHINES = {
    "avx512": (Target(64), "skylake-avx512", "x86_64-unknown-linux-gnu"),
    "avx2": (Target(32), "haswell", "x86_64-unknown-linux-gnu"),
    "sse4": (Target(16, masked=False, fma=False), "x86-64-v2", "x86_64-unknown-linux-gnu"),
    "neon": (Target(16, masked=False), "generic", "aarch64-unknown-linux-gnu"),
}
INTEGERS = [np.dtype(f"{sign}{size}") for sign in "iu" for size in (1, 2, 4, 8)]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype("f2"), BFLOAT16, np.dtype("f4"), np.dtype("f8")]
DTYPES = [np.dtype(bool), *INTEGERS, *FLOATS]


def elementwise(opcode: str, dtypes: list[Any], result: Any = None) -> Kernel:
    """A flat map of one opcode over a run-time extent."""
    b = Builder()
    inputs = [b.buffer(f"x{i}", dtype, None, "input") for i, dtype in enumerate(dtypes)]
    extent = b.size()
    rule = OPCODES[opcode].result
    given = np.dtype(bool) if rule == "bool" else result if rule == "given" else dtypes[-1]
    output = b.buffer("out", given, None, "output")
    with b.loop(extent, parallel=True, vector=True) as i:
        loaded = [b.load(x, i) for x in inputs]
        b.store(output, i, b.emit(opcode, *loaded, dtype=result))
    kernel = b.finish(opcode)
    verify_kernel(kernel)
    return kernel


def run(kernel: Kernel, target: Target, *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Call an elementwise kernel; its result must end where it should."""
    size = len(arrays[0])
    out = np.zeros(size + 1, kernel.buffers[-1].dtype)
    out[size] = 1
    Native(kernel, target)(*arrays, out, sizes=[size], high=size)
    assert out[size] == 1
    return out[:size]


def accepted() -> list[tuple[str, Any]]:
    """Every opcode with each dtype that it accepts."""
    return [
        (opcode, dtype)
        for opcode, rule in OPCODES.items()
        if rule.result != "given"
        for dtype in DTYPES
        if kind(dtype) in rule.accepts
    ]


@pytest.mark.parametrize("machine", MACHINES)
def test_every_opcode_needs_no_symbol(machine: str) -> None:
    target, cpu, triple = MACHINES[machine]
    texts = []
    for number, (opcode, dtype) in enumerate(accepted()):
        arity = OPCODES[opcode].arity
        dtypes = [np.dtype(bool), dtype, dtype] if opcode == "select" else [dtype] * arity
        texts.append(emit_kernel(elementwise(opcode, dtypes), target, f"jl_{number}"))
    assert undefined_symbols(module_text(texts), cpu, triple) == set()


@pytest.mark.parametrize("machine", MACHINES)
def test_every_conversion_needs_no_symbol(machine: str) -> None:
    target, cpu, triple = MACHINES[machine]
    pairs = [(a, b) for a in DTYPES for b in DTYPES if a != b]
    texts = [emit_kernel(elementwise("convert", [a], b), target, f"jl_{number}") for number, (a, b) in enumerate(pairs)]
    assert undefined_symbols(module_text(texts), cpu, triple) == set()


def test_an_undefined_symbol_would_be_seen() -> None:
    text = "declare float @missing(float)\ndefine float @jl_k(float %x) {\n"
    text += "  %y = call float @missing(float %x)\n  ret float %y\n}\n"
    for _, cpu, triple in MACHINES.values():
        assert undefined_symbols(text, cpu, triple) == {"missing"}


def interesting(dtype: Any) -> np.ndarray[Any, Any]:
    """Edges and ordinary values of a dtype."""
    if kind(dtype) == "b":
        return np.array([True, False] * 10)
    if kind(dtype) == "f":
        edges = [0.0, -0.0, 1.0, -1.0, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3.3, 1e4, -7.7]
        return np.array([*edges, 6e-8, 1e-7, 65504.0, 300.5]).astype(dtype)
    info = np.iinfo(dtype)
    edges = [0, 1, 2, 3, 7, 10, 100, info.max, info.max - 1, info.min, info.min + 1]
    edges += [-1, -2, -7] if info.min < 0 else [5, 6]
    return np.array(edges, dtype)


def every_pair(dtype: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    values = interesting(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


def comparable(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same values where NumPy's tests know NaN: bfloat16 (older ml_dtypes) as float32."""
    return values.astype(F32) if values.dtype.name == "bfloat16" else values


def truncated_quotient(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integer division as JAX has it, by Python's integers."""
    results = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        results.append(-1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))
    return np.array(results, object)


def wrap(values: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    bits = 8 * np.dtype(dtype).itemsize
    unsigned = np.array([int(value) % (1 << bits) for value in values], f"u{bits // 8}")
    return unsigned.view(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_arithmetic(dtype: Any) -> None:
    x, y = every_pair(dtype)
    a, b = x.astype(object), y.astype(object)
    quotient = truncated_quotient(x, y)
    bits = 8 * dtype.itemsize
    unsigned = [int(v) % (1 << bits) for v in x]
    in_range = (y >= 0) & (y < bits)
    shifts = np.where(in_range, b, 0)
    expected = {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "div": quotient,
        "rem": np.where(y == 0, a, a - quotient * b),
        "max": np.maximum(a, b),
        "min": np.minimum(a, b),
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "shift_left": np.where(in_range, a << shifts, 0),
        "shift_right_arithmetic": a >> np.where(in_range, b, bits),
        "shift_right_logical": np.where(in_range, np.array(unsigned, object) >> shifts, 0),
        "mul_high": np.array([p * (int(q) % (1 << bits)) >> bits for p, q in zip(unsigned, b, strict=True)], object),
    }
    if kind(dtype) == "u":  # the arithmetic shift's sign is the top bit
        del expected["shift_right_arithmetic"]
    for opcode, reference in expected.items():
        for target in TARGETS:
            result = run(elementwise(opcode, [dtype, dtype]), target, x, y)
            np.testing.assert_array_equal(result, wrap(reference, dtype), err_msg=opcode)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_functions_of_one_argument(dtype: Any) -> None:
    x = interesting(dtype)
    bits = 8 * dtype.itemsize
    unsigned = [int(v) % (1 << bits) for v in x]
    expected = {
        "neg": [-int(v) for v in x],
        "abs": [abs(int(v)) for v in x],
        "sign": [(int(v) > 0) - (int(v) < 0) for v in x],
        "not": [~int(v) for v in x],
        "population_count": [v.bit_count() for v in unsigned],
        "count_leading_zeros": [bits - v.bit_length() for v in unsigned],
    }
    for opcode, reference in expected.items():
        result = run(elementwise(opcode, [dtype]), TARGETS[0], x)
        wrapped = wrap(np.array(reference, object), dtype)
        np.testing.assert_array_equal(result, wrapped, err_msg=opcode)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, on NaN and overflow
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_arithmetic_is_ieee_rounded_once(dtype: Any) -> None:
    x, y = every_pair(dtype)
    wide = F32 if dtype.itemsize == 2 else dtype
    a, b = x.astype(wide), y.astype(wide)
    expected = {
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "div": a / b,
        "max": np.maximum(a, b),
        "min": np.minimum(a, b),
        "rem": np.fmod(a, b),
    }
    for opcode, reference in expected.items():
        for target in TARGETS:
            result = run(elementwise(opcode, [dtype, dtype]), target, x, y)
            np.testing.assert_array_equal(comparable(result), comparable(reference.astype(dtype)), err_msg=opcode)
    for opcode, function in {
        "neg": np.negative,
        "abs": np.abs,
        "sign": np.sign,
        "floor": np.floor,
        "ceil": np.ceil,
        "round_even": np.rint,
        "trunc": np.trunc,
        "sqrt": np.sqrt,
    }.items():
        result = run(elementwise(opcode, [dtype]), TARGETS[0], x)
        np.testing.assert_array_equal(comparable(result), comparable(function(a).astype(dtype)), err_msg=opcode)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_comparisons(dtype: Any) -> None:
    x, y = every_pair(dtype)
    for opcode, function in {
        "eq": np.equal,
        "ne": np.not_equal,
        "lt": np.less,
        "le": np.less_equal,
        "gt": np.greater,
        "ge": np.greater_equal,
    }.items():
        result = run(elementwise(opcode, [dtype, dtype]), TARGETS[0], x, y)
        np.testing.assert_array_equal(result, function(comparable(x), comparable(y)), err_msg=opcode)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's own, on NaN and overflow
@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("result", DTYPES, ids=str)
def test_conversion(source: Any, result: Any) -> None:
    x = interesting(source)
    converted = run(elementwise("convert", [source], result), TARGETS[0], x)
    if kind(source) == "f" and kind(result) in "iu":
        info = np.iinfo(result)
        exact = [0 if v != v else v for v in x.astype(float).tolist()]
        expected = [info.max if v >= info.max else info.min if v <= info.min else int(v) for v in exact]
        np.testing.assert_array_equal(converted, np.array(expected, result))
    elif kind(result) == "b":
        np.testing.assert_array_equal(converted, x != 0)
    elif result == BFLOAT16 and kind(source) in "iuf" and source.itemsize > 2:
        # Once rounded: no bfloat16 is nearer than the result.
        exact_values, near = x.astype(float), converted.astype(float)
        finite = np.isfinite(near) & np.isfinite(exact_values)
        error = np.abs(near - exact_values)[finite]
        assert (error <= np.abs(exact_values[finite]) * 2.0**-9 + 1e-40).all()
    else:
        np.testing.assert_array_equal(comparable(converted), comparable(x.astype(result)))


@pytest.mark.parametrize("dtype", [np.dtype("f2"), BFLOAT16], ids=str)
def test_sixteen_bit_floats_survive_every_bit_pattern(dtype: Any) -> None:
    stored = np.arange(1 << 16, dtype=np.uint16)
    x = stored.view(dtype)
    widened = run(elementwise("convert", [dtype], np.dtype("f4")), TARGETS[0], x)
    number = ~np.isnan(x.astype(F32))
    np.testing.assert_array_equal(widened[number], x.astype(F32)[number])
    assert np.isnan(widened[~number]).all()
    again = run(elementwise("bitcast", [np.dtype("u2")], dtype), TARGETS[0], stored)
    np.testing.assert_array_equal(again.view(np.uint16)[number], stored[number])


@pytest.mark.parametrize("dtype", [np.dtype("f2"), BFLOAT16], ids=str)
def test_rounding_to_sixteen_bits(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(F32)
    x = np.concatenate([x, rng.normal(size=50_000).astype(F32) * F32(1e-5)])
    x = x[~np.isnan(x)]
    with np.errstate(over="ignore"):
        expected = x.astype(dtype)
    result = run(elementwise("convert", [np.dtype("f4")], dtype), TARGETS[0], x)
    np.testing.assert_array_equal(result.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_next_after(dtype: Any) -> None:
    x, y = every_pair(dtype)
    result = run(elementwise("nextafter", [dtype, dtype]), TARGETS[0], x, y)
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", [np.dtype("f4"), np.dtype("f8")], ids=str)
def test_remainder_is_exact_over_the_whole_range(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    unsigned = f"u{dtype.itemsize}"
    top = np.iinfo(unsigned).max
    x, y = (rng.integers(0, top, 5000, dtype=unsigned).view(dtype) for _ in range(2))
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    for target in TARGETS:
        result = run(elementwise("rem", [dtype, dtype]), target, x, y)
        np.testing.assert_array_equal(result, expected)


# loops


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.vector_bytes))
@pytest.mark.parametrize("columns", [1, 3, 16, 37, 100, 256])
@pytest.mark.parametrize("unroll", [1, 4])
def test_rows_reduced_and_scaled(target: Target, columns: int, unroll: int) -> None:
    rows = 5
    b = Builder()
    x = b.buffer("x", F32, rows * columns, "input")
    out = b.buffer("out", F32, rows * columns, "output")
    scratch = b.buffer("scratch", F32, columns, "local")
    with b.loop(rows, parallel=True) as r:
        base = b.mul(r, columns)
        smallest = F32(-np.inf)
        top = b.reduce(
            columns,
            lambda j: b.load(x, b.add(base, j)),
            "max",
            smallest,
            vector=True,
            unroll=unroll,
        )
        with b.fold(columns, Carry((F32(0),), "add"), vector=True, unroll=unroll) as loop:
            shifted = b.sub(b.load(x, b.add(base, loop.axis)), top)
            b.store(scratch, loop.axis, shifted)
            loop.update(b.add(loop.carried[0], shifted))
        with b.loop(columns, vector=True) as j:
            b.store(out, b.add(base, j), b.add(b.load(scratch, j), loop.results[0]))
    kernel = b.finish("rows")
    verify_kernel(kernel)
    data = np.random.default_rng(0).integers(-50, 50, (rows, columns)).astype(F32)
    result = np.zeros_like(data)
    Native(kernel, target)(data, result, high=rows)
    difference = data - data.max(1, keepdims=True)
    # small integers: exact in any order
    np.testing.assert_array_equal(result, difference + difference.sum(1, keepdims=True))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.vector_bytes))
def test_a_vector_over_columns_with_serial_rows_inside(target: Target) -> None:
    rows, columns = 7, 45
    b = Builder()
    x = b.buffer("x", F32, rows * columns, "input")
    sums = b.buffer("sums", F32, columns, "output")
    transposed = b.buffer("transposed", F32, rows * columns, "output")
    reverse = b.buffer("reverse", F32, columns, "output")
    with b.loop(columns, parallel=True, vector=True) as c:
        total = b.reduce(rows, lambda r: b.load(x, b.add(b.mul(r, columns), c)), "add", F32(0))
        b.store(sums, c, total)
        last = b.sub(columns - 1, c)
        b.store(reverse, c, b.load(x, last))
        with b.loop(rows, unroll=rows) as r:
            place = b.add(b.mul(c, rows), r)
            b.store(transposed, place, b.load(x, b.add(b.mul(r, columns), c)))
    kernel = b.finish("columns")
    verify_kernel(kernel)
    data = np.random.default_rng(0).integers(-50, 50, (rows, columns)).astype(F32)
    out = [np.zeros(columns, F32), np.zeros((columns, rows), F32), np.zeros(columns, F32)]
    Native(kernel, target)(data, *out, high=columns)
    np.testing.assert_array_equal(out[0], data.sum(0))
    np.testing.assert_array_equal(out[1], data.T)
    np.testing.assert_array_equal(out[2], data[0, ::-1])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.vector_bytes))
@pytest.mark.parametrize("size", [0, 1, 15, 16, 33, 1000])
def test_argmax_carries_two_values(target: Target, size: int) -> None:
    b = Builder()
    x = b.buffer("x", F32, None, "input")
    out = b.buffer("out", np.int64, 1, "output")
    extent = b.size()

    def better(e: Builder, a: Any, c: Any) -> Any:
        tie = e.and_(e.eq(a[0], c[0]), e.lt(a[1], c[1]))
        first = e.or_(e.gt(a[0], c[0]), tie)
        return e.select(first, a[0], c[0]), e.select(first, a[1], c[1])

    none = (F32(-np.inf), np.int64(2**62))
    with b.fold(extent, Carry(none, better), vector=True) as loop:
        new = (b.load(x, loop.axis), loop.axis)
        loop.update(*better(b, loop.carried, new))
    b.store(out, 0, loop.results[1])
    kernel = b.finish("argmax")
    verify_kernel(kernel)
    data = np.random.default_rng(size).integers(0, 9, size).astype(F32)
    result = np.zeros(1, np.int64)
    Native(kernel, target)(data, result, sizes=[size])
    assert result[0] == (data.argmax() if size else 2**62)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: str(target.vector_bytes))
def test_gather_scatter_division_and_masks(target: Target) -> None:
    size = 100
    b = Builder()
    x = b.buffer("x", F32, size, "input")
    where = b.buffer("where", np.int32, size, "input")
    gathered = b.buffer("gathered", F32, size, "output")
    scattered = b.buffer("scattered", F32, size, "output")
    folded = b.buffer("folded", F32, size, "output")
    with b.loop(size, parallel=True, vector=True) as i:
        index = b.convert(b.load(where, i), np.int64)
        inside = b.and_(b.ge(index, 0), b.lt(index, size))
        b.store(gathered, i, b.load(x, index, inside))
        b.store(scattered, index, b.load(x, i), inside)
        b.store(folded, i, b.load(x, b.add(b.mul(b.rem(i, 7), 10), b.div(i, 10))))
    kernel = b.finish("gather")
    verify_kernel(kernel)
    rng = np.random.default_rng(0)
    data = rng.normal(size=size).astype(F32)
    indices = rng.permutation(size).astype(np.int32)
    indices[::9] = 10**9
    indices[4::9] = -1
    out = [np.zeros(size, F32) for _ in range(3)]
    Native(kernel, target)(data, indices, *out, high=size)
    valid = (indices >= 0) & (indices < size)
    np.testing.assert_array_equal(out[0], np.where(valid, data[np.where(valid, indices, 0)], 0))
    expected = np.zeros(size, F32)
    expected[indices[valid]] = data[valid]
    np.testing.assert_array_equal(out[1], expected)
    every = np.arange(size)
    np.testing.assert_array_equal(out[2], data[every % 7 * 10 + every // 10])


@pytest.mark.parametrize("extent", [1, 2, 5, 8])
@pytest.mark.parametrize("unroll", [1, 2, 3, 8])
def test_ordered_fold(extent: int, unroll: int) -> None:
    b = Builder()
    x = b.buffer("x", np.float64, extent, "input")
    out = b.buffer("out", np.float64, 1, "output")
    start = Carry((np.float64(0),), None, (1.0,))
    with b.fold(extent, start, unroll=unroll) as loop:
        loop.update(b.add(b.mul(loop.carried[0], 0.5), b.load(x, loop.axis)))
    b.store(out, 0, loop.results[0])
    data = np.arange(1.0, extent + 1)
    result = np.zeros(1)
    Native(b.finish("fold"))(data, result)
    expected = 1.0
    for value in data:
        expected = expected * 0.5 + value
    assert result[0] == expected


def test_a_masked_scalar_access_leaves_memory_alone() -> None:
    b = Builder()
    x = b.buffer("x", F32, 1, "input")
    out = b.buffer("out", F32, 2, "output")
    never = b.lt(b.load(x, 0), 0.0)
    b.store(out, 0, b.load(x, 2**40, never))
    b.store(out, 2**40, 1.0, never)
    result = np.full(2, 5, F32)
    Native(b.finish("masked"))(np.ones(1, F32), result)
    assert result.tolist() == [0.0, 5.0]


def test_a_product_used_once_contracts_and_one_used_twice_does_not() -> None:
    b = Builder()
    x = b.buffer("x", F32, 1, "input")
    out = b.buffer("out", F32, 2, "output")
    v = b.load(x, 0)
    b.store(out, 0, b.sub(b.mul(v, 3.1), v))
    square = b.mul(v, v)
    b.store(out, 1, b.add(b.sub(square, v), square))
    kernel = b.finish("contract")
    text = emit_kernel(kernel, Target(64), "jl_k")
    assert text.count("call float @llvm.fma") == 1
    assert "llvm.fma" not in emit_kernel(kernel, Target(64, contract_fma=False), "jl_k")


def test_streaming_stores_need_aligned_buffers() -> None:
    b = Builder()
    out = b.buffer("out", F32, 64, "output")
    with b.loop(64, parallel=True, vector=True) as i:
        b.store(out, i, 1.0, streaming=True)
    kernel = b.finish("fill")
    assert "!nontemporal" in emit_kernel(kernel, Target(64, aligned_buffers=True), "jl_k")
    assert "!nontemporal" not in emit_kernel(kernel, Target(64), "jl_k")


@pytest.mark.parametrize("dtype", ["f4", "f8", BFLOAT16], ids=str)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_function_that_a_kernel_needs_often_is_one_subroutine(target: Target, dtype: Any) -> None:
    """The same bits by calls as in place, and the text holds the formula once."""

    def chain(length: int) -> Kernel:
        b = Builder()
        x, out = b.buffer("x", dtype, None, "input"), b.buffer("out", dtype, None, "output")
        with b.loop(b.size(), parallel=True, vector=True) as i:
            value = b.load(x, i)
            for _ in range(length):
                value = b.emit("sin", value)
            b.store(out, i, value)
        return b.finish("chain")

    steps, often = 6, MOST_COPIES + 2
    given = np.linspace(-70_000, 70_000, 77).astype(dtype)  # some lanes are huge, some in the tail
    want = given
    for _ in range(often // steps):
        want = run(chain(steps), target, want)
    assert often % steps == 0
    assert run(chain(often), target, given).tobytes() == want.tobytes()
    text = module_text([emit_kernel(chain(often), target, f"jl_{n}") for n in range(2)])
    defined = [line for line in text.splitlines() if line.startswith("define private") and "fn.sin" in line]
    assert len(defined) == (1 if target.masked else 2)  # without masks, the tail's elements are scalars
