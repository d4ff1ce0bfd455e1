"""The GPU backend: loop nests become CUDA C++ source, compiled at run time."""
