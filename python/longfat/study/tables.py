"""Tables of a study as objects: `Path(rate="10Mbit/s")`, `Tcp("vegas")`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

from longfat.study.expressions.settings import contains
from longfat.study.plain import plain, protocol_table
from longfat.study.problems import Problem, StudyError, show
from longfat.study.vocabulary import Section, canonical, check

if TYPE_CHECKING:
    from longfat.extensions.controller import CongestionController
    from longfat.study.key_types import (
        PathKeys,
        ProtocolArqKeys,
        ProtocolKeys,
        ProtocolMptcpKeys,
        ProtocolQuicKeys,
        ProtocolTcpKeys,
        ProtocolUdpKeys,
        TopologyKeys,
        TopologyKind,
        TrafficProtocolKeys,
        WorkloadKeys,
        WorkloadKind,
    )
    from longfat.study.plain import HasSettings


class Table:
    """Checked settings of one section; `longfat list` shows the keys."""

    _section: ClassVar[Section]

    def _set(self, settings: Mapping[str, Any]) -> None:
        given = {key: value for key, value in settings.items() if value is not None}
        self.settings: dict[str, Any] = table_of(given, self._section)
        refuse(self._section, self.settings)

    def to_study(self) -> dict[str, Any]:
        """Returns the settings as the table of a study."""
        return self.settings

    def to_toml(self) -> str:
        """Returns the settings as TOML, as in a study file.

        >>> print(Path(rate="10Mbit/s").to_toml(), end="")
        rate = "10Mbit/s"
        """
        import tomli_w

        return tomli_w.dumps(self.to_study())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Returns the settings in TOML.

        Raises:
            ValueError: with the key, the value and what is allowed; and for text that is not TOML.

        >>> Path.from_toml('rate = "10Mbit/s"')
        Path(rate='10Mbit/s')
        """
        import tomllib

        made = cls.__new__(cls)
        made._restore(tomllib.loads(text))
        return made

    def _restore(self, settings: dict[str, Any]) -> None:
        self._set(settings)

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self.to_study().items())
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self._section, self.to_study()) == (
            other._section,
            other.to_study(),
        )

    def __hash__(self) -> int:
        return hash((self._section, canonical(self.to_study())))


class Path(Table):
    """The path between two hosts.

    Args:
        **settings: The keys of a study's `[path]`, quantities as text with their unit: `rate` ("10Mbit/s"),
            `delay` ("20ms", one way), `loss` ("1%"), `queue` ("100pkt"), `preset` ("lte") and more;
            `longfat list path` shows all.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Path(rate="10Mbit/s", delay="20ms", loss="1%")
    Path(rate='10Mbit/s', delay='20ms', loss='1%')
    """

    _section = "path"

    def __init__(self, **settings: Unpack[PathKeys]) -> None:
        self._set(settings)


class Topology(Table):
    """Several hosts with routers and links between them.

    Args:
        kind: Shape: "dumbbell", "parking-lot", "star", "tree", "leaf-spine", "fat-tree" or "free"
            (see `longfat list topologies`).
        **settings: Keys of that shape; links are dicts with the keys of `Path`.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Topology("dumbbell", pairs=2, bottleneck={"rate": "10Mbit/s", "delay": "20ms"})
    Topology(kind='dumbbell', pairs=2, bottleneck={'rate': '10Mbit/s', 'delay': '20ms'})
    """

    _section = "topology"

    def __init__(
        self,
        kind: TopologyKind,
        **settings: Unpack[TopologyKeys],
    ) -> None:
        self._set({"kind": kind, **settings})


class Workload(Table):
    """What the measured flows transfer.

    Args:
        kind: "file", "bulk", "on-off", "request-response", "arrivals", "all-reduce", "web-page" or
            "frames" (see `longfat list workload`).
        **settings: Keys of a study's `[workload]`: `size` ("2MB"), `duration` ("20s"), `flows`, ...

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Workload("bulk", duration="20s")
    Workload(kind='bulk', duration='20s')
    """

    _section = "workload"

    def __init__(
        self,
        kind: WorkloadKind,
        **settings: Unpack[WorkloadKeys],
    ) -> None:
        self._set({"kind": kind, **settings})


class Traffic(Table):
    """Flows that share the network with the measured ones.

    Args:
        name: Name in results, sweeps and overrides.
        protocol: Protocol: an object such as `Tcp("reno")`, a name, or its keys.
        workload: Workload: its keys, or an object. Without `duration` it lasts as long as the trial.

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Traffic("rival", Tcp("reno"), {"kind": "bulk"}).to_study()["protocol"]
    {'kind': 'tcp', 'congestion': 'reno'}
    """

    _section = "traffic"

    def __init__(
        self,
        name: str,
        protocol: str | type[CongestionController] | TrafficProtocolKeys | HasSettings,
        workload: WorkloadKeys | HasSettings | Mapping[str, Any],
    ) -> None:
        entry = {"name": name, "protocol": plain(protocol, "protocol"), "workload": workload}
        own = protocol_table(entry["protocol"])
        entry["protocol"] = {key: value for key, value in own.items() if key != "name"}
        self._set(entry)


