"""The skeleton of a study file: the part that Python owns.

What stands inside `path`, `topology`, `workload`, each protocol and each traffic is declared in Rust and
only carried here.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from longfat.study import units
from longfat.study.claims import THEORY, Claim, Where
from longfat.study.problems import show
from longfat.study.vocabulary import allowed, resolve_metrics, unknown
from longfat.worlds import WORLDS

MAX_TRIALS = 1_000_000
"""The most repeats that a study may ask for."""
MAX_REPEATS_FACTOR = 10
"""Where a precision is set without `max_repeats`, at most this many times `repeats` are made."""


def _range_or_list() -> dict[str, Any]:
    scalar = {"type": ["string", "integer"]}
    span = {
        "type": "object",
        "description": "From, to and step, with units; both ends included.",
        "properties": {"from": scalar, "to": scalar, "step": scalar},
        "required": ["from", "to", "step"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "array", "minItems": 1}, span]}


SweepValues = Annotated[Any, WithJsonSchema(_range_or_list())]


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class TrafficEntry(BaseModel):
    """Flows beside the measured ones: their name in this study, and their settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: _Name = Field(description="Name in sweeps and overrides: letters, digits, - and _.")

    @property
    def settings(self) -> dict[str, Any]:
        """The entry as a trial's specification has it, its name included."""
        return {"name": self.name, **(self.model_extra or {})}


class ProtocolEntry(BaseModel):
    """One protocol that takes part: its name in this study, and its settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: _Name = Field(description="Name in tables, claims and sweeps: letters, digits, - and _.")

    @field_validator("name")
    @classmethod
    def _name_is_free(cls, name: str) -> str:
        if name == THEORY:
            raise ValueError(f'"{THEORY}" stands for the closed form in claims: choose another name')
        return name

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol's own keys (`kind`, `window`, ...)."""
        return dict(self.model_extra or {})


