"""`longfat list`: the vocabulary of study files, by topic."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from longfat.cli import standard_output
from longfat.cli.arguments.completion import topics as complete_topics
from longfat.cli.arguments.from_function import command
from longfat.cli.arguments.options import AsJson, StudySettings

if TYPE_CHECKING:
    from longfat.study.reference import Row
    from longfat.study.vocabulary import Section

_MOST_NAMES = 60
_SYNONYMS = {
    "study": "studies",
    "world": "worlds",
    "protocol": "protocols",
    "congestion": "controllers",
    "controller": "controllers",
    "scheduler": "schedulers",
    "policy": "policies",
    "topology": "topologies",
    "queues": "queue",
    "loss": "losses",
    "preset": "presets",
    "workload": "workloads",
    "metric": "metrics",
    "claim": "claims",
    "relations": "claims",
}
TOPICS = tuple(dict.fromkeys([*_SYNONYMS.values(), "path", "traffic"]))
"""All topics."""
_WORLDS = {
    "sim": "virtual time: the fastest world, and the same records on every machine",
    "relay": "wall time: three processes with UDP sockets on loopback",
    "netns": "wall time: network namespaces with Linux's own TCP/IP (root or user namespaces)",
}


@command(topics=typer.Argument(metavar="[TOPIC]...", autocompletion=complete_topics))
def list_(
    topics: list[str] | None = None,
    *,
    settings: StudySettings = None,
    as_json: AsJson = False,
) -> None:
    """List protocols, keys, metrics and studies, or the cells of a study.

    \b
    Examples:
      longfat list queue controllers
      longfat list published/bbr-share --set path.rate=20Mbit/s

    Args:
        topics: Topic, key of a study file, study file, or name of a built-in study.
    """  # noqa: D301 - this backslash keeps the lines of the examples
    if not topics:
        if settings:
            raise ValueError(f"list: --set {settings[0]}: name a study")
        contents = _contents()
        if as_json:
            standard_output.document(contents)
        else:
            _index(contents)
        return
    found = {topic: _find(topic, settings)() for topic in topics}
    if as_json:
        listed = {topic: [table.document() for table in tables] for topic, tables in found.items()}
        standard_output.document(listed)
        return
    for number, tables in enumerate(found.values()):
        if number:
            typer.echo()
        for table in tables:
            table.show()


@dataclass(frozen=True)
class Table:
    """A titled part of the answer; without columns it is a heading."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def show(self) -> None:
        """Prints it."""
        from longfat.presentation import tables

        tables.console().print(self.title, style="bold")
        if self.columns:
            tables.show(tables.table(*self.columns, rows=list(self.rows)))

    def document(self) -> dict[str, Any]:
        """Returns it as JSON values, each row by column."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


Tables = list[Table]


def _index(contents: Mapping[str, list[str]]) -> None:
    """Prints one line for each topic."""
    typer.echo("Topics (longfat list TOPIC shows units, defaults and help; keys such as mtu are topics too):")
    for topic, names in contents.items():
        typer.echo(f"  {topic:12}{_shortened(names)}")


def _contents() -> dict[str, list[str]]:
    """Returns the names of each topic."""
    from longfat.study.catalogue import builtin
    from longfat.study.claims import Relation
    from longfat.study.reference import section_rows
    from longfat.study.vocabulary import metrics, protocol_kinds, short_metric, vocabulary
    from longfat.study.worlds import WORLDS

    def kinds(section: Section, key: str) -> Iterable[str]:
        named = (_kind(row) for row in _key_rows(section, key) if row.depth == 1)
        return dict.fromkeys(name for name in named if name)

    contents: dict[str, Iterable[str]] = {
        "studies": builtin(),
        "worlds": WORLDS,
        "protocols": protocol_kinds(),
        "controllers": kinds("protocol", "congestion"),
        "schedulers": kinds("protocol", "scheduler"),
        "policies": kinds("protocol", "policy"),
        "path": vocabulary()["path"]["properties"],
        "queue": kinds("path", "queue"),
        "losses": kinds("path", "loss"),
        "presets": vocabulary()["presets"],
        "topologies": [
            kind for table, _ in section_rows("topology") if (kind := _kind_of("topology", table))
        ],
        "workloads": kinds("workload", "kind"),
        "traffic": vocabulary()["traffic"]["properties"],
        "metrics": map(short_metric, metrics()),
        "claims": Relation.__args__,  # type: ignore[attr-defined]
    }
    assert set(contents) == set(_topics()) == set(TOPICS)
    return {topic: list(names) for topic, names in contents.items()}


def _shortened(names: list[str]) -> str:
    """Returns as many names as fit, and the number of the others."""
    shown = list(names)
    while len(", ".join(shown)) > _MOST_NAMES:
        shown.pop()
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _kind(row: Row) -> str:
    """Returns the kind that a row of a key describes, empty for none."""
    return row.key.removesuffix(" }").rpartition("= ")[2].strip('"') if '"' in row.key else ""


def _topics() -> dict[str, Callable[[], Tables]]:
    """The function that returns each topic."""
    return {
        "studies": _studies,
        "worlds": lambda: [Table("Worlds (worlds = [...])", ("name", "what"), tuple(_WORLDS.items()))],
        "protocols": lambda: _section("protocol", "Protocols ([[protocols]])"),
        "controllers": lambda: _key("protocol", "congestion"),
        "schedulers": lambda: _key("protocol", "scheduler"),
        "policies": lambda: _key("protocol", "policy"),
        "path": lambda: _section("path", "Path ([path])"),
        "queue": lambda: _key("path", "queue"),
        "losses": lambda: _key("path", "loss"),
        "presets": _presets,
        "topologies": lambda: _section("topology", "Topologies ([topology])"),
        "workloads": lambda: _section("workload", "Workloads ([workload])"),
        "traffic": lambda: _section("traffic", "Background traffic ([[traffic]])"),
        "metrics": _metrics,
        "claims": _claims,
    }


def _find(topic: str, settings: Sequence[str] | None) -> Callable[[], Tables]:
    """Returns the function that returns a topic: of a name in it, the whole topic.

    Raises ValueError, with the known topics, and for `settings` of a topic that is no study.
    """
    from longfat.study.catalogue import builtin
    from longfat.study.vocabulary import nearest

    if topic.endswith(".toml") or topic in builtin():
        return lambda: _study(topic, settings)
    if settings:
        raise ValueError(f'list: --set {settings[0]}: is for a study, and "{topic}" is none')
    topics, keys = _topics(), _keys()
    name = topic.lower().replace("-", "_")
    if (found := topics.get(_SYNONYMS.get(name, name))) is not None:
        return found
    if name in keys:
        return lambda: _keys_of(keys[name], name)
    for whole, names in _contents().items():
        if topic.lower() in names:
            return topics[whole]
    near = nearest(name, [*topics, *_SYNONYMS, *keys])
    hint = f'; did you mean "{_SYNONYMS.get(near, near)}"?' if near else ""
    raise ValueError(f'list: "{topic}" is not a topic; allowed: {", ".join(topics)}{hint}')


_SECTIONS: dict[Section, str] = {
    "path": "[path]",
    "protocol": "[[protocols]]",
    "workload": "[workload]",
    "topology": "[topology]",
    "traffic": "[[traffic]]",
}


def _keys() -> dict[str, list[Section]]:
    """The sections of each key of a study file."""
    from longfat.study.reference import section_rows

    found: dict[str, list[Section]] = {}
    for section in _SECTIONS:
        for key in {row.key for _, rows in section_rows(section) for row in rows if row.depth == 0}:
            found.setdefault(key, []).append(section)
    return found


def _key_rows(section: Section, key: str) -> list[Row]:
    """Returns the rows of one key: those of the first kind of the section that has it."""
    from longfat.study.reference import section_rows

    for _, rows in section_rows(section):
        names = [row.key if row.depth == 0 else "" for row in rows]
        if key in names:
            start = names.index(key)
            end = next((n for n in range(start + 1, len(rows)) if names[n]), len(rows))
            return rows[start:end]
    return []


def _keys_of(sections: Iterable[Section], key: str) -> Tables:
    return [table for section in sections for table in _key(section, key)]


def _key(section: Section, key: str) -> Tables:
    return _rows(f"{_SECTIONS[section]} {key}", _key_rows(section, key))


def _kind_of(section: Section, table: Mapping[str, Any]) -> str | None:
    """The kind that one of the section's tables is for."""
    from longfat.study.reference import only_value
    from longfat.study.vocabulary import vocabulary

    definitions = vocabulary()[section].get("$defs", {})
    return only_value(table.get("properties", {}).get("kind", {}), definitions)


