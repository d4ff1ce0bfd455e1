"""What importing jaxlite costs beyond importing NumPy: medians over fresh processes, in turn.

    python benchmarks/import_time.py [RUNS]

A first run of each writes the bytecode and is not counted.  Prints milliseconds and the heavy packages that came along.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

TIMED = "import time; t = time.perf_counter(); import {}; print((time.perf_counter() - t) * 1e3)"
HEAVY = ("IPython", "scipy", "llvmlite", "cupy", "ml_dtypes")


def milliseconds(module: str) -> float:
    """The time that one fresh process takes to import ``module``."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", TIMED.format(module)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    """Measures and prints."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    times: dict[str, list[float]] = {"numpy": [], "jaxlite": []}
    for number in range(runs + 1):
        for module, values in times.items():
            taken = milliseconds(module)
            if number:
                values.append(taken)
    medians = {module: statistics.median(values) for module, values in times.items()}
    for module, median in medians.items():
        print(f"import {module:8} {median:7.1f} ms")
    print(f"difference      {medians['jaxlite'] - medians['numpy']:7.1f} ms")
    found = f"import sys, jaxlite; print(*[m for m in {HEAVY} if m in sys.modules])"
    print(
        "brought along: ",
        subprocess.run([sys.executable, "-c", found], capture_output=True, text=True).stdout.strip() or "none",
    )


if __name__ == "__main__":
    main()
