"""Packages import only from the ones below them, as ARCHITECTURE.md draws it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import longfat

ROOT = Path(longfat.__file__).parent

LAYERS = (
    ("__main__",),
    ("cli",),
    ("__init__", "api", "testbed"),
    ("runner", "measurement"),
    ("kernel",),
    ("presentation",),
    ("analysis",),
    ("results",),
    ("frames",),
    ("study",),
    ("controllers", "mptcp"),
    ("files", "flow_table", "interpreter", "keys", "local_sockets", "named_classes", "worlds", "_endpoint"),
    ("_native",),
)
"""From top to bottom. Names side by side do not import each other."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def imports(file: Path) -> Iterator[str]:
    """The parts of the package that a file imports, at its top or inside a function, but for types."""
    typing: set[int] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            typing.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in typing:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: absolute imports alone are checked"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, _, rest = name.partition(".")
            if root == "longfat":
                yield rest.partition(".")[0] or "__init__"


def test_every_module_has_its_layer() -> None:
    found = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert found - set(LEVEL) == set()


def test_imports_point_down() -> None:
    upwards = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in ROOT.rglob("*.py")
        for own in [file.relative_to(ROOT).parts[0].removesuffix(".py")]
        for name in imports(file)
        if name != own and LEVEL.get(name, -1) <= LEVEL[own]
    }
    assert sorted(upwards) == []
