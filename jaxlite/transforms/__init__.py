"""What users call: grad, vjp, jvp, vmap, jit, make_jaxpr and custom rules, on functions of pytrees."""
