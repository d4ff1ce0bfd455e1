"""``has_aux=True``: what a function gives besides its output may be any Python object, and comes out as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jaxlite as jax
import jaxlite.numpy as jnp

MARKER = object()


def cube(x: Any) -> Any:
    return x * x * x, {"text": "aux", "square": x * x, "marker": MARKER, "count": 3, "none": None}


# The transformation at 2 -> ({value and derivatives of x**3 that it gives}, aux)
AT_TWO: dict[str, tuple[Callable[[Any], tuple[Any, Any]], list[float]]] = {
    "grad": (lambda f: jax.grad(f, has_aux=True)(2.0), [12.0]),
    "value_and_grad": (lambda f: _aux_last(jax.value_and_grad(f, has_aux=True)(2.0)), [8.0, 12.0]),
    "vjp": (lambda f: _apply(jax.vjp(f, 2.0, has_aux=True)), [8.0, 12.0]),
    "jvp": (lambda f: _pair(jax.jvp(f, (2.0,), (1.0,), has_aux=True)), [8.0, 12.0]),
    "linearize": (lambda f: _apply(jax.linearize(f, 2.0, has_aux=True)), [8.0, 12.0]),
    "jacfwd": (lambda f: jax.jacfwd(f, has_aux=True)(2.0), [12.0]),
    "jacrev": (lambda f: jax.jacrev(f, has_aux=True)(2.0), [12.0]),
    "hessian": (lambda f: jax.hessian(f, has_aux=True)(2.0), [12.0]),
}


def _aux_last(result: Any) -> Any:
    (value, aux), slope = result
    return (value, slope), aux


def _apply(result: Any) -> Any:
    value, linear, aux = result
    return (value, linear(1.0)), aux


def _pair(result: Any) -> Any:
    value, tangent, aux = result
    return (value, tangent), aux


@pytest.mark.parametrize("name", AT_TWO)
def test_any_object(name: str) -> None:
    transformed, wanted = AT_TWO[name]
    numbers, aux = transformed(cube)
    assert [float(x) for x in jax.tree.leaves(numbers)] == wanted
    assert float(aux.pop("square")) == 4.0
    assert aux == {"text": "aux", "marker": MARKER, "count": 3, "none": None}
    assert type(aux["count"]) is int


def test_aux_without_an_array() -> None:
    assert jax.grad(lambda x: (x, "aux"), has_aux=True)(1.0) == (1.0, "aux")


def test_traced_aux_is_seen_by_outer_transformations() -> None:
    def square(x: Any) -> Any:
        return jax.grad(cube, has_aux=True)(x)[1]["square"]

    x = jnp.arange(3.0)
    np.testing.assert_array_equal(jax.vmap(square)(x), [0, 1, 4])
    np.testing.assert_array_equal(jax.vmap(jax.grad(square))(x), [0, 2, 4])
    assert float(jax.jit(square)(3.0)) == 9.0


@pytest.mark.parametrize("name", AT_TWO)
@pytest.mark.parametrize("result, got", [((1.0, 2.0, 3.0), "tuple of 3"), (1.0, "float")])
def test_a_pair_is_expected(name: str, result: Any, got: str) -> None:
    with pytest.raises(TypeError, match=rf"must return a pair \(output, aux\), got {got}\. Write"):
        AT_TWO[name][0](lambda x: result)