class Protocol(Table):
    """A protocol by its kind.

    Args:
        kind: Kind as in a study's `[[protocols]]` ("go-back-n"); `longfat list protocols` shows all.
        name: Name in a study; by default the congestion controller or the kind.
        **settings: Keys of the protocol: `window` (packets, or "auto"), `mss` ("1024B"), `rto` ("adaptive",
            "200ms"), ...

    Raises:
        ValueError: with the key, the value and what is allowed.

    >>> Protocol("selective-repeat", window=8)
    Protocol(kind='selective-repeat', window=8)
    """

    _section = "protocol"

    def __init__(self, kind: str, *, name: str | None = None, **settings: Unpack[ProtocolKeys]) -> None:
        self._set_named(kind, name, settings)

    def _set_named(self, kind: str, name: str | None, settings: Mapping[str, Any]) -> None:
        self._restore({"name": name, "kind": kind, **settings})

    def _restore(self, settings: dict[str, Any]) -> None:
        self.name, self.label = settings.pop("name", None), settings.pop("label", None)
        self._set(settings)

    def to_study(self) -> dict[str, Any]:
        """Returns the settings as an entry of a study's protocols."""
        named = {"name": self.name, "label": self.label}
        return {key: value for key, value in named.items() if value is not None} | self.settings


class StopAndWait(Protocol):
    """Stop-and-wait: one packet, then its acknowledgement. Takes the keys of `Protocol`.

    >>> StopAndWait(rto="200ms")
    StopAndWait(kind='stop-and-wait', rto='200ms')
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolArqKeys]) -> None:
        self._set_named("stop-and-wait", name, settings)


class GoBackN(Protocol):
    """Go-Back-N: retransmits all packets of the window from a lost one on. Takes the keys of `Protocol`.

    >>> GoBackN(window=8)
    GoBackN(kind='go-back-n', window=8)
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolArqKeys]) -> None:
        self._set_named("go-back-n", name, settings)


class SelectiveRepeat(Protocol):
    """Selective repeat: retransmits only the lost packets of the window.

    Takes the keys of `Protocol`.

    >>> SelectiveRepeat(window="auto")
    SelectiveRepeat(kind='selective-repeat', window='auto')
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolArqKeys]) -> None:
        self._set_named("selective-repeat", name, settings)


class Tcp(Protocol):
    """TCP. Takes the keys of `Protocol` with kind "tcp".

    Args:
        congestion: Name of a controller ("reno", "vegas"), a class derived from `CongestionController`, or a
            dict with kind and settings.
        **settings: `profile` ("linux", "rfc", "ns3"), `ecn`, `receive_buffer`, ...

    >>> Tcp("vegas", profile="rfc")
    Tcp(kind='tcp', congestion='vegas', profile='rfc')
    """

    def __init__(
        self,
        congestion: str | type[CongestionController] | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        **settings: Unpack[ProtocolTcpKeys],
    ) -> None:
        self._set_named("tcp", name, {"congestion": congestion, **settings})


class Mptcp(Protocol):
    """Multipath TCP. Takes the keys of `Protocol` with kind "mptcp".

    Args:
        **settings: `policy` ("fsfs"), `scheduler` ("min-rtt"), `congestion` ("olia"), `subflows`, ...

    >>> Mptcp(scheduler="round-robin")
    Mptcp(kind='mptcp', scheduler='round-robin')
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolMptcpKeys]) -> None:
        self._set_named("mptcp", name, settings)


class Quic(Protocol):
    """QUIC with one stream per flow. Takes the keys of `Protocol` with kind "quic".

    Args:
        **settings: `congestion` ("cubic", "quic-cubic"), `max_datagram_size`, `receive_window`, ...

    >>> Quic(congestion="bbr")
    Quic(kind='quic', congestion='bbr')
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolQuicKeys]) -> None:
        self._set_named("quic", name, settings)


class Udp(Protocol):
    """UDP datagrams without retransmission. Takes the keys of `Protocol` with kind "udp".

    >>> Udp()
    Udp(kind='udp')
    """

    def __init__(self, *, name: str | None = None, **settings: Unpack[ProtocolUdpKeys]) -> None:
        self._set_named("udp", name, settings)


class Arq(Protocol):
    """An ARQ protocol by its kind: "stop-and-wait", "go-back-n" or "selective-repeat".

    >>> Arq("go-back-n", window=8) == GoBackN(window=8)
    True
    """

    def __init__(
        self,
        kind: Literal["stop-and-wait", "go-back-n", "selective-repeat"],
        *,
        name: str | None = None,
        **settings: Unpack[ProtocolArqKeys],
    ) -> None:
        self._set_named(kind, name, settings)


def protocol_settings(given: Any) -> dict[str, Any]:
    """Returns the keys of a protocol, without its name and label in a study."""
    table = protocol_table(plain(given, "protocol"))
    if isinstance(table, dict):
        table.pop("name", None)
        table.pop("label", None)
    return table_of(table, "protocol")


def table_of(given: Any, section: Section) -> dict[str, Any]:
    """Returns the settings of a section as plain data."""
    table = plain(given, section)
    if not isinstance(table, dict):
        made = {"path": "Path", "topology": "Topology", "protocol": "Protocol"}.get(section)
        hint = f" or an object such as longfat.{made}" if made else ""
        raise StudyError("", [Problem(section, f"{show(table)}: must be a dict{hint}")])
    return dict(table)


def refuse(section: Section, settings: dict[str, Any]) -> None:
    """Raises StudyError with every problem of a section's settings.

    Expressions are checked with their values, when a study or a trial is made of them.
    """
    if contains(settings):
        return
    found = [Problem(key, message) for key, message in check(section, settings)]
    if found:
        raise StudyError("", found)
