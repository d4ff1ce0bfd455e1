"""Primitives that hold jaxprs (calls, branches, loops, custom rules) and collectives over named axes."""
