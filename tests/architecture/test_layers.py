"""Imports point one way, outside packages stand behind few modules, primitives are not named."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "jaxlite").rglob("*.py"))
EXTENSION = sorted((ROOT / "extension" / "jaxlite_jupyter").rglob("*.py"))

# layer -> layers that it may import, itself included; design section 2
BELOW = {
    "core": {"core"},
    "interpreters": {"core", "interpreters"},
    "lax": {"core", "interpreters", "lax"},
    "transforms": {"core", "interpreters", "lax", "transforms"},
    "compiler": {"core", "interpreters", "lax", "transforms", "compiler"},
    "backends": {"core", "interpreters", "lax", "transforms", "compiler", "backends"},
    "sharding": {"core", "interpreters", "lax", "transforms", "compiler", "sharding"},
    "inspect": {"core", "compiler", "sharding", "inspect"},
    # the user's libraries
    "numpy": {"core", "lax", "transforms", "numpy"},
    "nn": {"core", "lax", "transforms", "numpy", "random", "nn"},
    "random": {"core", "lax", "transforms", "numpy", "random"},
    "scipy": {"core", "lax", "transforms", "numpy", "nn", "random", "scipy"},
    "experimental": {"core", "lax", "transforms", "numpy", "nn", "random", "scipy", "experimental"},
}
# Imports that go up, each inside a function: module -> (imported layer, why).
UPWARD: dict[str, tuple[str, str]] = {
    "jaxlite/compiler/report.py": ("inspect", "a report has one text, made of its payload when it is printed"),
}

# package -> the only modules that may import it
BEHIND = {
    "IPython": (
        "jaxlite_jupyter/magics.py",
        "jaxlite_jupyter/sharding_magic.py",
        "jaxlite_jupyter/completions.py",
        "jaxlite_jupyter/progress.py",
    ),
    "ipywidgets": ("jaxlite_jupyter/progress.py",),
    "anywidget": ("jaxlite_jupyter/widget.py",),
    "traitlets": ("jaxlite_jupyter/widget.py",),
    "graphviz": ("jaxlite_jupyter/dot.py",),
    "cupy": ("jaxlite/backends/gpu/",),
    "mpi4py": ("jaxlite/sharding/",),
    "llvmlite": ("jaxlite/backends/cpu/",),
    "scipy": ("jaxlite/backends/cpu/", "jaxlite/lax/scipy_special.py"),
}


# Imports inside functions: those that must come late, and why
LATE = {
    ("jaxlite/__init__.py", "jaxlite.backends.cpu.runtime"): "loaded at the first use",
    ("jaxlite/__init__.py", "jaxlite_jupyter"): "only where a notebook loads it",
    ("jaxlite/backends/cpu/flat.py", "jaxlite.backends.cpu.flat_code"): "only what is not found on disk needs it",
    ("jaxlite/backends/cpu/programs.py", "jaxlite.backends.cpu.compile_program"): "only what is not found on disk",
    ("jaxlite/backends/cpu/programs.py", "jaxlite.compiler.partition"): "only programs over a mesh need it",
    ("jaxlite/compiler/report.py", "jaxlite.inspect"): "goes up: see UPWARD",
    ("jaxlite/core/dtypes.py", "ml_dtypes"): "costs more than the rest together",
    ("jaxlite/numpy/dtype_functions.py", "ml_dtypes"): "costs more than the rest together",
    ("jaxlite_jupyter/completions.py", "IPython.core.completer"): "the rest needs no notebook",
    ("jaxlite_jupyter/dot.py", "graphviz"): "optional",
    ("jaxlite_jupyter/extension.py", "jaxlite_jupyter.magics"): "views need no IPython",
    ("jaxlite_jupyter/extension.py", "jaxlite_jupyter.sharding_magic"): "views need no IPython",
    ("jaxlite/inspect/sharding.py", "jaxlite.compiler.partition.timing"): "only where times are asked for",
    ("jaxlite_jupyter/extension.py", "jaxlite_jupyter.progress"): "only for the first bar: ipywidgets are optional",
    ("jaxlite_jupyter/views.py", "jaxlite_jupyter.widget"): "optional: needs anywidget",
}


def name_of(path: Path) -> str:
    """The path as the tables above write it."""
    home = ROOT / "extension" if path in EXTENSION else ROOT
    return path.relative_to(home).as_posix()


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module imported anywhere in a file but for type checking, with its line."""
    tree = ast.parse(path.read_text("utf-8"))
    checking = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.unparse(test.test)
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if id(node) in checking:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: write the import in full"
            base = node.module or ""
            if base == "jaxlite":
                yield from ((f"jaxlite.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield base, node.lineno


def layer_of(module: str) -> str | None:
    """The layer of a module of jaxlite's; None for the package itself and for others."""
    parts = module.split(".")
    return parts[1] if parts[0] == "jaxlite" and len(parts) > 1 and parts[1] in BELOW else None


def test_every_folder_has_a_layer():
    folders = {p.relative_to(ROOT / "jaxlite").parts[0] for p in MODULES if p.parent.name != "jaxlite"}
    assert folders <= set(BELOW), f"give {sorted(folders - set(BELOW))} a place in BELOW"


@pytest.mark.parametrize("layer", sorted(BELOW))
def test_imports_point_down(layer):
    wrong = []
    for path in (ROOT / "jaxlite" / layer).rglob("*.py"):
        for module, line in imports(path):
            imported = layer_of(module)
            allowed = {*BELOW[layer], UPWARD.get(name_of(path), ("", ""))[0]}
            if imported is not None and imported not in allowed:
                wrong.append(f"{name_of(path)}:{line} imports {module}")
            if module.split(".")[0] == "jaxlite_jupyter":
                wrong.append(f"{name_of(path)}:{line} imports the extension")
    assert not wrong, "\n".join(wrong)


def test_outside_packages_stand_behind_their_modules():
    wrong = []
    for path in (*MODULES, *EXTENSION):
        for module, line in imports(path):
            allowed = BEHIND.get(module.split(".")[0])
            if allowed is not None and not name_of(path).startswith(allowed):
                wrong.append(f"{name_of(path)}:{line} imports {module}: only {allowed} may")
    assert not wrong, "\n".join(wrong)


def late_imports(path: Path) -> Iterator[tuple[str, int]]:
    """Modules imported inside functions, with their lines."""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom):
                    yield node.module or "", node.lineno
                elif isinstance(node, ast.Import):
                    yield from ((alias.name, node.lineno) for alias in node.names)


def test_imports_inside_functions_are_listed_or_break_a_cycle_within_a_layer():
    wrong = []
    for path in (*MODULES, *EXTENSION):
        layer = layer_of(name_of(path).replace("/", "."))
        for module, line in late_imports(path):
            same_layer = layer is not None and layer_of(module) == layer
            if not same_layer and (name_of(path), module) not in LATE:
                wrong.append(f"{name_of(path)}:{line} imports {module}: move it to the top")
    assert not wrong, "\n".join(wrong)


def names_a_primitive(node: ast.AST) -> bool:
    """``x.primitive.name == ...``, ``prim.name in ...``, ``x is sin_p``, ``match`` on such a name."""
    match node:
        case ast.Match(subject=subject):
            return is_primitive_name(subject)
        case ast.Compare(left=left, comparators=others):
            sides = [left, *others]
            named = any(map(is_primitive_name, sides))
            return named or any(isinstance(s, ast.Name) and s.id.endswith("_p") for s in sides)
    return False


def is_primitive_name(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="name", value=ast.Attribute(attr=of) | ast.Name(id=of)):
            return of in ("primitive", "prim", "p")
    return False


@pytest.mark.parametrize("layer", ["interpreters", "transforms", "compiler", "backends", "sharding"])
def test_no_pass_names_a_primitive(layer):
    wrong = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in (ROOT / "jaxlite" / layer).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, (ast.Compare, ast.Match)) and names_a_primitive(node)
    ]
    assert not wrong, "ask the primitive's family instead:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("eqn.primitive.name == 'sin'", True),
        ("prim.name in ('sin', 'cos')", True),
        ("primitive is sin_p", True),
        ("dtype.name == 'bfloat16'", False),
        ("eqn.primitive.family == 'layout'", False),
    ],
)
def test_the_search_for_named_primitives_finds_them(text, found):
    assert names_a_primitive(ast.parse(text, mode="eval").body) is found


def test_importing_jaxlite_brings_in_none_of_the_heavy_packages():
    heavy = ("IPython", "scipy", "llvmlite", "cupy", "mpi4py", "jaxlite_jupyter")
    code = f"import sys, jaxlite; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