def _section(section: Section, title: str) -> Tables:
    from longfat.study.reference import section_rows

    found = [Table(title)]
    for variant, rows in section_rows(section):
        kind = _kind_of(section, variant)
        about = " ".join(str(variant.get("description", "")).split())
        shown = [
            row for row in rows if not (kind and row.key.strip('"') in ("kind", kind) and row.depth <= 1)
        ]
        found += _rows(f'kind = "{kind}": {about}' if kind else about, shown)
    return found


def _claims() -> Tables:
    from longfat.study.claims import Claim
    from longfat.study.reference import rows

    schema = Claim.model_json_schema(by_alias=True)
    return _rows("Claims ([[claims]])", list(rows(schema, schema.get("$defs", {}))))


def _studies() -> Tables:
    from longfat.study.catalogue import builtin

    titles = [
        (name, str(tomllib.loads(path.read_text(encoding="utf-8")).get("title", "")))
        for name, path in builtin().items()
    ]
    return [Table("Studies (longfat run NAME)", ("name", "question"), tuple(titles))]


def _study(file: str, settings: Sequence[str] | None) -> Tables:
    from longfat.cli.arguments.cells import load
    from longfat.cli.display import study

    return [Table(*part) for part in study.parts(load(file, settings))]


def _presets() -> Tables:
    from longfat.cli.arguments.sections import inline
    from longfat.study.vocabulary import vocabulary

    rows = [
        (name, inline({key: keys[key] for key in keys if key != "reverse"}), inline(keys.get("reverse", {})))
        for name, keys in vocabulary()["presets"].items()
    ]
    title = 'Presets ([path] preset = "NAME"; other keys override)'
    return [Table(title, ("name", "sets", "differs in reverse"), tuple(rows))]


def _metrics() -> Tables:
    from longfat.study.vocabulary import metrics, short_metric

    rows = [
        (short_metric(column), str(about["unit"]), str(about.get("better", "")), str(about["help"]))
        for column, about in metrics().items()
    ]
    return [Table("Metrics", ("name", "unit", "better", "what"), tuple(rows))]


def _rows(title: str, rows: Iterable[Row]) -> Tables:
    lines = [("  " * row.depth + row.key, row.values, row.default, row.help) for row in rows]
    return [Table(title, ("key", "values", "default", "what"), tuple(lines))]
