"""The vocabulary that every layer shares: dtypes, avals, jaxprs, primitives, tracers, pytrees, arrays, errors."""
