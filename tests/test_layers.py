"""Packages import only from lower layers, and ARCHITECTURE.md draws the real dependencies."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import longfat

ROOT = Path(longfat.__file__).parent
PROJECT = Path(__file__).parents[1]

LAYERS = (
    ("__main__",),
    ("cli",),
    ("gym", "testing"),
    ("__init__", "api", "testbed"),
    ("cluster",),
    ("runner", "measurement"),
    ("presentation",),
    ("analysis",),
    ("worlds",),
    ("kernel",),
    ("store",),
    ("results", "bundles"),
    ("study",),
    ("extensions",),
    ("system",),
    ("_native",),
)
"""From top to bottom. Modules of one layer do not import each other."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

Graph = Mapping[str, set[str]]
NODE = re.compile(r'^    (\w+)\["((?:python/longfat|crates)/\w+) — ', re.MULTILINE)
EDGE = re.compile(r"^    (\w+) --> (\w+)$", re.MULTILINE)
SUPPORT = {"crates/testing", "crates/benchmarks"}


def imports(file: Path) -> Iterator[str]:
    """Yields the packages that a file imports, including inside functions, except for type checks."""
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
            assert node.level == 0, f"{file}: only absolute imports are checked"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            root, _, rest = name.partition(".")
            if root == "longfat":
                yield rest.partition(".")[0] or "__init__"


def package_of(file: Path) -> str:
    return file.relative_to(ROOT).parts[0].removesuffix(".py")


def test_every_module_has_its_layer() -> None:
    found = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert found - set(LEVEL) == set()


def test_imports_point_down() -> None:
    upwards = {
        f"{file.relative_to(ROOT)} imports {name}"
        for file in ROOT.rglob("*.py")
        for own in [package_of(file)]
        for name in imports(file)
        if name != own and LEVEL.get(name, -1) <= LEVEL[own]
    }
    assert sorted(upwards) == []


def test_the_diagram_shows_the_dependencies() -> None:
    text = (PROJECT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    nodes = dict(NODE.findall(text))
    drawn = {f"{nodes[above]} --> {nodes[below]}" for above, below in EDGE.findall(text)}
    graph = contracted(dependencies(), set(nodes.values()))
    crates = {f"crates/{file.parent.name}" for file in PROJECT.glob("crates/*/Cargo.toml")}
    packages = {f"python/longfat/{file.parent.name}" for file in ROOT.glob("*/__init__.py")}
    assert (crates | packages) - SUPPORT - set(nodes.values()) == set()
    expected = {f"{above} --> {below}" for above, edges in reduced(graph).items() for below in edges}
    assert sorted(drawn) == sorted(expected)


def dependencies() -> Graph:
    """Returns the imports of Python modules and the dependencies of crates, by path."""
    graph: dict[str, set[str]] = {}
    for file in ROOT.rglob("*.py"):
        own = graph.setdefault(path_of(package_of(file)), set())
        own |= {path_of(name) for name in imports(file)} - {path_of(package_of(file))}
    for manifest in PROJECT.glob("crates/*/Cargo.toml"):
        content = tomllib.loads(manifest.read_text(encoding="utf-8"))
        tables = [content, *content.get("target", {}).values()]
        names = {name for table in tables for name in table.get("dependencies", {})}
        graph[f"crates/{manifest.parent.name}"] = {
            f"crates/{name}" for name in names if (PROJECT / "crates" / name).is_dir()
        }
    return graph


def path_of(module: str) -> str:
    """Returns the path of a module in the diagram: `import longfat` is the API, and `_native` is a crate."""
    return {"_native": "crates/python", "__init__": "python/longfat/api"}.get(
        module, f"python/longfat/{module}"
    )


def contracted(graph: Graph, shown: set[str]) -> Graph:
    """Returns the dependencies between shown nodes, directly or through hidden nodes."""

    def reached(node: str, seen: set[str]) -> set[str]:
        found = set()
        for below in graph.get(node, set()) - seen:
            found |= {below} if below in shown else reached(below, seen | {below})
        return found

    return {node: reached(node, {node}) for node in shown}


def reduced(graph: Graph) -> Graph:
    """Returns the transitive reduction of a graph."""

    def below(node: str) -> set[str]:
        return set(graph[node]).union(*(below(inner) for inner in graph[node]))

    return {
        node: {edge for edge in edges if not any(edge in below(other) for other in edges - {edge})}
        for node, edges in graph.items()
    }
