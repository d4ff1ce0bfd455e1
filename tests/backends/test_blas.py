"""BLAS by address: right products, one thread, and the user's SciPy left as it is."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

from jaxlite.backends.cpu import blas, products
from jaxlite.backends.cpu.compile_plan import load_plan
from jaxlite.backends.cpu.memory import view
from jaxlite.compiler.plan import MatrixOperand, MatrixProduct, Plan, Reference, Storage


def product_plan(dtype, batch, m, n, k, transpose_left, transpose_right):
    dtype = np.dtype(dtype)
    left = MatrixOperand(Reference(0), m if transpose_left else k, m * k, transpose_left)
    right = MatrixOperand(Reference(1), k if transpose_right else n, k * n, transpose_right)
    out = MatrixOperand(Reference(2), n, m * n)
    sizes = [batch * m * k, batch * k * n, batch * m * n]
    storages = (
        Storage("argument", sizes[0] * dtype.itemsize, 0),
        Storage("argument", sizes[1] * dtype.itemsize, 1),
        Storage("result", sizes[2] * dtype.itemsize, 0),
    )
    return Plan("product", storages, (MatrixProduct(dtype, left, right, out, m, n, k, batch),))


def run_product(dtype, batch, m, n, k, transpose_left=False, transpose_right=False):
    random = np.random.default_rng(0)
    left = random.standard_normal((batch, m, k)).astype(dtype)
    right = random.standard_normal((batch, k, n)).astype(dtype)
    given_left = np.ascontiguousarray(left.swapaxes(1, 2)) if transpose_left else left
    given_right = np.ascontiguousarray(right.swapaxes(1, 2)) if transpose_right else right
    executable = load_plan(product_plan(dtype, batch, m, n, k, transpose_left, transpose_right))
    (address,), (owner,) = executable.run([given_left.ctypes.data, given_right.ctypes.data])
    return left, right, view(address, (batch, m, n), np.dtype(dtype), owner)


def assert_close(left, right, got):
    """Each element is a sum of k products: any order errs by at most k ulp of sum |l| |r|."""
    exact = left.astype(np.longdouble) @ right.astype(np.longdouble)
    bound = np.abs(left) @ np.abs(right) * np.finfo(got.dtype).eps * max(left.shape[-1], 1)
    assert (np.abs(got - exact) <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
def test_transposes(dtype, transposes):
    assert_close(*run_product(dtype, 1, 33, 20, 17, *transposes))


@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
def test_tiles_over_the_pool(transposes):
    assert products.tiling(320, 210, 130).count > 1
    assert_close(*run_product(np.float32, 1, 320, 210, 130, *transposes))


def test_batches():
    assert_close(*run_product(np.float64, 7, 5, 6, 9))
    assert_close(*run_product(np.float32, 40, 64, 70, 65, True, False))


def test_empty():
    assert run_product(np.float32, 1, 0, 3, 2)[2].shape == (1, 0, 3)
    assert (run_product(np.float32, 2, 3, 4, 0)[2] == 0).all()  # a sum over nothing


def test_broadcast_operand_has_batch_stride_zero():
    random = np.random.default_rng(0)
    left = random.standard_normal((3, 4, 5))
    right = random.standard_normal((5, 6))
    operands = [MatrixOperand(Reference(0), 5, 20), MatrixOperand(Reference(1), 6, 0)]
    out = MatrixOperand(Reference(2), 6, 24)
    storages = (
        Storage("argument", left.nbytes, 0),
        Storage("argument", right.nbytes, 1),
        Storage("result", 3 * 24 * 8, 0),
    )
    step = MatrixProduct(np.dtype(np.float64), *operands, out, 4, 6, 5, 3)
    executable = load_plan(Plan("broadcast", storages, (step,)))
    (address,), (owner,) = executable.run([left.ctypes.data, right.ctypes.data])
    assert_close(left, right, view(address, (3, 4, 6), np.dtype(np.float64), owner))


@pytest.mark.parametrize("shape", [(1024, 1024, 1024), (100, 5000, 300), (2048, 64, 64), (1, 1, 1)])
def test_tiles_cover_the_product(shape):
    m, n, k = shape
    tiles = products.tiling(m, n, k)
    assert (tiles.rows - 1) * tiles.tile_rows < m <= tiles.rows * tiles.tile_rows
    assert (tiles.columns - 1) * tiles.tile_columns < n <= tiles.columns * tiles.tile_columns
    assert tiles.count <= products.MAX_TILES + 1


def test_unknown_routine():
    with pytest.raises(blas.BlasMissing, match="no routine 'nogemm'"):
        blas.routine("nogemm")


def test_capsules_offer_the_same_routine():
    """The fallback for other systems: SciPy's own function pointers."""
    address = blas._capsule("dgemm")
    one, mark = ctypes.byref(ctypes.c_double(1.0)), ctypes.c_char_p(b"N")
    two, zero = ctypes.byref(ctypes.c_int(2)), ctypes.byref(ctypes.c_double(0.0))
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    out = np.empty((2, 2))
    pointer = ctypes.c_void_p(x.ctypes.data)
    function = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 13)(address)
    arguments = (mark, mark, two, two, two, one, pointer, two, pointer, two, zero)
    function(
        *(ctypes.cast(a, ctypes.c_void_p) for a in arguments),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.cast(two, ctypes.c_void_p),
    )
    assert np.array_equal(out, x @ x)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the private copy is for Linux")
@pytest.mark.parametrize("ours_first", [True, False])
def test_scipy_keeps_its_threads(ours_first):
    """SciPy's copy has the threads it has without us, whichever is loaded first; ours has one."""
    if not blas.is_single_threaded():
        pytest.skip("SciPy brings no OpenBLAS here")
    find = """
import ctypes, glob, os, scipy
path = os.path.join(os.path.dirname(os.path.dirname(scipy.__file__)), "scipy.libs")
count = ctypes.CDLL(glob.glob(path + "/libscipy_openblas*.so")[0]).scipy_openblas_get_num_threads
print(count(), os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    ours = """
from jaxlite.backends.cpu import blas
blas.routine("sgemm")
assert blas._private_openblas().scipy_openblas_get_num_threads() == 1
"""
    bound = """
import scipy.linalg
assert any("scipy.libs/libscipy_openblas" in line for line in open("/proc/self/maps"))
"""
    assert output(ours + bound + find if ours_first else bound + ours + find) == output(find)


def test_first_products_of_many_threads_leave_the_environment_as_it_was():
    script = """
import os, threading
from jaxlite.backends.cpu import blas
gate = threading.Barrier(8)
def first():
    gate.wait()
    blas.routine("sgemm")
threads = [threading.Thread(target=first) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(blas._copies), os.environ.get("OPENBLAS_NUM_THREADS"))
"""
    assert [output(script) for _ in range(3)] == [f"1 {os.environ.get('OPENBLAS_NUM_THREADS')}\n"] * 3


def output(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout
