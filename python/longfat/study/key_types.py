"""The keys of study tables as types, for editors and type checkers.

Generated from the vocabulary (`make reference`); not for editing. Quantities are text with units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, SupportsIndex, TypedDict

from longfat.study.plain import HasSettings


class PathKeys(TypedDict, total=False):
    """Keys of the table `Path`."""

    cell: PathCellKeys | HasSettings
    """Cell of a mobile network: a table with the recorded rates of its users and a scheduler; default:
    none. Excludes rate, trace and wifi."""
    corrupt: str
    """Probability of a bit error in a packet, e.g. "0.1%"; default "0%"."""
    delay: str
    """One-way propagation delay, e.g. "20ms", from "0s" to 1 h; default "0s". Serialization at the rate
    adds to it."""
    down: Sequence[str]
    """Times in which the link is down, since the start of the trial, e.g. ["5s..7s", "12s..13s"]; default:
    none. It drops the packets that wait or arrive."""
    duplicate: str
    """Probability of packet duplication, e.g. "0.1%"; default "0%"."""
    hops: Sequence[PathHopKeys | HasSettings]
    """Links in series with routers r1, r2, … between them: a list of 1 to 64 tables such as { rate =
    "10Mbit/s", delay = "2ms" }; default: one link. Excludes all other keys."""
    jitter: str | PathJitterKeys | HasSettings
    """Delay variation: a spread such as "5ms" (uniform around the delay, packets stay in order) or a table;
    default: none."""
    loss: str | PathLossKeys | HasSettings
    """Packet loss before the queue: a probability such as "2%", or a table with the kind of loss model;
    default: none."""
    mtu: str
    """Maximum packet size including all headers, e.g. "1500B", from "68B" to "64KiB"; default:
    unlimited."""
    nat: PathNatKeys | HasSettings
    """Network address translator of both directions: a table with its timeout and its times of rebinding;
    default: none. Excluded in reverse."""
    preset: Literal["lan", "wifi", "3g", "4g", "5g", "lte", "dsl", "transatlantic", "geo-satellite"]
    """Preset with typical values, which other keys override; default: none."""
    queue: str | PathQueueKeys | HasSettings | type[Any]
    """Queue in front of the link: a drop-tail limit such as "100pkt" or "64KiB", a kind such as "codel", or
    a table; default "1000pkt"."""
    rate: str
    """Rate, e.g. "100Mbit/s"; default: unlimited. Excludes trace, cell and wifi."""
    reorder: PathReorderKeys | HasSettings
    """Reordering: { probability = "1%", delay = "5ms" } delays some packets so that later ones overtake
    them; default: none."""
    reverse: PathLinkKeys | HasSettings
    """Keys of the direction from host 1 to host 0 that differ; default: none."""
    subscriber: Literal["far", "near"]
    """End of the subscriber of an asymmetric preset: "far" (forward is the download) or "near" (forward is
    the upload); default "far"."""
    trace: str
    """Recorded rate: a file in mahimahi format (each line is the millisecond of an opportunity to send 1500
    bytes); default: none. Excludes rate, cell and wifi."""
    trace_start: str
    """Time of the trace at which the trial starts, e.g. "12s", or "random": drawn in each trial, the same
    part of all traces; default "0s". Requires trace or cell."""
    wifi: PathWifiKeys | HasSettings
    """Wi-Fi channel that both directions share: a table with its rate and the limits of aggregation;
    default: none. Excludes rate, trace and cell."""


class PathCellKeys(TypedDict, total=False):
    """Keys of the table `PathCell`."""

    scheduler: Literal["round-robin", "proportional-fair"]
    """Scheduler: "proportional-fair" (the highest rate relative to the user's mean) or "round-robin";
    default "proportional-fair"."""
    shift: str
    """How much later in its trace each user starts than the user before, in whole milliseconds, e.g. "7s";
    default "0s"."""
    traces: Sequence[str]
    """What the cell can send to each user alone: 1 to 64 files in mahimahi format. The n-th user has the
    n-th; more users repeat the list."""
    users: Literal["far", "near"]
    """End of the path at which the users are: "far" or "near"; default "far". Each host there is one
    user."""
    window: str
    """Time over which proportional fairness averages, from "1ms" to "60s"; default "100ms"."""


class PathHopKeys(TypedDict, total=False):
    """Keys of the table `PathHop`."""

    cell: PathCellKeys | HasSettings
    """Cell of a mobile network: a table with the recorded rates of its users and a scheduler; default:
    none. Excludes rate, trace and wifi."""
    corrupt: str
    """Probability of a bit error in a packet, e.g. "0.1%"; default "0%"."""
    delay: str
    """One-way propagation delay, e.g. "20ms", from "0s" to 1 h; default "0s". Serialization at the rate
    adds to it."""
    down: Sequence[str]
    """Times in which the link is down, since the start of the trial, e.g. ["5s..7s", "12s..13s"]; default:
    none. It drops the packets that wait or arrive."""
    duplicate: str
    """Probability of packet duplication, e.g. "0.1%"; default "0%"."""
    jitter: str | PathJitterKeys | HasSettings
    """Delay variation: a spread such as "5ms" (uniform around the delay, packets stay in order) or a table;
    default: none."""
    loss: str | PathLossKeys | HasSettings
    """Packet loss before the queue: a probability such as "2%", or a table with the kind of loss model;
    default: none."""
    mtu: str
    """Maximum packet size including all headers, e.g. "1500B", from "68B" to "64KiB"; default:
    unlimited."""
    nat: PathNatKeys | HasSettings
    """Network address translator of both directions: a table with its timeout and its times of rebinding;
    default: none. Excluded in reverse."""
    preset: Literal["lan", "wifi", "3g", "4g", "5g", "lte", "dsl", "transatlantic", "geo-satellite"]
    """Preset with typical values, which other keys override; default: none."""
    queue: str | PathQueueKeys | HasSettings | type[Any]
    """Queue in front of the link: a drop-tail limit such as "100pkt" or "64KiB", a kind such as "codel", or
    a table; default "1000pkt"."""
    rate: str
    """Rate, e.g. "100Mbit/s"; default: unlimited. Excludes trace, cell and wifi."""
    reorder: PathReorderKeys | HasSettings
    """Reordering: { probability = "1%", delay = "5ms" } delays some packets so that later ones overtake
    them; default: none."""
    reverse: PathLinkKeys | HasSettings
    """Keys of the reverse direction that differ; default: none."""
    subscriber: Literal["far", "near"]
    """End of the subscriber of an asymmetric preset: "far" (forward is the download) or "near" (forward is
    the upload); default "far"."""
    trace: str
    """Recorded rate: a file in mahimahi format (each line is the millisecond of an opportunity to send 1500
    bytes); default: none. Excludes rate, cell and wifi."""
    trace_start: str
    """Time of the trace at which the trial starts, e.g. "12s", or "random": drawn in each trial, the same
    part of all traces; default "0s". Requires trace or cell."""
    wifi: PathWifiKeys | HasSettings
    """Wi-Fi channel that both directions share: a table with its rate and the limits of aggregation;
    default: none. Excludes rate, trace and cell."""


class PathJitterKeys(TypedDict, total=False):
    """Keys of the table `PathJitter`."""

    distribution: Literal["uniform", "normal"]
    """Distribution of the delay; default "uniform" """
    keep_order: bool
    """Order preservation: a packet waits for the one in front instead of overtaking it; default true"""
    spread: str
    """Half-width (uniform; at most the delay) or standard deviation (normal), e.g. "5ms" """


class PathLossKeys(TypedDict, total=False):
    """Keys of the table `PathLoss`."""

    kind: Literal["bernoulli"] | Literal["gilbert-elliott"] | Literal["every"] | Literal["packets"]
    probability: str
    """Probability of loss, e.g. "2%" """
    enter_bad: str
    """Probability per packet of a change from the good to the bad state; above "0%" """
    leave_bad: str
    """Probability per packet of a change from the bad to the good state; above "0%" """
    loss_bad: str
    """Probability of loss in the bad state; default "100%" """
    loss_good: str
    """Probability of loss in the good state; default "0%" """
    every: SupportsIndex
    """Period n in packets: packets n, 2n, 3n, … of each direction are lost, counted as in kind packets; at
    least 1"""
    packets: Sequence[SupportsIndex]
    """Numbers of the lost packets, counted from 1 in each direction in the order of arrival at the link,
    e.g. [3, 7]. All packets count: handshake, ACKs, retransmissions, and those of other flows. Without
    reverse.loss, the list applies to both directions"""


class PathNatKeys(TypedDict, total=False):
    """Keys of the table `PathNat`."""

    inside: Literal["far", "near"]
    """End of the path that is inside: "near" or "far"; default "near". Connections must start there."""
    new_address: bool
    """Whether a rebinding gives connections a new address, not only a new port, as after a restart of a
    router; a server of QUIC then starts with a new congestion window (RFC 9000, section 9.4). World sim;
    requires rebind. Default: false."""
    rebind: Sequence[str]
    """Times since the start of the trial at which all mappings end, in order, e.g. ["5s"]; default:
    none."""
    timeout: str
    """Time without packets from the inside after which a mapping ends, from "1ms" to 24 h; default "7440s"
    for TCP (RFC 5382, REQ-5) and "120s" for other protocols (RFC 4787, REQ-5)."""


class PathQueueKeys(TypedDict, total=False):
    """Keys of the table `PathQueue`."""

    kind: (
        Literal["drop-tail"]
        | Literal["drop-head"]
        | Literal["red"]
        | Literal["codel"]
        | Literal["fq-codel"]
        | Literal["pie"]
        | Literal["pi2"]
        | Literal["dualpi2"]
        | Literal["step"]
        | Literal["prio"]
        | Literal["cake"]
        | str
    )
    limit: str
    """Limit in packets or bytes, the packet in transmission included; default "1000pkt"."""
    adaptive: bool
    """Adaptation of max_probability between 1% and 50%, which keeps the average half-way between the
    thresholds; default false (Adaptive RED, 2001)."""
    ecn: bool
    """Marking of ECN-capable packets up to max_threshold instead of dropping; default false."""
    gentle: bool
    """Linear increase of the probability to 1 between max_threshold and twice max_threshold, instead of a
    step; default true."""
    max_probability: str
    """Drop probability at max_threshold; above "0%"; default "10%"."""
    max_threshold: str
    """Average queue length at which the probability reaches max_probability, above min_threshold and in its
    unit; default: three times min_threshold."""
    mean_packet: str
    """Mean packet size, for the decay of the average while the link is idle; at least "1B"; default
    "1500B"."""
    min_threshold: str
    """Average queue length from which packets are dropped, at least "1pkt" or "1B"; default: the packets
    sent in 2.5 ms, at least 5."""
    weight: float
    """Weight of the current queue length in the average, per packet; above 0, at most 1; default 0.002
    (Floyd and Jacobson 1993, section 4)."""
    ce_threshold: str
    """Delay above which every ECN-capable packet is marked, whatever the control law decides; at most the
    delay of a full queue; default: none."""
    interval: str
    """Time above the target before the first drop, about the largest round-trip time; above "0s"; default
    "100ms" (RFC 8289, section 4.4)."""
    target: str
    """Acceptable standing queueing delay; above "0s", at most interval; default "5ms" (RFC 8289, section
    4.3)."""
    ce_ect1_only: bool
    """Restriction of ce_threshold to packets with ECT(1), for L4S; default false."""
    flows: SupportsIndex
    """Number of queues, to which flows are hashed, from 1 to 65536; default 1024."""
    overflow: Literal["fattest", "arriving"]
    """Packets to drop when the limit is reached: "fattest" (half of the longest queue, RFC 8290) or
    "arriving" (the arriving packet, as Linux's fq); default "fattest"."""
    quantum: str
    """Bytes of a flow per round, from "1B" to "128MiB"; default "1514B"."""
    alpha: float
    """Weight of the deviation from the target, in Hz; above 0, at most 100; default 0.125 (RFC 8033,
    section 4.2)."""
    beta: float
    """Weight of the change of the delay since the last update, in Hz; above 0, at most 100; default 1.25
    (RFC 8033, section 4.2)."""
    mark_threshold: str
    """Drop probability above which ECN-capable packets are dropped as well; default "10%" (RFC 8033,
    section 5.1)."""
    max_burst: str
    """Burst allowance: time without drops after an idle phase; default "150ms" (RFC 8033, section 4.4)."""
    update: str
    """Period of probability updates; above "0s"; default "15ms"."""
    coupling: float
    """Ratio of the mark probability of ECT(1) and CE packets to the root of the probability of other
    packets, from 1 to 100; default 2 (CoNEXT 2016)."""
    drop_on_overload: bool
    """Drops of packets of both queues while the coupled probability exceeds 100%; false limits it to 100%
    until the queue is full; default true (RFC 9332, section 4.2.3)."""
    protection: str
    """Share of the link for the classic queue while both queues have packets; default "10%" (Linux)."""
    step: str
    """Delay of the low-latency queue above which each of its packets is marked; at most the delay of a full
    queue; default "1ms" (Linux)."""
    threshold: str
    """Queue length above which arriving ECN-capable packets are marked (K), the arriving packet and the one
    in transmission included; at least "1pkt" or "1B", below limit; default "65pkt" (SIGCOMM 2010, for 10
    Gbit/s), or half of a limit below 130 packets."""
    ack_filter: bool
    """Drop ACKs that later ones in the queue make redundant, as the conservative filter of Linux; default
    false."""
    framing: Literal["none", "atm", "ptm"]
    """Framing of the link layer: "none", "atm" (cells of 53 bytes, 48 of them payload) or "ptm" (one byte
    per 64); default "none". Requires rate."""
    isolation: Literal["triple-isolate", "dual-srchost", "dual-dsthost", "flows"]
    """Fairness between hosts before that between flows: "triple-isolate" (sources and destinations),
    "dual-srchost" (sources), "dual-dsthost" (destinations) or "flows" (none); default "triple-isolate"."""
    mpu: str
    """Smallest size of a packet on the link layer, at most "256B"; default "0B". Requires rate."""
    overhead: str
    """Bytes that the link layer adds to each packet, at most "256B"; default "0B". Requires rate."""
    rate: str
    """Rate of the shaper, at most that of the link; default: none, packets leave at the rate of the
    link."""
    rtt: str
    """Round-trip time of most flows: the interval of the AQM, whose target is a twentieth; at least "20us";
    default "100ms". With rate, the target is at least the time of 1.5 packets of 1514 bytes."""


class PathReorderKeys(TypedDict, total=False):
    """Keys of the table `PathReorder`."""

    delay: str
    """Extra delay of such a packet, e.g. "5ms"; above "0s"."""
    probability: str
    """Probability of the extra delay, e.g. "1%"."""


class PathLinkKeys(TypedDict, total=False):
    """Keys of the table `PathLink`."""

    cell: PathCellKeys | HasSettings
    """Cell of a mobile network: a table with the recorded rates of its users and a scheduler; default:
    none. Excludes rate, trace and wifi."""
    corrupt: str
    """Probability of a bit error in a packet, e.g. "0.1%"; default "0%"."""
    delay: str
    """One-way propagation delay, e.g. "20ms", from "0s" to 1 h; default "0s". Serialization at the rate
    adds to it."""
    down: Sequence[str]
    """Times in which the link is down, since the start of the trial, e.g. ["5s..7s", "12s..13s"]; default:
    none. It drops the packets that wait or arrive."""
    duplicate: str
    """Probability of packet duplication, e.g. "0.1%"; default "0%"."""
    jitter: str | PathJitterKeys | HasSettings
    """Delay variation: a spread such as "5ms" (uniform around the delay, packets stay in order) or a table;
    default: none."""
    loss: str | PathLossKeys | HasSettings
    """Packet loss before the queue: a probability such as "2%", or a table with the kind of loss model;
    default: none."""
    mtu: str
    """Maximum packet size including all headers, e.g. "1500B", from "68B" to "64KiB"; default:
    unlimited."""
    nat: PathNatKeys | HasSettings
    """Network address translator of both directions: a table with its timeout and its times of rebinding;
    default: none. Excluded in reverse."""
    queue: str | PathQueueKeys | HasSettings | type[Any]
    """Queue in front of the link: a drop-tail limit such as "100pkt" or "64KiB", a kind such as "codel", or
    a table; default "1000pkt"."""
    rate: str
    """Rate, e.g. "100Mbit/s"; default: unlimited. Excludes trace, cell and wifi."""
    reorder: PathReorderKeys | HasSettings
    """Reordering: { probability = "1%", delay = "5ms" } delays some packets so that later ones overtake
    them; default: none."""
    trace: str
    """Recorded rate: a file in mahimahi format (each line is the millisecond of an opportunity to send 1500
    bytes); default: none. Excludes rate, cell and wifi."""
    trace_start: str
    """Time of the trace at which the trial starts, e.g. "12s", or "random": drawn in each trial, the same
    part of all traces; default "0s". Requires trace or cell."""
    wifi: PathWifiKeys | HasSettings
    """Wi-Fi channel that both directions share: a table with its rate and the limits of aggregation;
    default: none. Excludes rate, trace and cell."""


class PathWifiKeys(TypedDict, total=False):
    """Keys of the table `PathWifi`."""

    frames: SupportsIndex
    """Maximum number of packets in an aggregate, 1 (no aggregation) to 256; default 64."""
    rate: str
    """Rate of the physical layer, e.g. "144.4Mbit/s"."""
    txop: str
    """Maximum duration of an aggregate, above "0s", at most "10ms"; default "4ms". One packet is always
    possible."""


class TopologyKeys(TypedDict, total=False):
    """Keys of the table `Topology`."""

    access: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Links from senders to their router, a table of path keys for all or a list with one table each;
    default: senders attached to the router."""
    bottleneck: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Shared link, a table of path keys."""
    exit: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Links from the router to receivers, a table of path keys for all or a list with one table each;
    default: receivers attached to the router."""
    pairs: SupportsIndex | Sequence[Sequence[Any]]
    """Number of senders, from 1 to 10000; default: the length of the list access."""
    receivers: SupportsIndex
    """Number of receivers, to which senders are assigned in turn (1: all send to r1); default: one per
    sender."""
    hops: SupportsIndex
    """Number of bottlenecks, from 1 to 250; default: the length of the list bottleneck."""
    hub: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Access link from the switch to the host hub, shared by all senders; default: like leaf, if that is
    one table."""
    leaf: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Access links from the hosts to the switch, a table of path keys for all or a list with one table
    each."""
    leaves: SupportsIndex
    """Number of hosts that send to the hub, from 1 to 10000; default: the length of the list leaf."""
    shared_buffer: str | TopologySharedBufferKeys | HasSettings
    """Buffer of each switch for the queues of all its outgoing links: a size such as "4MB", or a table such
    as { size = "4MB", alpha = 0.5 }; default: none. A queue accepts a packet while it is shorter than alpha
    (default 1) times the free part of the buffer, and within its limit."""
    depth: SupportsIndex
    """Number of levels of links, from 1 to 100; default: the length of the list level, or else 2."""
    fan_out: SupportsIndex
    """Branches below each node; at most 10000 leaves in total; default 2."""
    level: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Links towards the root, a table of path keys for all or a list with one table per level, from the
    root down."""
    detection: str
    """Time after which the switches avoid a failed link, or use a recovered one, e.g. "50ms"; default
    "0s"."""
    down: Mapping[str, Any]
    """Outages of single links by name, such as { "uplink/1/1" = ["5s..7s"] }, in both directions unless
    name/reverse has its own; default: none."""
    hosts: SupportsIndex | Sequence[str]
    """Hosts below each leaf; at most 10000 in total; default 2."""
    spines: SupportsIndex
    """Number of spine switches, from 1 to 1000; default 2. At most 100000 uplinks in total."""
    uplink: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Links from each leaf to each spine, a table of path keys for all or a list with one table each, in
    order of leaves; default: like access, if that is one table."""
    weights: Sequence[SupportsIndex]
    """Weights of the uplinks in the hash, a list with one number from 1 to 65535 per spine, e.g. [3, 1], or
    one per uplink, in order of leaves; default: equal weights. The shares of the pairs of hosts follow
    them."""
    link: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """All links, a table of path keys."""
    ports: SupportsIndex
    """Ports of each switch, k: an even number from 2 to 32, for k³/4 hosts; default 4."""
    delays: str
    """One-way delays from the first path to the last in equal steps, e.g. "10ms..100ms"; default: those of
    path."""
    path: PathKeys | HasSettings | Sequence[PathKeys | HasSettings]
    """Paths, a table of path keys for all or a list with one table each."""
    paths: SupportsIndex
    """Number of paths, from 1 to 64; default: the length of the list path."""
    mtu: str
    """MTU of the interface, from "68B" to "64KiB"; default "64KiB"."""
    bottlenecks: Sequence[str]
    """Names of the links whose queue and utilisation are measured, in the direction of the name; default:
    the slowest link on the path of the measured data."""
    links: Sequence[TopologyFreeLinkKeys | HasSettings]
    """Links, tables such as { from = "a", to = "b" } with path keys; each has both directions."""
    routers: Sequence[str]
    """Names of the routers, which forward packets; default: none."""


class TopologySharedBufferKeys(TypedDict, total=False):
    """Keys of the table `TopologySharedBuffer`."""

    alpha: float
    """Limit of each queue as a multiple of the free part of the buffer; above 0, at most 100; default 1"""
    size: str
    """Size of the buffer of each switch, e.g. "4MB"; at least "64KiB" """


TopologyFreeLinkKeys = TypedDict(
    "TopologyFreeLinkKeys",
    {
        "cell": "PathCellKeys | HasSettings",
        "corrupt": "str",
        "delay": "str",
        "down": "Sequence[str]",
        "duplicate": "str",
        "from": "str",
        "jitter": "str | PathJitterKeys | HasSettings",
        "loss": "str | PathLossKeys | HasSettings",
        "mtu": "str",
        "name": "str",
        "nat": "PathNatKeys | HasSettings",
        "preset": 'Literal["lan", "wifi", "3g", "4g", "5g", "lte", "dsl", "transatlantic", "geo-satellite"]',
        "queue": "str | PathQueueKeys | HasSettings | type[Any]",
        "rate": "str",
        "reorder": "PathReorderKeys | HasSettings",
        "reverse": "PathLinkKeys | HasSettings",
        "subscriber": 'Literal["far", "near"]',
        "to": "str",
        "trace": "str",
        "trace_start": "str",
        "weight": "SupportsIndex",
        "wifi": "PathWifiKeys | HasSettings",
    },
    total=False,
)


TopologyKind = Literal[
    "dumbbell", "parking-lot", "star", "tree", "leaf-spine", "fat-tree", "multipath", "loopback", "free"
]
"""Kinds of the table `Topology`."""


WorkloadKeys = TypedDict(
    "WorkloadKeys",
    {
        "algorithm": 'Literal["ring", "halving-doubling"]',
        "arrivals": "str",
        "barrier": "bool",
        "classes": "Sequence[str]",
        "deadline": "str",
        "duration": "str",
        "each_path": "bool",
        "flows": "SupportsIndex",
        "frame_rate": "str",
        "from": "str | Sequence[str]",
        "largest": "str",
        "load": "str",
        "objects": "Sequence[WorkloadPageObjectsKeys | HasSettings]",
        "off": "str",
        "on": "str",
        "pattern": 'Literal["all-to-all", "random", "permutation"]',
        "priority": "SupportsIndex",
        "rate": "str",
        "reconnect": "bool",
        "request_size": "str",
        "requests": "SupportsIndex",
        "response_size": "str",
        "rounds": "SupportsIndex",
        "sample": "str",
        "shape": "float",
        "size": "str",
        "sizes": 'Literal["fixed", "exponential", "bounded-pareto", "campus", "web-search", "data-mining", "table"]',
        "sizes_file": "str",
        "stagger": "str",
        "start": "str",
        "start_jitter": "str",
        "streams": "SupportsIndex",
        "think": "str",
        "to": "str | Sequence[str]",
        "warm_up": "str",
    },
    total=False,
)


class WorkloadPageObjectsKeys(TypedDict, total=False):
    """Keys of the table `WorkloadPageObjects`."""

    after: SupportsIndex
    """Number of the group, from 0, whose objects must have arrived before these are requested; it must be
    an earlier one; default: requested at the start."""
    count: SupportsIndex
    """Number of objects, from 1 to 10000; default 1."""
    pause: str
    """Time between that arrival, or the start, and the requests, such as the time to parse a script, at
    most "60min"; default "0s"."""
    request: str
    """Size of each request with its headers, from "1B" to "1GB"; default: request_size of the workload."""
    size: str
    """Size of each response with its headers, from "1B" to "1GB"."""
    work: str
    """Time that the server takes for each response, such as that of a database, at most "60min"; default
    "0s"."""


WorkloadKind = Literal[
    "file", "bulk", "on-off", "request-response", "arrivals", "all-reduce", "web-page", "frames"
]
"""Kinds of the table `Workload`."""


class ProtocolTcpKeys(TypedDict, total=False):
    """Keys of the table `ProtocolTcp`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    ack_every: SupportsIndex
    """Number of full segments that triggers an ACK at once. Default: 2."""
    delayed_ack: str
    """ACK delay, at most "500ms"; "0ms" sends each ACK at once. Default: linux "40ms" adapting up to
    "200ms", rfc and ns3 "200ms"."""
    dsack: bool
    """Report duplicates in SACK blocks (RFC 2883). Default: true, ns3 false."""
    ecn: Literal["dctcp", "accecn"] | bool
    """Explicit congestion notification: true (RFC 3168), false, "dctcp", whose ACKs echo the mark of each
    segment (RFC 8257, section 3.2), or "accecn", whose ACKs count marks (RFC 9768). Default: "dctcp" with
    congestion = "dctcp"; otherwise false, but linux accepts a request."""
    ecn_accept: Literal["dctcp", "accecn"] | bool
    """The most accurate feedback that a server agrees to, if it differs from what a client requests
    (`ecn`). Default: as ecn."""
    ecn_fallback: bool
    """With "accecn": stop using ECN if the handshake shows that the path changes code points in a way that
    no queue does (RFC 9768, section 3.2.2.3). Default: true."""
    ecn_option: Literal["off", "minimum", "full"]
    """With "accecn": segments with the AccECN option, which counts marked bytes: full (all segments),
    minimum (changes, and three per round trip) or off. Default: "full" (Linux)."""
    fast_open: bool
    """TCP Fast Open (RFC 7413): a client with a cookie sends data with its SYN, and a server issues
    cookies. Default: false."""
    fin_timeout: str
    """Time limit of a closed connection in FIN-WAIT-2. Default: linux "60s", else unlimited."""
    frto: bool
    """Detect spurious timeouts (F-RTO, RFC 5682). Default: linux true, else false."""
    initial_receive_window: str
    """Window that the receiver advertises first; each arriving segment then raises it by two segments, up
    to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer."""
    initial_rto: str
    """RTO before the first RTT sample. Default: "1s"."""
    initial_window: SupportsIndex
    """Initial congestion window in packets. Default: 10 (RFC 6928), or the controller's own key."""
    keep_alive: str
    """Idle time before keep-alive probes; the connection fails after nine unanswered probes 75 s apart.
    Default: never."""
    limited_transmit: bool
    """Send new data on the first duplicate ACKs (RFC 3042). Default: true."""
    max_rto: str
    """Maximum RTO. Default: linux "120s", rfc and ns3 "60s"."""
    min_rto: str
    """Minimum RTO; with profile linux, the minimum margin of the RTO above SRTT. With rfc and ns3, a
    minimum below 1 ms is the clock granularity, too (G of RFC 6298). Default: linux "200ms", rfc and ns3
    "1s"."""
    mss: str
    """Announced maximum segment size: payload and options, so timestamps take 12 bytes of it. Default:
    "1460B"."""
    nagle: bool
    """Delay a small segment while another small one is unacknowledged (Minshall's variant of Nagle's
    algorithm, as in Linux), with profile rfc while any data is. Default: true, ns3 false."""
    path: Literal["first", "random", "round-robin", "least-rtt"]
    """Path of a connection where several exist: first, random, round-robin or least-rtt (by the latest
    measurement). Default: "first"."""
    profile: Literal["linux", "rfc", "ns3"]
    """Constants and behaviour to follow: linux, rfc or ns3. Default: "linux"."""
    prr: bool
    """Proportional rate reduction during recovery (RFC 6937). Default: true, rfc false."""
    quick_acks: bool
    """Acknowledge the first segments of a connection at once. Default: linux true, else false."""
    receive_autotuning: bool
    """Grow the receive buffer with the data read per round trip, from twice the initial window up to
    receive_buffer; otherwise all of it is available from the start, as with the shared window of multipath
    TCP. Default: linux true, else false."""
    receive_buffer: str
    """Memory for received data, overhead included, below "1GiB"; it limits the advertised window. Default:
    linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB"."""
    receive_overhead: str
    """Memory per segment in the receive buffer in addition to its payload. Default: linux "856B", else
    "0B"."""
    recovery: Literal["rack-tlp", "sack", "newreno"]
    """Loss detection: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack"."""
    sack: bool
    """Offer selective acknowledgements (RFC 2018). Default: true."""
    sack_compression: bool
    """Delay ACKs of data above a gap as Linux does: after three, by 5 % of the round trip, at most 1 ms and
    44 segments. It matters to controllers that act per ACK, such as prague. Default: false."""
    send_autotuning: bool
    """Grow the send buffer with the congestion window, up to send_buffer; otherwise all of it is available
    from the start. Default: linux true, else false."""
    send_buffer: str
    """Memory for unacknowledged and unsent data, overhead included. Default: linux "4MiB" (tcp_wmem), rfc
    "1MiB", ns3 "128KiB"."""
    send_overhead: str
    """Memory per segment in the send buffer in addition to its payload. Default: linux "832B" (no
    segmentation offload), else "0B"."""
    slow_start_after_idle: bool
    """Reduce the congestion window after an idle period (RFC 5681, section 4.1). Default: true, ns3
    false."""
    stack: Literal["kernel", "longfat"]
    """TCP implementation at the hosts in world netns: "kernel", or "longfat" for this project's own, which
    accepts every key and controller. World sim always runs longfat. Default: netns "kernel"."""
    syn_retries: SupportsIndex
    """Maximum retransmissions of a SYN; profile linux adds four before back-off starts. Default: 6."""
    tail_loss_probe: bool
    """Send tail loss probes (RFC 8985, section 7). Default: linux true, else false."""
    time_wait: str
    """Duration of TIME-WAIT. Default: linux "60s", rfc and ns3 "240s"."""
    timestamps: bool
    """Offer timestamps (RFC 7323). Default: true."""
    ttcp: bool
    """T/TCP (RFC 1644; historic and open to forgery): a complete transaction takes three segments between
    hosts that have cached each other's connection count. Default: false."""
    undo: bool
    """Undo a window reduction that proves spurious (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true,
    else false."""
    user_timeout: str
    """Time without an acknowledgement after which the connection fails. Default: linux "924.6s", rfc
    "300s", ns3 "127s"."""
    window_scaling: bool
    """Offer window scaling (RFC 7323). Default: true."""


class ProtocolCongestionControlKeys(TypedDict, total=False):
    """Keys of the table `ProtocolCongestionControl`."""

    beta: float | SupportsIndex
    """Reduction factor of the short-term bounds after a round trip with too much loss, 0.1 to 0.99 (default
    0.7)."""
    initial_window: SupportsIndex
    """Initial window in packets (default 10, RFC 6928)."""
    kind: (
        Literal["bbr"]
        | Literal["bbr-tolerant"]
        | Literal["bbr1"]
        | Literal["cubic"]
        | Literal["reno"]
        | Literal["vegas"]
        | Literal["westwood"]
        | Literal["copa"]
        | Literal["vivace"]
        | Literal["ledbat++"]
        | Literal["dctcp"]
        | Literal["prague"]
        | Literal["lia"]
        | Literal["olia"]
        | Literal["balia"]
        | Literal["wvegas"]
        | Literal["fixed"]
        | str
    )
    """model of bandwidth and minimum round-trip time (BBRv3)"""
    loss_threshold: str
    """Loss per round trip above which the network counts as congested, 0.1% to 50% (default "2%")."""
    marks: Literal["loss", "share", "none"]
    """Response to congestion marks: "loss" (as a round trip with too much loss), "share" (BBRv3 of
    google/bbr with low-latency marking, at round-trip times up to 5 ms) or "none" (BBRv3 of google/bbr
    otherwise) (default "loss")."""
    probe_rtt_duration: str
    """Duration of ProbeRTT, at most "1s" (default "200ms")."""
    probe_rtt_interval: str
    """Interval of ProbeRTT, at least "100ms" (default "5s")."""
    whole_bursts: bool
    """Send whole bursts of 1 ms, as hosts with segmentation offload do (`tcp_tso_autosize` of Linux);
    otherwise half a burst at a time (default false)."""
    min_rtt_tolerance: str
    """RTT samples up to this share above the minimum confirm it, so that ProbeRTT is not necessary; 0% for
    the draft (default "0%")."""
    random_loss_limit: str
    """Largest loss attributed to the path instead of congestion, 0% to 50%; only loss without a queue
    counts (default "10%")."""
    startup_jump: SupportsIndex
    """Largest factor by which the dispersion of the initial window may raise window and rate at once, at
    most 64; 0 for the draft (default 0)."""
    startup_queue: str
    """Queueing delay in Startup that suspends its growth, as a share of the minimum RTT but at least 4 ms;
    below half of it, losses count as random; 0% for the draft (default "0%")."""
    rules: (
        Literal["draft", "linux"]
        | Literal["rfc", "linux"]
        | Literal["rfc", "linux", "ns3"]
        | Literal["paper", "linux"]
    )
    """Variant: "draft" or "linux" (default "linux" in TCP with profile = "linux", else "draft")."""
    c: float
    """Scaling constant C in packets per second cubed, above 0 and at most 1000 (default 0.4)."""
    fast_convergence: bool
    """Reduce the plateau further if the window shrinks twice in a row (default true)."""
    hystart: Literal["off", "hystart++", "classic"] | bool
    """Exit from slow start before a loss: "off", "hystart++" (RFC 9406) or "classic" (default "hystart++",
    with rules = "linux" "classic")."""
    pacing: bool
    """Pace the window over the round trip instead of sending on each ACK (default false)."""
    initial_threshold: str
    """Initial ssthresh, as in ns-3 (default: none)."""
    alpha: SupportsIndex
    """Grow with fewer packets than this in the queue (default 1; with rules = "linux", and in TCP with
    profile = "ns3", 2)."""
    gamma: SupportsIndex
    """Exit from slow start with more packets than this in the queue (default 1)."""
    competitive: bool
    """Compete with flows that fill the queue, by a delta that follows losses (default true)."""
    delta: float
    """Weight of delay against rate: a flow keeps 1 / delta packets in the queue; 0.001 to 1 (default
    0.5)."""
    latency: float
    """Weight of growing delay, 0 (Vivace-loss) to 10000 (default 900)."""
    loss: float
    """Weight of loss, 1 to 1000 (default 11.35)."""
    target: str
    """Queueing delay, "1ms" to "1s" (default "60ms")."""
    gain: float
    """Weight g of the last window of data in the average share of marked bytes; above 0, at most 1 (default
    0.0625, RFC 8257, section 4.2)."""
    initial_alpha: float
    """Initial average share alpha of marked bytes, 0 to 1 (default 1, RFC 8257, section 3.3)."""
    classic_fallback: bool
    """Detect a classic queue by its delay and respond to its marks as Reno does (default false, as in
    Linux)."""
    rtt_scaling: Literal["none", "rate", "scalable", "additive"]
    """Scaling of the growth with short round-trip times: "none", "rate", "scalable" or "additive" (default
    "rate")."""
    rtt_target: str
    """Round-trip time that the scaling refers to (default "25ms")."""
    rtt_transition: SupportsIndex
    """Rounds in congestion avoidance before growth is scaled (default 4; version 0.6 of Linux: 500)."""
    drain: Literal["equilibrium", "always", "off"]
    """Halve the window at twice the minimum queueing delay: "equilibrium" (minimum while alpha packets are
    queued), "always" (minimum at any time, as in Linux) or "off" (default "equilibrium")."""
    total_alpha: SupportsIndex
    """Packets that all subflows together keep in queues, 2 to 10000 (default 10); at least 2 each."""
    rate: str
    """Maximum sending rate, e.g. "10Mbit/s" (default: no limit)."""
    window: SupportsIndex
    """Window in packets (default 64)."""


class ProtocolMptcpKeys(TypedDict, total=False):
    """Keys of the table `ProtocolMptcp`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    ack_every: SupportsIndex
    """Number of full segments that triggers an ACK at once. Default: 2."""
    congestion: str | ProtocolCongestionControlKeys | HasSettings | type[Any]
    """Congestion controller; follows the profile's rules unless it sets its own. Default: linux "cubic",
    rfc and ns3 "reno"."""
    delayed_ack: str
    """ACK delay, at most "500ms"; "0ms" sends each ACK at once. Default: linux "40ms" adapting up to
    "200ms", rfc and ns3 "200ms"."""
    dsack: bool
    """Report duplicates in SACK blocks (RFC 2883). Default: true, ns3 false."""
    ecn: Literal["dctcp", "accecn"] | bool
    """Explicit congestion notification: true (RFC 3168), false, "dctcp", whose ACKs echo the mark of each
    segment (RFC 8257, section 3.2), or "accecn", whose ACKs count marks (RFC 9768). Default: "dctcp" with
    congestion = "dctcp"; otherwise false, but linux accepts a request."""
    ecn_accept: Literal["dctcp", "accecn"] | bool
    """The most accurate feedback that a server agrees to, if it differs from what a client requests
    (`ecn`). Default: as ecn."""
    ecn_fallback: bool
    """With "accecn": stop using ECN if the handshake shows that the path changes code points in a way that
    no queue does (RFC 9768, section 3.2.2.3). Default: true."""
    ecn_option: Literal["off", "minimum", "full"]
    """With "accecn": segments with the AccECN option, which counts marked bytes: full (all segments),
    minimum (changes, and three per round trip) or off. Default: "full" (Linux)."""
    fin_timeout: str
    """Time limit of a closed connection in FIN-WAIT-2. Default: linux "60s", else unlimited."""
    frto: bool
    """Detect spurious timeouts (F-RTO, RFC 5682). Default: linux true, else false."""
    initial_receive_window: str
    """Window that the receiver advertises first; each arriving segment then raises it by two segments, up
    to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer."""
    initial_rto: str
    """RTO before the first RTT sample. Default: "1s"."""
    initial_window: SupportsIndex
    """Initial congestion window in packets. Default: 10 (RFC 6928), or the controller's own key."""
    join_after: Literal["established", "handshake"]
    """When further subflows may be opened: established (the peer acknowledged data) or handshake. Default:
    "established", ns3 "handshake"."""
    keep_alive: str
    """Idle time before keep-alive probes; the connection fails after nine unanswered probes 75 s apart.
    Default: never."""
    limited_transmit: bool
    """Send new data on the first duplicate ACKs (RFC 3042). Default: true."""
    max_rto: str
    """Maximum RTO. Default: linux "120s", rfc and ns3 "60s"."""
    min_rto: str
    """Minimum RTO; with profile linux, the minimum margin of the RTO above SRTT. With rfc and ns3, a
    minimum below 1 ms is the clock granularity, too (G of RFC 6298). Default: linux "200ms", rfc and ns3
    "1s"."""
    mss: str
    """Announced maximum segment size: payload and options, so timestamps take 12 bytes of it. Default:
    "1460B"."""
    nagle: bool
    """Delay a small segment while another small one is unacknowledged (Minshall's variant of Nagle's
    algorithm, as in Linux), with profile rfc while any data is. Default: true, ns3 false."""
    opportunistic_retransmission: bool
    """With a full receive window, retransmit the oldest data on a faster subflow (Raiciu et al., NSDI 2012,
    section 4.2). Needs shared_window. Default: false."""
    penalisation: bool
    """With opportunistic_retransmission: reduce the window of the subflow that carried that data, as after
    a congestion mark. Default: false."""
    policy: str | ProtocolPolicyKeys | HasSettings | type[Any]
    """Path policy, which selects paths and the start of subflows. Default: "all"."""
    profile: Literal["linux", "rfc", "ns3"]
    """Constants and behaviour to follow: linux, rfc or ns3. Default: "linux"."""
    prr: bool
    """Proportional rate reduction during recovery (RFC 6937). Default: true, rfc false."""
    quick_acks: bool
    """Acknowledge the first segments of a connection at once. Default: linux true, else false."""
    receive_autotuning: bool
    """Grow the receive buffer with the data read per round trip, from twice the initial window up to
    receive_buffer; otherwise all of it is available from the start, as with the shared window of multipath
    TCP. Default: linux true, else false."""
    receive_buffer: str
    """Memory for received data, overhead included, below "1GiB"; it limits the advertised window. Default:
    linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB"."""
    receive_overhead: str
    """Memory per segment in the receive buffer in addition to its payload. Default: linux "856B", else
    "0B"."""
    recovery: Literal["rack-tlp", "sack", "newreno"]
    """Loss detection: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack"."""
    reinjection: Literal["timeout", "failure"]
    """When data of a subflow is sent on another one too: timeout (of the subflow) or failure. Default:
    "timeout", ns3 "failure"."""
    rejoin: str
    """Delay before a failed subflow is replaced by another one on its path; doubles with each failure, up
    to one minute. Default: no replacement, as with Linux's in-kernel path manager."""
    sack: bool
    """Offer selective acknowledgements (RFC 2018). Default: true."""
    sack_compression: bool
    """Delay ACKs of data above a gap as Linux does: after three, by 5 % of the round trip, at most 1 ms and
    44 segments. It matters to controllers that act per ACK, such as prague. Default: false."""
    scheduler: str | ProtocolSchedulerKeys | HasSettings | type[Any]
    """Packet scheduler, which selects the subflow of each segment. Default: "min-rtt", ns3
    "round-robin"."""
    send_autotuning: bool
    """Grow the send buffer with the congestion window, up to send_buffer; otherwise all of it is available
    from the start. Default: linux true, else false."""
    send_buffer: str
    """Memory for unacknowledged and unsent data, overhead included. Default: linux "4MiB" (tcp_wmem), rfc
    "1MiB", ns3 "128KiB"."""
    send_overhead: str
    """Memory per segment in the send buffer in addition to its payload. Default: linux "832B" (no
    segmentation offload), else "0B"."""
    shared_window: bool
    """One receive window for the whole connection (RFC 8684) instead of one for each subflow. Default:
    true, ns3 false."""
    slow_start_after_idle: bool
    """Reduce the congestion window after an idle period (RFC 5681, section 4.1). Default: true, ns3
    false."""
    stack: Literal["kernel", "longfat"]
    """TCP implementation at the hosts in world netns: "kernel", or "longfat" for this project's own, which
    accepts every key and controller. World sim always runs longfat. Default: netns "kernel"."""
    subflows: SupportsIndex
    """Maximum number of subflows of a connection. Default: 64."""
    syn_retries: SupportsIndex
    """Maximum retransmissions of a SYN; profile linux adds four before back-off starts. Default: 6."""
    tail_loss_probe: bool
    """Send tail loss probes (RFC 8985, section 7). Default: linux true, else false."""
    time_wait: str
    """Duration of TIME-WAIT. Default: linux "60s", rfc and ns3 "240s"."""
    timestamps: bool
    """Offer timestamps (RFC 7323). Default: true."""
    undo: bool
    """Undo a window reduction that proves spurious (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true,
    else false."""
    user_timeout: str
    """Time without an acknowledgement after which the connection fails. Default: linux "924.6s", rfc
    "300s", ns3 "127s"."""
    window_scaling: bool
    """Offer window scaling (RFC 7323). Default: true."""


class ProtocolPolicyKeys(TypedDict, total=False):
    """Keys of the table `ProtocolPolicy`."""

    first: Literal["first", "random", "round-robin", "least-rtt"]
    """Path of the first subflow: random, first, round-robin or least-rtt. Default: "random"."""
    kind: (
        Literal["all"]
        | Literal["single"]
        | Literal["fsfs"]
        | Literal["delayed"]
        | Literal["mmptcp"]
        | Literal["freeway"]
        | Literal["foresight"]
        | Literal["in-kernel"]
        | str
    )
    rtt: Literal["base", "latest"]
    """With first = "least-rtt": the round-trip time without queues ("base") or the latest sample
    ("latest"). Default: "latest"."""
    choose: Literal["first", "random", "round-robin", "least-rtt"]
    """The path: random, first, round-robin or least-rtt. Default: "random"."""
    paths: Sequence[SupportsIndex] | SupportsIndex
    """Number of paths of each of these classes; larger flows and flows of unknown size use all. Default:
    [1, 2, 3]."""
    thresholds: Sequence[str]
    """Largest size of each class but the last, ascending. Default: ["100KB", "300KB", "800KB"]."""
    after_bytes: str
    """Acknowledged bytes after which the others join, e.g. "300kB". Default: "100kB", unless after_time is
    set."""
    after_time: str
    """Time after which the others join, counted from when subflows can join, e.g. "200ms"; excludes
    after_bytes."""
    duplicates: SupportsIndex
    """Duplicate ACKs that count as reordering while packets are scattered, 3 to 1000. Default: 3 for each
    path."""
    switch_after: str
    """Bytes after which subflows on all paths take over. Default: "100kB"."""
    delay: str
    """Maximum mean queueing delay of mice on a path. Default: "2ms"."""
    elephant_paths: SupportsIndex
    """Number of paths of an elephant, at least 1: those with the fewest unfinished bytes. Default: 64, all
    that are not for mice."""
    mice: str
    """Largest size of a mouse. Default: "800kB"."""
    backlog: bool
    """Count bytes that are assigned to a path and not acknowledged. Default: true."""
    handshake_after: float
    """Round-trip times of the current path until an unanswered handshake retries on the next path, 1 to 10;
    0 disables. Default: 2; over Linux's MPTCP 0, the only supported value."""
    losses: bool
    """Count recent losses. Default: true."""
    short: str
    """Largest size of a short flow; with steer, larger flows avoid the paths of short flows. Default:
    "800kB"."""
    sizes: bool
    """Use known flow sizes; otherwise every flow starts on one path and adds others as it grows. Default:
    true."""
    slack: float
    """Add a path if it can deliver data within the expected time increased by this fraction, 0 to 100.
    Default: 3."""
    steer: bool
    """Keep long flows off the paths with the smallest round-trip times, as many as short flows fill.
    Default: false."""
    tail: SupportsIndex
    """Tail segments to retransmit on another path when their acknowledgement is late, 0 to 16; 0 disables.
    Default: 10; over Linux's MPTCP 0, the only supported value."""
    tail_after: float
    """Smoothed round-trip times after the last data until its acknowledgement is late, 1 to 10; not over
    Linux's MPTCP. Default: 1.5."""


ProtocolSchedulerKeys = TypedDict(
    "ProtocolSchedulerKeys",
    {
        "kind": 'Literal["min-rtt"] | Literal["round-robin"] | Literal["ecf"] | Literal["blest"] | Literal["redundant"] | Literal["daps"] | Literal["otias"] | str',
        "beta": "float",
        "lambda": "float",
        "largest_lambda": "float",
        "least_lambda": "float",
    },
    total=False,
)


class ProtocolQuicKeys(TypedDict, total=False):
    """Keys of the table `ProtocolQuic`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    ack_delay: str
    """Longest delay of an acknowledgement that a host requests of its peer, from "1ms" to "10s", with a
    limit of the library: at most 25 ms or the round-trip time, whichever is longer. Default: "25ms" (RFC
    9000, section 18.2)."""
    ack_every: SupportsIndex
    """Packets per acknowledgement that a host requests of its peer with an ACK_FREQUENCY frame
    (draft-ietf-quic-ack-frequency). Default: no request, which gives 2 (RFC 9000, section 13.2.2)."""
    ack_reordering: SupportsIndex
    """Reordering after which a host requests an immediate acknowledgement of its peer: distance in packets
    between the largest one received and the smallest missing one not reported yet; 0: none for reordered
    packets. Default: 1, each packet out of order (RFC 9000, section 13.2.1)."""
    certificate_chain: str
    """Certificate chain of the server, which takes part of its limit of three times the client's bytes
    before the client's address is validated, from "100B" to "12kB". Default: "3kB"."""
    congestion: str | ProtocolCongestionControlKeys | HasSettings | type[Any]
    """Congestion controller: one of this project's with Linux's rules, or the QUIC library's own,
    quic-cubic or quic-reno. Default: "cubic"."""
    datagrams: bool
    """Send real-time frames in DATAGRAM frames (RFC 9221), which are not retransmitted; otherwise each
    frame on a stream of its own. Only with workloads of kind frames. Default: false."""
    early_key_update: bool
    """With multipath: update the keys when the handshake is confirmed, and open further paths after the
    peer's update, one round trip later. Otherwise the library updates them after 10 to 1000 packets, and
    the receiver drops those that the update overtakes on another path. Default: false."""
    ecn: bool
    """Explicit congestion notification with ECT(0). Default: true."""
    fair_streams: bool
    """Send data of all streams in turns, a packet each; otherwise the data of a stream before that of later
    ones (RFC 9218, section 10). Default: false."""
    idle_timeout: str
    """Time without packets from the peer after which the connection fails, from "1s" to "1d". Default:
    "30s"."""
    initial_rtt: str
    """Round-trip time before the first sample, from "1ms" to "10s" (RFC 9002, section 6.2.2). Default:
    "333ms"."""
    initial_window: SupportsIndex
    """Initial congestion window in packets of max_datagram_size, or of 1200 bytes with mtu_discovery.
    Default: 10 (RFC 9002, section 7.2), or the controller's own key."""
    max_datagram_size: str
    """Largest UDP payload that a host sends, from "1200B" to "65507B". Default: "1472B", which fills the
    MTU of Ethernet over IPv4."""
    migrate: Sequence[str]
    """Times after the opening of a connection at which the client moves to migrate_to (RFC 9000, section
    9), in order, at the earliest when the handshake is confirmed. Packets to its earlier address are lost.
    Default: none."""
    migrate_to: Literal["port", "address", "path"]
    """With migrate: what changes: port, address, or path: the next path between the hosts with its own
    address. Worlds other than sim need port or path. Default: "address"."""
    mtu_discovery: bool
    """Start with UDP payloads of 1200 bytes and search for the MTU of the path up to max_datagram_size (RFC
    8899); otherwise send max_datagram_size at once. This project's controllers count in packets of 1200
    bytes throughout the search. Default: false."""
    multipath: bool
    """Use several paths at once (draft-ietf-quic-multipath): each path between the hosts that the policy
    selects. Worlds sim and netns. Default: false."""
    packet_threshold: SupportsIndex
    """Later packets that arrived before a packet counts as lost (RFC 9002, section 6.1.1). Default: 3."""
    path_timeout: str
    """With multipath: time without packets from the peer on a path after which it is closed, from "100ms"
    to "1h", but at least three probe timeouts; both ends send a PING on each path three times as often.
    Default: "3s"."""
    policy: str | ProtocolPolicyKeys | HasSettings | type[Any]
    """With multipath: path policy, which selects paths and when they open: all, single, fsfs, delayed,
    in-kernel, or one in Python. Default: "all"."""
    receive_window: str
    """Flow-control window of a stream and of the connection, from "16KiB" to "1984KiB", what TCP carries
    with Linux's default buffers, or to the payload of 1412 full packets if that is less ("1647804B" with
    max_datagram_size "1200B" or mtu_discovery), because the library fails connections with too many parts
    of a stream in its buffer. Default: the maximum."""
    scheduler: str | ProtocolSchedulerKeys | HasSettings | type[Any]
    """With multipath: packet scheduler, which selects the path of each packet with data: min-rtt,
    round-robin, ecf, blest, one in Python, or the QUIC library's own, quic-first. Default: "min-rtt", with
    a controller of the library "quic-first"."""
    send_window: str
    """Memory for unacknowledged and unsent data; of DATAGRAM frames, for unsent ones, of which the oldest
    are dropped first. From "16KiB" to "1GiB". Default: "6MiB"."""
    subflows: SupportsIndex
    """With multipath: maximum number of paths of a connection at once. Default: 64."""
    zero_rtt: bool
    """Send the first request of a client's later connections to a server with the first flight (0-RTT: RFC
    9001, section 4.6); each connection gets a ticket, which serves one later connection. Default: false."""


class ProtocolUdpKeys(TypedDict, total=False):
    """Keys of the table `ProtocolUdp`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    mss: str
    """Payload of a datagram for the workloads bulk and on-off, from "1B" to "65507B"; default "1000B"."""
    response_timeout: str
    """Request-response: how long the client waits for a response before the request counts as unanswered,
    from "1ms" to "1d"; default "2s"."""


class ProtocolArqKeys(TypedDict, total=False):
    """Keys of the table `ProtocolArq`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    acknowledge_delay: str
    """How long an ACK may be delayed, at most "1s". Default: "1ms"."""
    acknowledge_every: SupportsIndex
    """Number of in-order packets per ACK. Default: 1."""
    congestion: str | ProtocolCongestionControlKeys | HasSettings | type[Any]
    """The congestion controller of an "auto" window. Default: "bbr-tolerant", which sustains its rate under
    random loss."""
    fast_retransmit: bool
    """Go-Back-N: treat three duplicate ACKs as a loss, without waiting for the timeout. Default: false."""
    gap_retransmit: bool
    """Selective repeat: treat three later packets that arrived as a loss, without waiting for the timeout.
    Default: true with an "auto" window, else false."""
    give_up: str
    """How long the peer may be silent before the connection fails. Default: "30s"."""
    keep_alive: str
    """How long the peer may be silent before a keep-alive probe. Default: "10s"."""
    min_rto: str
    """Lower limit of an adaptive timeout. Default: "20ms"."""
    mss: str
    """Largest payload of a packet. Default: "1024B"."""
    receive_buffer: SupportsIndex
    """Receive buffer in packets. Default: 65536."""
    rto: str
    """Retransmission timeout: "adaptive" (RFC 6298) or a fixed time such as "200ms". Default:
    "adaptive"."""
    tail_probe: bool
    """Selective repeat: retransmit a packet when no ACK has arrived for two RTTs, before the timeout (RFC
    8985, section 7). Default: false."""
    window: SupportsIndex | str
    """Maximum number of unacknowledged packets, or "auto" for the congestion controller's window. Default:
    1 for stop-and-wait, else "auto"."""


class ProtocolKeys(TypedDict, total=False):
    """Keys of the table `Protocol`."""

    label: str
    """Name in tables, charts and reports, e.g. "BBRv1"; default: the name."""
    ack_every: SupportsIndex
    """Number of full segments that triggers an ACK at once. Default: 2."""
    congestion: str | ProtocolCongestionControlKeys | HasSettings | type[Any]
    """Congestion controller; follows the profile's rules unless it sets its own. Default: linux "cubic",
    rfc and ns3 "reno"."""
    delayed_ack: str
    """ACK delay, at most "500ms"; "0ms" sends each ACK at once. Default: linux "40ms" adapting up to
    "200ms", rfc and ns3 "200ms"."""
    dsack: bool
    """Report duplicates in SACK blocks (RFC 2883). Default: true, ns3 false."""
    ecn: Literal["dctcp", "accecn"] | bool
    """Explicit congestion notification: true (RFC 3168), false, "dctcp", whose ACKs echo the mark of each
    segment (RFC 8257, section 3.2), or "accecn", whose ACKs count marks (RFC 9768). Default: "dctcp" with
    congestion = "dctcp"; otherwise false, but linux accepts a request."""
    ecn_accept: Literal["dctcp", "accecn"] | bool
    """The most accurate feedback that a server agrees to, if it differs from what a client requests
    (`ecn`). Default: as ecn."""
    ecn_fallback: bool
    """With "accecn": stop using ECN if the handshake shows that the path changes code points in a way that
    no queue does (RFC 9768, section 3.2.2.3). Default: true."""
    ecn_option: Literal["off", "minimum", "full"]
    """With "accecn": segments with the AccECN option, which counts marked bytes: full (all segments),
    minimum (changes, and three per round trip) or off. Default: "full" (Linux)."""
    fast_open: bool
    """TCP Fast Open (RFC 7413): a client with a cookie sends data with its SYN, and a server issues
    cookies. Default: false."""
    fin_timeout: str
    """Time limit of a closed connection in FIN-WAIT-2. Default: linux "60s", else unlimited."""
    frto: bool
    """Detect spurious timeouts (F-RTO, RFC 5682). Default: linux true, else false."""
    initial_receive_window: str
    """Window that the receiver advertises first; each arriving segment then raises it by two segments, up
    to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer."""
    initial_rto: str
    """RTO before the first RTT sample. Default: "1s"."""
    initial_window: SupportsIndex
    """Initial congestion window in packets. Default: 10 (RFC 6928), or the controller's own key."""
    keep_alive: str
    """Idle time before keep-alive probes; the connection fails after nine unanswered probes 75 s apart.
    Default: never."""
    limited_transmit: bool
    """Send new data on the first duplicate ACKs (RFC 3042). Default: true."""
    max_rto: str
    """Maximum RTO. Default: linux "120s", rfc and ns3 "60s"."""
    min_rto: str
    """Minimum RTO; with profile linux, the minimum margin of the RTO above SRTT. With rfc and ns3, a
    minimum below 1 ms is the clock granularity, too (G of RFC 6298). Default: linux "200ms", rfc and ns3
    "1s"."""
    mss: str
    """Announced maximum segment size: payload and options, so timestamps take 12 bytes of it. Default:
    "1460B"."""
    nagle: bool
    """Delay a small segment while another small one is unacknowledged (Minshall's variant of Nagle's
    algorithm, as in Linux), with profile rfc while any data is. Default: true, ns3 false."""
    path: Literal["first", "random", "round-robin", "least-rtt"]
    """Path of a connection where several exist: first, random, round-robin or least-rtt (by the latest
    measurement). Default: "first"."""
    profile: Literal["linux", "rfc", "ns3"]
    """Constants and behaviour to follow: linux, rfc or ns3. Default: "linux"."""
    prr: bool
    """Proportional rate reduction during recovery (RFC 6937). Default: true, rfc false."""
    quick_acks: bool
    """Acknowledge the first segments of a connection at once. Default: linux true, else false."""
    receive_autotuning: bool
    """Grow the receive buffer with the data read per round trip, from twice the initial window up to
    receive_buffer; otherwise all of it is available from the start, as with the shared window of multipath
    TCP. Default: linux true, else false."""
    receive_buffer: str | SupportsIndex
    """Memory for received data, overhead included, below "1GiB"; it limits the advertised window. Default:
    linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB"."""
    receive_overhead: str
    """Memory per segment in the receive buffer in addition to its payload. Default: linux "856B", else
    "0B"."""
    recovery: Literal["rack-tlp", "sack", "newreno"]
    """Loss detection: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack"."""
    sack: bool
    """Offer selective acknowledgements (RFC 2018). Default: true."""
    sack_compression: bool
    """Delay ACKs of data above a gap as Linux does: after three, by 5 % of the round trip, at most 1 ms and
    44 segments. It matters to controllers that act per ACK, such as prague. Default: false."""
    send_autotuning: bool
    """Grow the send buffer with the congestion window, up to send_buffer; otherwise all of it is available
    from the start. Default: linux true, else false."""
    send_buffer: str
    """Memory for unacknowledged and unsent data, overhead included. Default: linux "4MiB" (tcp_wmem), rfc
    "1MiB", ns3 "128KiB"."""
    send_overhead: str
    """Memory per segment in the send buffer in addition to its payload. Default: linux "832B" (no
    segmentation offload), else "0B"."""
    slow_start_after_idle: bool
    """Reduce the congestion window after an idle period (RFC 5681, section 4.1). Default: true, ns3
    false."""
    stack: Literal["kernel", "longfat"]
    """TCP implementation at the hosts in world netns: "kernel", or "longfat" for this project's own, which
    accepts every key and controller. World sim always runs longfat. Default: netns "kernel"."""
    syn_retries: SupportsIndex
    """Maximum retransmissions of a SYN; profile linux adds four before back-off starts. Default: 6."""
    tail_loss_probe: bool
    """Send tail loss probes (RFC 8985, section 7). Default: linux true, else false."""
    time_wait: str
    """Duration of TIME-WAIT. Default: linux "60s", rfc and ns3 "240s"."""
    timestamps: bool
    """Offer timestamps (RFC 7323). Default: true."""
    ttcp: bool
    """T/TCP (RFC 1644; historic and open to forgery): a complete transaction takes three segments between
    hosts that have cached each other's connection count. Default: false."""
    undo: bool
    """Undo a window reduction that proves spurious (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true,
    else false."""
    user_timeout: str
    """Time without an acknowledgement after which the connection fails. Default: linux "924.6s", rfc
    "300s", ns3 "127s"."""
    window_scaling: bool
    """Offer window scaling (RFC 7323). Default: true."""
    join_after: Literal["established", "handshake"]
    """When further subflows may be opened: established (the peer acknowledged data) or handshake. Default:
    "established", ns3 "handshake"."""
    opportunistic_retransmission: bool
    """With a full receive window, retransmit the oldest data on a faster subflow (Raiciu et al., NSDI 2012,
    section 4.2). Needs shared_window. Default: false."""
    penalisation: bool
    """With opportunistic_retransmission: reduce the window of the subflow that carried that data, as after
    a congestion mark. Default: false."""
    policy: str | ProtocolPolicyKeys | HasSettings | type[Any]
    """Path policy, which selects paths and the start of subflows. Default: "all"."""
    reinjection: Literal["timeout", "failure"]
    """When data of a subflow is sent on another one too: timeout (of the subflow) or failure. Default:
    "timeout", ns3 "failure"."""
    rejoin: str
    """Delay before a failed subflow is replaced by another one on its path; doubles with each failure, up
    to one minute. Default: no replacement, as with Linux's in-kernel path manager."""
    scheduler: str | ProtocolSchedulerKeys | HasSettings | type[Any]
    """Packet scheduler, which selects the subflow of each segment. Default: "min-rtt", ns3
    "round-robin"."""
    shared_window: bool
    """One receive window for the whole connection (RFC 8684) instead of one for each subflow. Default:
    true, ns3 false."""
    subflows: SupportsIndex
    """Maximum number of subflows of a connection. Default: 64."""
    acknowledge_delay: str
    """How long an ACK may be delayed, at most "1s". Default: "1ms"."""
    acknowledge_every: SupportsIndex
    """Number of in-order packets per ACK. Default: 1."""
    fast_retransmit: bool
    """Go-Back-N: treat three duplicate ACKs as a loss, without waiting for the timeout. Default: false."""
    gap_retransmit: bool
    """Selective repeat: treat three later packets that arrived as a loss, without waiting for the timeout.
    Default: true with an "auto" window, else false."""
    give_up: str
    """How long the peer may be silent before the connection fails. Default: "30s"."""
    rto: str
    """Retransmission timeout: "adaptive" (RFC 6298) or a fixed time such as "200ms". Default:
    "adaptive"."""
    tail_probe: bool
    """Selective repeat: retransmit a packet when no ACK has arrived for two RTTs, before the timeout (RFC
    8985, section 7). Default: false."""
    window: SupportsIndex | str
    """Maximum number of unacknowledged packets, or "auto" for the congestion controller's window. Default:
    1 for stop-and-wait, else "auto"."""
    ack_delay: str
    """Longest delay of an acknowledgement that a host requests of its peer, from "1ms" to "10s", with a
    limit of the library: at most 25 ms or the round-trip time, whichever is longer. Default: "25ms" (RFC
    9000, section 18.2)."""
    ack_reordering: SupportsIndex
    """Reordering after which a host requests an immediate acknowledgement of its peer: distance in packets
    between the largest one received and the smallest missing one not reported yet; 0: none for reordered
    packets. Default: 1, each packet out of order (RFC 9000, section 13.2.1)."""
    certificate_chain: str
    """Certificate chain of the server, which takes part of its limit of three times the client's bytes
    before the client's address is validated, from "100B" to "12kB". Default: "3kB"."""
    datagrams: bool
    """Send real-time frames in DATAGRAM frames (RFC 9221), which are not retransmitted; otherwise each
    frame on a stream of its own. Only with workloads of kind frames. Default: false."""
    early_key_update: bool
    """With multipath: update the keys when the handshake is confirmed, and open further paths after the
    peer's update, one round trip later. Otherwise the library updates them after 10 to 1000 packets, and
    the receiver drops those that the update overtakes on another path. Default: false."""
    fair_streams: bool
    """Send data of all streams in turns, a packet each; otherwise the data of a stream before that of later
    ones (RFC 9218, section 10). Default: false."""
    idle_timeout: str
    """Time without packets from the peer after which the connection fails, from "1s" to "1d". Default:
    "30s"."""
    initial_rtt: str
    """Round-trip time before the first sample, from "1ms" to "10s" (RFC 9002, section 6.2.2). Default:
    "333ms"."""
    max_datagram_size: str
    """Largest UDP payload that a host sends, from "1200B" to "65507B". Default: "1472B", which fills the
    MTU of Ethernet over IPv4."""
    migrate: Sequence[str]
    """Times after the opening of a connection at which the client moves to migrate_to (RFC 9000, section
    9), in order, at the earliest when the handshake is confirmed. Packets to its earlier address are lost.
    Default: none."""
    migrate_to: Literal["port", "address", "path"]
    """With migrate: what changes: port, address, or path: the next path between the hosts with its own
    address. Worlds other than sim need port or path. Default: "address"."""
    mtu_discovery: bool
    """Start with UDP payloads of 1200 bytes and search for the MTU of the path up to max_datagram_size (RFC
    8899); otherwise send max_datagram_size at once. This project's controllers count in packets of 1200
    bytes throughout the search. Default: false."""
    multipath: bool
    """Use several paths at once (draft-ietf-quic-multipath): each path between the hosts that the policy
    selects. Worlds sim and netns. Default: false."""
    packet_threshold: SupportsIndex
    """Later packets that arrived before a packet counts as lost (RFC 9002, section 6.1.1). Default: 3."""
    path_timeout: str
    """With multipath: time without packets from the peer on a path after which it is closed, from "100ms"
    to "1h", but at least three probe timeouts; both ends send a PING on each path three times as often.
    Default: "3s"."""
    receive_window: str
    """Flow-control window of a stream and of the connection, from "16KiB" to "1984KiB", what TCP carries
    with Linux's default buffers, or to the payload of 1412 full packets if that is less ("1647804B" with
    max_datagram_size "1200B" or mtu_discovery), because the library fails connections with too many parts
    of a stream in its buffer. Default: the maximum."""
    send_window: str
    """Memory for unacknowledged and unsent data; of DATAGRAM frames, for unsent ones, of which the oldest
    are dropped first. From "16KiB" to "1GiB". Default: "6MiB"."""
    zero_rtt: bool
    """Send the first request of a client's later connections to a server with the first flight (0-RTT: RFC
    9001, section 4.6); each connection gets a ticket, which serves one later connection. Default: false."""
    response_timeout: str
    """Request-response: how long the client waits for a response before the request counts as unanswered,
    from "1ms" to "1d"; default "2s"."""


class TrafficKeys(TypedDict, total=False):
    """Keys of the table `Traffic`."""

    protocol: TrafficProtocolKeys | HasSettings
    """Protocol, a table with the keys of [[protocols]], e.g. { kind = "tcp", congestion = "reno" }."""
    workload: TrafficWorkloadConfigKeys | HasSettings
    """Workload, a table with the keys of [workload]; without duration it lasts as long as the trial."""


class TrafficProtocolKeys(TypedDict, total=False):
    """Keys of the table `TrafficProtocol`."""

    ack_every: SupportsIndex
    """Number of full segments that triggers an ACK at once. Default: 2."""
    congestion: str | ProtocolCongestionControlKeys | HasSettings | type[Any]
    """Congestion controller; follows the profile's rules unless it sets its own. Default: linux "cubic",
    rfc and ns3 "reno"."""
    delayed_ack: str
    """ACK delay, at most "500ms"; "0ms" sends each ACK at once. Default: linux "40ms" adapting up to
    "200ms", rfc and ns3 "200ms"."""
    dsack: bool
    """Report duplicates in SACK blocks (RFC 2883). Default: true, ns3 false."""
    ecn: Literal["dctcp", "accecn"] | bool
    """Explicit congestion notification: true (RFC 3168), false, "dctcp", whose ACKs echo the mark of each
    segment (RFC 8257, section 3.2), or "accecn", whose ACKs count marks (RFC 9768). Default: "dctcp" with
    congestion = "dctcp"; otherwise false, but linux accepts a request."""
    ecn_accept: Literal["dctcp", "accecn"] | bool
    """The most accurate feedback that a server agrees to, if it differs from what a client requests
    (`ecn`). Default: as ecn."""
    ecn_fallback: bool
    """With "accecn": stop using ECN if the handshake shows that the path changes code points in a way that
    no queue does (RFC 9768, section 3.2.2.3). Default: true."""
    ecn_option: Literal["off", "minimum", "full"]
    """With "accecn": segments with the AccECN option, which counts marked bytes: full (all segments),
    minimum (changes, and three per round trip) or off. Default: "full" (Linux)."""
    fast_open: bool
    """TCP Fast Open (RFC 7413): a client with a cookie sends data with its SYN, and a server issues
    cookies. Default: false."""
    fin_timeout: str
    """Time limit of a closed connection in FIN-WAIT-2. Default: linux "60s", else unlimited."""
    frto: bool
    """Detect spurious timeouts (F-RTO, RFC 5682). Default: linux true, else false."""
    initial_receive_window: str
    """Window that the receiver advertises first; each arriving segment then raises it by two segments, up
    to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer."""
    initial_rto: str
    """RTO before the first RTT sample. Default: "1s"."""
    initial_window: SupportsIndex
    """Initial congestion window in packets. Default: 10 (RFC 6928), or the controller's own key."""
    keep_alive: str
    """Idle time before keep-alive probes; the connection fails after nine unanswered probes 75 s apart.
    Default: never."""
    kind: (
        Literal["tcp"]
        | Literal["mptcp"]
        | Literal["stop-and-wait", "go-back-n", "selective-repeat"]
        | Literal["quic"]
        | Literal["udp"]
        | Literal["icmp"]
    )
    """Always "tcp"."""
    limited_transmit: bool
    """Send new data on the first duplicate ACKs (RFC 3042). Default: true."""
    max_rto: str
    """Maximum RTO. Default: linux "120s", rfc and ns3 "60s"."""
    min_rto: str
    """Minimum RTO; with profile linux, the minimum margin of the RTO above SRTT. With rfc and ns3, a
    minimum below 1 ms is the clock granularity, too (G of RFC 6298). Default: linux "200ms", rfc and ns3
    "1s"."""
    mss: str
    """Announced maximum segment size: payload and options, so timestamps take 12 bytes of it. Default:
    "1460B"."""
    nagle: bool
    """Delay a small segment while another small one is unacknowledged (Minshall's variant of Nagle's
    algorithm, as in Linux), with profile rfc while any data is. Default: true, ns3 false."""
    path: Literal["first", "random", "round-robin", "least-rtt"]
    """Path of a connection where several exist: first, random, round-robin or least-rtt (by the latest
    measurement). Default: "first"."""
    profile: Literal["linux", "rfc", "ns3"]
    """Constants and behaviour to follow: linux, rfc or ns3. Default: "linux"."""
    prr: bool
    """Proportional rate reduction during recovery (RFC 6937). Default: true, rfc false."""
    quick_acks: bool
    """Acknowledge the first segments of a connection at once. Default: linux true, else false."""
    receive_autotuning: bool
    """Grow the receive buffer with the data read per round trip, from twice the initial window up to
    receive_buffer; otherwise all of it is available from the start, as with the shared window of multipath
    TCP. Default: linux true, else false."""
    receive_buffer: str | SupportsIndex
    """Memory for received data, overhead included, below "1GiB"; it limits the advertised window. Default:
    linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB"."""
    receive_overhead: str
    """Memory per segment in the receive buffer in addition to its payload. Default: linux "856B", else
    "0B"."""
    recovery: Literal["rack-tlp", "sack", "newreno"]
    """Loss detection: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack"."""
    sack: bool
    """Offer selective acknowledgements (RFC 2018). Default: true."""
    sack_compression: bool
    """Delay ACKs of data above a gap as Linux does: after three, by 5 % of the round trip, at most 1 ms and
    44 segments. It matters to controllers that act per ACK, such as prague. Default: false."""
    send_autotuning: bool
    """Grow the send buffer with the congestion window, up to send_buffer; otherwise all of it is available
    from the start. Default: linux true, else false."""
    send_buffer: str
    """Memory for unacknowledged and unsent data, overhead included. Default: linux "4MiB" (tcp_wmem), rfc
    "1MiB", ns3 "128KiB"."""
    send_overhead: str
    """Memory per segment in the send buffer in addition to its payload. Default: linux "832B" (no
    segmentation offload), else "0B"."""
    slow_start_after_idle: bool
    """Reduce the congestion window after an idle period (RFC 5681, section 4.1). Default: true, ns3
    false."""
    stack: Literal["kernel", "longfat"]
    """TCP implementation at the hosts in world netns: "kernel", or "longfat" for this project's own, which
    accepts every key and controller. World sim always runs longfat. Default: netns "kernel"."""
    syn_retries: SupportsIndex
    """Maximum retransmissions of a SYN; profile linux adds four before back-off starts. Default: 6."""
    tail_loss_probe: bool
    """Send tail loss probes (RFC 8985, section 7). Default: linux true, else false."""
    time_wait: str
    """Duration of TIME-WAIT. Default: linux "60s", rfc and ns3 "240s"."""
    timestamps: bool
    """Offer timestamps (RFC 7323). Default: true."""
    ttcp: bool
    """T/TCP (RFC 1644; historic and open to forgery): a complete transaction takes three segments between
    hosts that have cached each other's connection count. Default: false."""
    undo: bool
    """Undo a window reduction that proves spurious (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true,
    else false."""
    user_timeout: str
    """Time without an acknowledgement after which the connection fails. Default: linux "924.6s", rfc
    "300s", ns3 "127s"."""
    window_scaling: bool
    """Offer window scaling (RFC 7323). Default: true."""
    join_after: Literal["established", "handshake"]
    """When further subflows may be opened: established (the peer acknowledged data) or handshake. Default:
    "established", ns3 "handshake"."""
    opportunistic_retransmission: bool
    """With a full receive window, retransmit the oldest data on a faster subflow (Raiciu et al., NSDI 2012,
    section 4.2). Needs shared_window. Default: false."""
    penalisation: bool
    """With opportunistic_retransmission: reduce the window of the subflow that carried that data, as after
    a congestion mark. Default: false."""
    policy: str | ProtocolPolicyKeys | HasSettings | type[Any]
    """Path policy, which selects paths and the start of subflows. Default: "all"."""
    reinjection: Literal["timeout", "failure"]
    """When data of a subflow is sent on another one too: timeout (of the subflow) or failure. Default:
    "timeout", ns3 "failure"."""
    rejoin: str
    """Delay before a failed subflow is replaced by another one on its path; doubles with each failure, up
    to one minute. Default: no replacement, as with Linux's in-kernel path manager."""
    scheduler: str | TrafficSchedulerKeys | HasSettings | type[Any]
    """Packet scheduler, which selects the subflow of each segment. Default: "min-rtt", ns3
    "round-robin"."""
    shared_window: bool
    """One receive window for the whole connection (RFC 8684) instead of one for each subflow. Default:
    true, ns3 false."""
    subflows: SupportsIndex
    """Maximum number of subflows of a connection. Default: 64."""
    acknowledge_delay: str
    """How long an ACK may be delayed, at most "1s". Default: "1ms"."""
    acknowledge_every: SupportsIndex
    """Number of in-order packets per ACK. Default: 1."""
    fast_retransmit: bool
    """Go-Back-N: treat three duplicate ACKs as a loss, without waiting for the timeout. Default: false."""
    gap_retransmit: bool
    """Selective repeat: treat three later packets that arrived as a loss, without waiting for the timeout.
    Default: true with an "auto" window, else false."""
    give_up: str
    """How long the peer may be silent before the connection fails. Default: "30s"."""
    rto: str
    """Retransmission timeout: "adaptive" (RFC 6298) or a fixed time such as "200ms". Default:
    "adaptive"."""
    tail_probe: bool
    """Selective repeat: retransmit a packet when no ACK has arrived for two RTTs, before the timeout (RFC
    8985, section 7). Default: false."""
    window: SupportsIndex | str
    """Maximum number of unacknowledged packets, or "auto" for the congestion controller's window. Default:
    1 for stop-and-wait, else "auto"."""
    ack_delay: str
    """Longest delay of an acknowledgement that a host requests of its peer, from "1ms" to "10s", with a
    limit of the library: at most 25 ms or the round-trip time, whichever is longer. Default: "25ms" (RFC
    9000, section 18.2)."""
    ack_reordering: SupportsIndex
    """Reordering after which a host requests an immediate acknowledgement of its peer: distance in packets
    between the largest one received and the smallest missing one not reported yet; 0: none for reordered
    packets. Default: 1, each packet out of order (RFC 9000, section 13.2.1)."""
    certificate_chain: str
    """Certificate chain of the server, which takes part of its limit of three times the client's bytes
    before the client's address is validated, from "100B" to "12kB". Default: "3kB"."""
    datagrams: bool
    """Send real-time frames in DATAGRAM frames (RFC 9221), which are not retransmitted; otherwise each
    frame on a stream of its own. Only with workloads of kind frames. Default: false."""
    early_key_update: bool
    """With multipath: update the keys when the handshake is confirmed, and open further paths after the
    peer's update, one round trip later. Otherwise the library updates them after 10 to 1000 packets, and
    the receiver drops those that the update overtakes on another path. Default: false."""
    fair_streams: bool
    """Send data of all streams in turns, a packet each; otherwise the data of a stream before that of later
    ones (RFC 9218, section 10). Default: false."""
    idle_timeout: str
    """Time without packets from the peer after which the connection fails, from "1s" to "1d". Default:
    "30s"."""
    initial_rtt: str
    """Round-trip time before the first sample, from "1ms" to "10s" (RFC 9002, section 6.2.2). Default:
    "333ms"."""
    max_datagram_size: str
    """Largest UDP payload that a host sends, from "1200B" to "65507B". Default: "1472B", which fills the
    MTU of Ethernet over IPv4."""
    migrate: Sequence[str]
    """Times after the opening of a connection at which the client moves to migrate_to (RFC 9000, section
    9), in order, at the earliest when the handshake is confirmed. Packets to its earlier address are lost.
    Default: none."""
    migrate_to: Literal["port", "address", "path"]
    """With migrate: what changes: port, address, or path: the next path between the hosts with its own
    address. Worlds other than sim need port or path. Default: "address"."""
    mtu_discovery: bool
    """Start with UDP payloads of 1200 bytes and search for the MTU of the path up to max_datagram_size (RFC
    8899); otherwise send max_datagram_size at once. This project's controllers count in packets of 1200
    bytes throughout the search. Default: false."""
    multipath: bool
    """Use several paths at once (draft-ietf-quic-multipath): each path between the hosts that the policy
    selects. Worlds sim and netns. Default: false."""
    packet_threshold: SupportsIndex
    """Later packets that arrived before a packet counts as lost (RFC 9002, section 6.1.1). Default: 3."""
    path_timeout: str
    """With multipath: time without packets from the peer on a path after which it is closed, from "100ms"
    to "1h", but at least three probe timeouts; both ends send a PING on each path three times as often.
    Default: "3s"."""
    receive_window: str
    """Flow-control window of a stream and of the connection, from "16KiB" to "1984KiB", what TCP carries
    with Linux's default buffers, or to the payload of 1412 full packets if that is less ("1647804B" with
    max_datagram_size "1200B" or mtu_discovery), because the library fails connections with too many parts
    of a stream in its buffer. Default: the maximum."""
    send_window: str
    """Memory for unacknowledged and unsent data; of DATAGRAM frames, for unsent ones, of which the oldest
    are dropped first. From "16KiB" to "1GiB". Default: "6MiB"."""
    zero_rtt: bool
    """Send the first request of a client's later connections to a server with the first flight (0-RTT: RFC
    9001, section 4.6); each connection gets a ticket, which serves one later connection. Default: false."""
    response_timeout: str
    """Request-response: how long the client waits for a response before the request counts as unanswered,
    from "1ms" to "1d"; default "2s"."""


TrafficSchedulerKeys = TypedDict(
    "TrafficSchedulerKeys",
    {
        "kind": 'Literal["min-rtt"] | Literal["round-robin"] | Literal["ecf"] | Literal["blest"] | Literal["redundant"] | Literal["daps"] | Literal["otias"] | str',
        "beta": "float",
        "lambda": "float",
        "largest_lambda": "float",
        "least_lambda": "float",
    },
    total=False,
)


TrafficWorkloadConfigKeys = TypedDict(
    "TrafficWorkloadConfigKeys",
    {
        "algorithm": 'Literal["ring", "halving-doubling"]',
        "arrivals": "str",
        "barrier": "bool",
        "classes": "Sequence[str]",
        "deadline": "str",
        "duration": "str",
        "each_path": "bool",
        "flows": "SupportsIndex",
        "frame_rate": "str",
        "from": "str | Sequence[str]",
        "kind": 'Literal["file", "bulk", "on-off", "request-response", "arrivals", "all-reduce", "web-page", "frames"]',
        "largest": "str",
        "load": "str",
        "objects": "Sequence[WorkloadPageObjectsKeys | HasSettings]",
        "off": "str",
        "on": "str",
        "pattern": 'Literal["all-to-all", "random", "permutation"]',
        "priority": "SupportsIndex",
        "rate": "str",
        "reconnect": "bool",
        "request_size": "str",
        "requests": "SupportsIndex",
        "response_size": "str",
        "rounds": "SupportsIndex",
        "sample": "str",
        "shape": "float",
        "size": "str",
        "sizes": 'Literal["fixed", "exponential", "bounded-pareto", "campus", "web-search", "data-mining", "table"]',
        "sizes_file": "str",
        "stagger": "str",
        "start": "str",
        "start_jitter": "str",
        "streams": "SupportsIndex",
        "think": "str",
        "to": "str | Sequence[str]",
        "warm_up": "str",
    },
    total=False,
)
