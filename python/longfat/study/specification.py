"""The top-level keys of a study file.

The keys of `path`, `topology`, `workload`, protocols and traffic are declared in Rust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from longfat.study import units
from longfat.study.claim_tables import with_defaults
from longfat.study.claims import THEORY, Claim, Where
from longfat.study.expressions.metrics import DerivedMetric, derived_metrics
from longfat.study.plain import HasSettings, study_tables
from longfat.study.problems import show
from longfat.study.vocabulary import allowed, resolve_metric, resolve_metrics, unknown
from longfat.study.worlds import WORLDS

Derived = TypeVar("Derived")

MAX_TRIALS = 1_000_000
"""The largest number of repeats."""
DECIDED = "claims"
"""The precision of a run that ends when every claim is decided."""
MAX_REPEATS_FACTOR = 10
"""The default of `max_repeats` with a precision, in multiples of `repeats`."""


def _range_or_list() -> dict[str, Any]:
    scalar = {"type": ["string", "integer"]}
    span = {
        "type": "object",
        "description": "From, to and step, with units; both ends are included.",
        "properties": {"from": scalar, "to": scalar, "step": scalar},
        "required": ["from", "to", "step"],
        "additionalProperties": False,
    }
    return {"anyOf": [{"type": "array", "minItems": 1}, span]}


SweepValues = Annotated[Any, WithJsonSchema(_range_or_list())]


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class TrafficEntry(BaseModel):
    """Flows that share the network with the measured ones: their name and settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: _Name = Field(description="Name in sweeps and overrides: letters, digits, - and _.")

    @property
    def settings(self) -> dict[str, Any]:
        """The entry in a trial's specification, with its name."""
        return {"name": self.name, **(self.model_extra or {})}


class ProtocolEntry(BaseModel):
    """One protocol: its name in this study, and its settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    name: _Name = Field(
        description="Name in tables, claims and sweeps: letters, digits, - and _; "
        "default: the congestion controller, or else the kind."
    )
    label: Annotated[str, WithJsonSchema({"type": "string", "minLength": 1})] = Field(
        "", description='Name in tables, charts and reports, e.g. "BBRv1"; default: the name.'
    )

    @property
    def display_name(self) -> str:
        """The label, or else the name."""
        return self.label or self.name

    @field_validator("label")
    @classmethod
    def _label_is_one_line(cls, label: str) -> str:
        if not label.strip():
            raise ValueError("is empty; remove it, or give the protocol's name in tables and charts")
        if label != label.strip() or not label.isprintable():
            raise ValueError(f"{show(label)}: must be one line without spaces around it")
        return label

    @field_validator("name")
    @classmethod
    def _name_is_free(cls, name: str) -> str:
        if name == THEORY:
            raise ValueError(f'"{THEORY}" is the closed form in claims; choose another name')
        return name

    @property
    def settings(self) -> dict[str, Any]:
        """The protocol's own keys (`kind`, `window`, ...)."""
        return dict(self.model_extra or {})


class Reported(BaseModel):
    """A figure of the study's source, shown next to the measurement."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    protocol: str = Field(description="Name of the protocol.")
    where: Where = Field(default_factory=dict, description='Conditions on cells, e.g. {"path.loss" = "2%"}.')
    goodput: str | None = Field(None, description='Goodput with its unit, e.g. "0.239Mbit/s".')
    completion: str | None = Field(None, description='Completion time with its unit, e.g. "12s".')

    @field_validator("goodput", "completion")
    @classmethod
    def _has_its_unit(cls, value: str | None) -> str | None:
        if value is not None and units.parse(value).dimension not in ("rate", "duration"):
            raise ValueError(f'{show(value)} is neither a rate nor a time; write e.g. "0.239Mbit/s" or "12s"')
        return value


@dataclass(frozen=True)
class Provenance:
    """Where a study comes from, and what changed it."""

    name: str = "study"
    """The file's stem; for a built-in study with its folder (`arq/loss`)."""
    text: str = ""
    """The study as TOML, as run: the file's own text if nothing was overridden or merged."""
    cuts: tuple[str, ...] = ()
    """The reductions by `--quick`, one phrase each."""
    dropped_sweeps: tuple[str, ...] = ()
    """Swept keys of the study file that an override with a whole path replaced."""
    variant: str = ""
    """The changed settings as a file name (`Overrides.variant`)."""
    is_quick: bool = False
    """Whether `--quick` shortened it."""


def _columns(texts: dict[str, str]) -> dict[str, str]:
    """Returns the columns of a study's metrics; their names if one is wrong, which `loading` reports."""
    try:
        return {name: one.column for name, one in derived_metrics(texts).items()}
    except ValueError:
        return {name: name for name in texts}


