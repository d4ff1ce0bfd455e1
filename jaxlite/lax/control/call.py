"""The call of a jitted function inside a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from jaxlite.lax.families.call import Call
from jaxlite.lax.families.higher_order import kept, linearized, nonzero, spread, zeros_for


@final
class Jit(Call):
    """Applies ``jaxpr`` to the operands; eagerly, as compiled code.  Params: ``jaxpr``, ``name``."""

    name = "jit"

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
        mask = nonzero(tangents)
        split = linearized(params["jaxpr"], mask, False)
        results = self.bind(*primals, jaxpr=split.primal, name=params["name"])
        outs, residuals = results[: len(split.out_nonzero)], results[len(split.out_nonzero) :]
        moved = self.bind(*residuals, *kept(tangents, mask), jaxpr=split.tangent, name=params["name"])
        return outs, spread(moved, split.out_nonzero, zeros_for(params["jaxpr"].out_avals))


jit_p = Jit()