class Reported(BaseModel):
    """A figure of the study's source, shown beside the measurement."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    protocol: str = Field(description="Name of the protocol that the figure is about.")
    where: Where = Field(
        default_factory=dict, description='Cells that it is about, e.g. {"path.loss" = "2%"}.'
    )
    goodput: str | None = Field(None, description='Goodput with its unit, e.g. "0.239Mbit/s".')
    completion: str | None = Field(None, description='Completion time with its unit, e.g. "12s".')

    @field_validator("goodput", "completion")
    @classmethod
    def _has_its_unit(cls, value: str | None) -> str | None:
        if value is not None and units.parse(value).dimension not in ("rate", "duration"):
            raise ValueError(f'{show(value)} is neither a rate nor a time: write e.g. "0.239Mbit/s" or "12s"')
        return value


class Study(BaseModel):
    """A question to a transport, as a study file asks it.

    Load one with `longfat.study.load_study`, which also checks what the native part declares.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, title="longfat study")

    extends: str | dict[str, Any] | None = Field(
        None,
        description="Study file or built-in study whose keys apply unless this study sets them, "
        'e.g. "arq/loss" or { study = "arq/loss", without = ["claims"] }.',
    )
    title: Annotated[str, Field(min_length=1)] = Field(description="The question, in a line.")
    source: str | None = Field(None, description="Where the experiment comes from.")
    description: str | None = Field(None, description="What is compared, and why.")
    notes: str | list[str] | None = Field(None, description="What a reader of the answer should know.")
    worlds: Annotated[list[str], Field(min_length=1)] = Field(
        default=["sim"], description=f"Where the trials run: {', '.join(WORLDS)}."
    )
    repeats: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = Field(20, description="Trials of each cell.")
    repeats_in: dict[str, Annotated[int, Field(ge=1, le=MAX_TRIALS)]] = Field(
        default_factory=dict,
        description="Worlds with another number of trials, e.g. { relay = 3 }: wall time is dear.",
    )
    max_repeats: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = Field(
        None,
        description=f"Most trials of a cell with a precision; default: {MAX_REPEATS_FACTOR} times repeats.",
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = Field(
        1, description="What all randomness derives from; same study, seed and version: same records."
    )
    precision: str | None = Field(
        None,
        description='Repeat until the interval of the main metric is within this of its mean, e.g. "5%".',
    )
    show: list[str] = Field(
        default_factory=list,
        description='Metrics in tables and charts, the main one first, e.g. ["goodput", "rtt_p50"]; '
        "default: by the workload.",
    )
    path: dict[str, Any] | None = Field(None, description="The network between two hosts.")
    topology: dict[str, Any] | None = Field(
        None, description="The network among several hosts, in place of path."
    )
    workload: dict[str, Any] = Field(description="What is transferred.")
    protocols: Annotated[list[ProtocolEntry], Field(min_length=1)] = Field(description="What is compared.")
    traffic: list[TrafficEntry] = Field(
        default_factory=list, description="Flows beside the measured ones, which share the network with them."
    )
    sweep: dict[str, SweepValues] = Field(
        default_factory=dict,
        description="Keys that take several values (path.loss, workload.size, protocol.window for all, "
        "protocols.NAME.window for one, traffic.NAME.count); several keys give every combination.",
    )
    claims: list[Claim] = Field(
        default_factory=list, description="What the source says, to be held against the run."
    )
    reported: list[Reported] = Field(default_factory=list, description="The source's own figures.")

    _name: str = PrivateAttr("study")
    _text: str = PrivateAttr("")
    _cuts: list[str] = PrivateAttr(default_factory=list)
    _dropped_sweeps: list[str] = PrivateAttr(default_factory=list)

    @property
    def name(self) -> str:
        """The file's stem; for a built-in study with its folder (`arq/loss`)."""
        return self._name

    @property
    def text(self) -> str:
        """The study as TOML, as run: the file's own text where nothing was overridden."""
        return self._text

    @property
    def cuts(self) -> list[str]:
        """What `--quick` cut of the study, a phrase each; empty where nothing was cut."""
        return self._cuts

    @property
    def dropped_sweeps(self) -> list[str]:
        """Swept keys of the study file that an override with a whole path replaced."""
        return self._dropped_sweeps

    @property
    def network(self) -> dict[str, Any]:
        """The one of `path` and `topology` that the study has, under its name."""
        return {"path": self.path} if self.path is not None else {"topology": self.topology}

    @model_validator(mode="after")
    def _has_one_network(self) -> Self:
        both = "[path] (two hosts) and [topology] (several)"
        if self.path is None and self.topology is None:
            raise ValueError(f"one of the tables {both} is needed: the study has neither")
        if self.path is not None and self.topology is not None:
            raise ValueError(f"of the tables {both} a study has one: remove the other")
        return self

    @field_validator("extends")
    @classmethod
    def _is_merged(cls, extends: object) -> None:
        if extends is not None:
            raise ValueError("only a study file or a dict can extend a study")

    @field_validator("show")
    @classmethod
    def _shown_metrics_are_known(cls, show: list[str]) -> list[str]:
        return list(dict.fromkeys(resolve_metrics(show)))

    def trials_in(self, world: str) -> int:
        """Trials of each cell of a world, before a precision asks for more."""
        return self.repeats_in.get(world, self.repeats)

    def most_trials_in(self, world: str) -> int:
        """The most trials that a cell of a world may get: `trials_in` where no precision is set."""
        trials = self.trials_in(world)
        if self.precision is None:
            return trials
        return self.max_repeats or min(MAX_TRIALS, trials * MAX_REPEATS_FACTOR)

    def protocol(self, name: str) -> ProtocolEntry:
        """The protocol of this name; ValueError names the study's own."""
        for entry in self.protocols:
            if entry.name == name:
                return entry
        raise ValueError(
            f'"{name}" is no protocol of this study; {allowed(name, (p.name for p in self.protocols))}'
        )

    @field_validator("worlds")
    @classmethod
    def _worlds_are_known(cls, worlds: list[str]) -> list[str]:
        if wrong := unknown(worlds, WORLDS, "world"):
            raise ValueError(wrong)
        return list(dict.fromkeys(worlds))

    @field_validator("repeats_in")
    @classmethod
    def _repeats_are_of_known_worlds(cls, repeats: dict[str, int]) -> dict[str, int]:
        if wrong := unknown(repeats, WORLDS, "world"):
            raise ValueError(wrong)
        return repeats

    @field_validator("precision")
    @classmethod
    def _precision_is_a_percentage(cls, precision: str | None) -> str | None:
        if precision is not None and not 0 < units.proportion(precision) < 1:
            raise ValueError(f'"{precision}": must be above 0% and below 100%')
        return precision