class Study(BaseModel):
    """A study: networks, protocols, workload, sweep and claims.

    `longfat.study.load_study` loads one and checks it completely.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, title="longfat study")

    extends: str | dict[str, Any] | None = Field(
        None,
        description="Study file or built-in study whose keys apply unless this study sets them, "
        'e.g. "arq/loss" or { study = "arq/loss", without = ["claims"] }.',
    )
    title: Annotated[str, Field(min_length=1)] = Field(description="The question, on one line.")
    source: str | None = Field(None, description="Source of the experiment.")
    description: str | None = Field(None, description="What the study compares, and why.")
    notes: str | list[str] | None = Field(None, description="Assumptions and remarks, shown in the report.")
    worlds: Annotated[list[str], Field(min_length=1)] = Field(
        default=["sim"], description=f"Worlds in which the trials run: {', '.join(WORLDS)}."
    )
    repeats: Annotated[int, Field(ge=1, le=MAX_TRIALS)] = Field(20, description="Trials of each cell.")
    repeats_in: dict[str, Annotated[int, Field(ge=1, le=MAX_TRIALS)]] = Field(
        default_factory=dict,
        description="Trials of each cell by world, e.g. { relay = 3 }.",
    )
    max_repeats: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None = Field(
        None,
        description=f"Largest number of trials of a cell with a precision; default: "
        f"{MAX_REPEATS_FACTOR} times repeats.",
    )
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = Field(
        1, description="Random seed. The same study, seed and version give the same records."
    )
    precision: str | None = Field(
        None,
        description=f'Repeat until the CI of the main metric is within this part of its mean, e.g. "5%", or '
        f'until every claim is decided: "{DECIDED}".',
    )
    metrics: dict[str, str] = Field(
        default_factory=dict,
        description='Metrics computed from others in each trial, e.g. { loss = "drops / packets_sent" }.',
    )
    show: list[str] = Field(
        default_factory=list,
        description='Metrics in tables and charts, the main one first, e.g. ["goodput", "rtt_p50"]; '
        "default: depends on the workload.",
    )
    path: dict[str, Any] | None = Field(None, description="Network between two hosts.")
    topology: dict[str, Any] | None = Field(None, description="Network of several hosts, instead of path.")
    workload: dict[str, Any] = Field(description="Data to transfer.")
    protocols: Annotated[list[ProtocolEntry], Field(min_length=1)] = Field(
        description="Protocols to compare: tables, or names of kinds and of congestion controllers of TCP, "
        'e.g. ["cubic", "bbr"].'
    )
    traffic: list[TrafficEntry] = Field(
        default_factory=list, description="Flows that share the network with the measured ones."
    )
    sweep: dict[str, SweepValues] = Field(
        default_factory=dict,
        description="Keys with several values (path.loss, workload.size, protocol.window for all protocols, "
        "protocols.NAME.window for one). Several keys give all combinations.",
    )
    claims: list[Claim] = Field(default_factory=list, description="Statements to check.")
    reported: list[Reported] = Field(
        default_factory=list, description="Figures of the source, shown next to the measurement."
    )

    _provenance: Provenance = PrivateAttr(default_factory=Provenance)
    _derived: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        """Shortens the text of a study: its tables are in `text`."""
        names = [entry.name for entry in self.protocols]
        return [("name", self.name), ("title", self.title), ("protocols", names), ("sweep", list(self.sweep))]

    def __eq__(self, other: object) -> bool:
        """Whether both have equal names and tables, wherever these come from."""
        if not isinstance(other, Study):
            return NotImplemented
        return self.name == other.name and self.__dict__ == other.__dict__

    __hash__ = BaseModel.__hash__

    @property
    def name(self) -> str:
        """The file's stem; for a built-in study with its folder (`arq/loss`)."""
        return self._provenance.name

    @property
    def text(self) -> str:
        """The study as TOML, as run: the file's own text if nothing was overridden or merged."""
        return self._provenance.text

    @property
    def cuts(self) -> list[str]:
        """The reductions by `--quick`, one phrase each."""
        return list(self._provenance.cuts)

    @property
    def dropped_sweeps(self) -> list[str]:
        """Swept keys of the study file that an override with a whole path replaced."""
        return list(self._provenance.dropped_sweeps)

    @property
    def variant(self) -> str:
        """The changed settings as a file name; empty if the trials are those of the file."""
        return self._provenance.variant

    @property
    def is_quick(self) -> bool:
        """Whether `--quick` shortened it."""
        return self._provenance.is_quick

    def with_provenance(self, **changes: Any) -> Self:
        """Returns the same study with changes of its `Provenance`."""
        study = self.model_copy()
        study._provenance = replace(self._provenance, **changes)
        return study

    def narrowed(self, sweep: Mapping[str, Any]) -> Self:
        """Returns the same study with other values of its sweep."""
        study = self.model_copy(update={"sweep": dict(sweep)})
        study._derived = {}
        return study

    def derived(self, key: str, compute: Callable[[Self], Derived]) -> Derived:
        """Returns a value that follows from the study alone, computed once."""
        if key not in self._derived:
            self._derived[key] = compute(self)
        value: Derived = self._derived[key]
        return value

    @property
    def derived_metrics(self) -> dict[str, DerivedMetric]:
        """The study's own metrics, by name."""
        return self.derived("metrics", lambda study: derived_metrics(study.metrics))

    def column(self, metric: str) -> str:
        """Returns the column of a measured metric or of one of the study; raises ValueError for others."""
        return resolve_metric(metric, {name: one.column for name, one in self.derived_metrics.items()})

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the protocols that have one, by name."""
        return {entry.name: entry.label for entry in self.protocols if entry.label}

    @property
    def network(self) -> dict[str, Any]:
        """The study's `path` or `topology`, under its name."""
        return {"path": self.path} if self.path is not None else {"topology": self.topology}

    @model_validator(mode="before")
    @classmethod
    def _takes_objects(cls, tables: Any) -> Any:
        """Converts objects (`Path`, `Tcp`), names and single entries, as in the tables of a study."""
        return with_defaults(study_tables(tables)) if isinstance(tables, Mapping) else tables

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            title: str,
            protocols: str | HasSettings | Sequence[str | HasSettings | Mapping[str, Any] | type[Any]],
            workload: HasSettings | Mapping[str, Any],
            path: HasSettings | Mapping[str, Any] | None = None,
            topology: HasSettings | Mapping[str, Any] | None = None,
            traffic: HasSettings | Sequence[HasSettings | Mapping[str, Any]] = (),
            sweep: Mapping[str, Sequence[Any] | Mapping[str, Any]] = ...,
            claims: Sequence[Claim | Mapping[str, Any]] = (),
            reported: Sequence[Mapping[str, Any]] = (),
            source: str | None = None,
            description: str | None = None,
            notes: str | Sequence[str] | None = None,
            worlds: Sequence[str] = ("sim",),
            repeats: int = 20,
            repeats_in: Mapping[str, int] = ...,
            max_repeats: int | None = None,
            seed: int = 1,
            precision: str | None = None,
            metrics: Mapping[str, str] = ...,
            show: Sequence[str] = (),
        ) -> None: ...

    def to_toml(self) -> str:
        """Returns the study as the text of a study file."""
        import tomli_w

        return tomli_w.dumps(self.model_dump(mode="python", exclude_unset=True, by_alias=True))

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Returns the study in the text of a study file, without `extends`; `load_study` reads files.

        Raises:
            ValueError: with the key and what is allowed.
        """
        import tomllib

        return cls.model_validate(tomllib.loads(text))

    @model_validator(mode="after")
    def _has_claims_to_decide(self) -> Self:
        if self.precision == DECIDED and not self.claims:
            raise ValueError(f'precision: "{DECIDED}" needs claims, and the study has none')
        return self

    @model_validator(mode="after")
    def _has_one_network(self) -> Self:
        both = "[path] (two hosts) and [topology] (several)"
        if self.path is None and self.topology is None:
            raise ValueError(f"one of the tables {both} is required; the study has neither")
        if self.path is not None and self.topology is not None:
            raise ValueError(f"only one of the tables {both} is allowed; remove the other")
        return self

    @field_validator("extends")
    @classmethod
    def _is_merged(cls, extends: object) -> None:
        if extends is not None:
            raise ValueError("only a study file or a dict can extend a study")

    @field_validator("show")
    @classmethod
    def _shown_metrics_are_known(cls, show: list[str], info: ValidationInfo) -> list[str]:
        own = _columns(info.data.get("metrics", {}))
        return list(dict.fromkeys(resolve_metrics(show, own)))

    def trials_in(self, world: str) -> int:
        """Returns the trials of each cell of a world, before a precision adds more."""
        return self.repeats_in.get(world, self.repeats)

    def most_trials_in(self, world: str) -> int:
        """Returns the largest number of trials of a cell of a world; without a precision, `trials_in`."""
        trials = self.trials_in(world)
        if self.precision is None:
            return trials
        return self.max_repeats or min(MAX_TRIALS, trials * MAX_REPEATS_FACTOR)

    def first_look(self, world: str) -> int | None:
        """Returns the trials of each cell after which a precision is first examined; None without one."""
        return None if self.precision is None else self.trials_in(world)

    def protocol(self, name: str) -> ProtocolEntry:
        """Returns the protocol of this name; raises ValueError for an unknown name."""
        for entry in self.protocols:
            if entry.name == name:
                return entry
        raise ValueError(
            f'"{name}" is not a protocol of this study; {allowed(name, (p.name for p in self.protocols))}'
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
    def _precision_is_known(cls, precision: str | None) -> str | None:
        if precision in (None, DECIDED):
            return precision
        try:
            part = units.proportion(precision)
        except ValueError as error:
            raise ValueError(f'{error}, or "{DECIDED}"') from None
        if not 0 < part < 1:
            raise ValueError(f'"{precision}": must be above 0% and below 100%, or "{DECIDED}"')
        return precision
