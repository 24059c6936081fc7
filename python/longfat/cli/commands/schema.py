"""`longfat schema`: the JSON Schema of a study file."""

from __future__ import annotations

import json

import typer


def schema() -> None:
    """Print the JSON Schema of study files, for editors.

    \b
    Examples:
      longfat schema
      longfat schema > study.schema.json
    """  # noqa: D301 - this backslash keeps the lines of the examples
    from longfat.study.schema import study_schema

    typer.echo(json.dumps(study_schema(), indent=2, ensure_ascii=False))
