"""Writes the units of the explorer, `explorer/src/units.ts`: `python -m tests.explorer.units`."""

from __future__ import annotations

import json
from pathlib import Path

from longfat import _native

TARGET = Path(__file__).parents[2] / "explorer" / "src" / "units.ts"
HEAD = """// The units of quantities by dimension, with their sizes in s, bit/s, B, 1, 1/s or packets.
// Generated from the vocabulary (`make reference`); not for editing.

export type Dimension = keyof typeof UNITS;

/** A unit; messages do not list an alias. */
export interface Unit {
  readonly unit: string;
  readonly scale: number;
  readonly alias: boolean;
}

export const UNITS = {
"""


def generated() -> str:
    """Returns the content of the file."""
    lines = []
    for dimension, units in json.loads(_native.vocabulary())["units"].items():
        lines.append(f"  {dimension}: [")
        lines += [
            f'    {{ unit: "{one["unit"]}", scale: {one["scale"]!r}, alias: {json.dumps(one["alias"])} }},'
            for one in units
        ]
        lines.append("  ],")
    return HEAD + "\n".join(lines) + "\n} as const satisfies Record<string, readonly Unit[]>;\n"


if __name__ == "__main__":
    TARGET.write_text(generated(), encoding="utf-8")
