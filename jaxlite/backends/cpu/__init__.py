"""The CPU backend: loop nests become LLVM vector IR, then machine code run on one thread pool."""
