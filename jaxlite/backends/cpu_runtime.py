"""The CPU runtime, as a first form: NumPy through every primitive's ``evaluate``."""
from jaxlite.core.jaxpr import evaluate as run
from jaxlite.interpreters.eval import evaluate


class CpuRuntime:
    def evaluate(self, primitive, operands, params):
        return evaluate(primitive, operands, params)

    def compile(self, jaxpr, name, donated):
        from jaxlite.core.array import to_array
        return lambda operands: [to_array(x) for x in run(jaxpr.jaxpr, jaxpr.consts, operands)]
