"""The compiled part of longfat (crates/python). Documents travel as JSON text.

ValueError carries one clear line about bad input, OSError one about the system.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

def version() -> str:
    """The version of longfat, e.g. "0.1.0"."""

def vocabulary() -> str:
    """What a study file may say, as JSON.

    Keys: "path", "topology", "protocol", "workload", "traffic" (JSON Schemas; the last of one entry),
    "presets" (name to its keys `forward` and
    those that differ in `reverse`), "metrics" (name to `unit`, `help`, `better`) and "flows" (JSON Schema of
    a row of the table of flows).
    """

def check(section: Literal["path", "topology", "protocol", "workload", "traffic"], json: str) -> str:
    """The problems of one section, as a JSON list of `{"key", "message"}`; empty where it is fine.

    Keys are dotted and start inside the section ("reverse.rate"); empty for the section as a whole.
    """

class Cancel:
    """A flag by which another thread ends a simulation."""

    def __init__(self) -> None: ...
    def cancel(self) -> None:
        """Every `simulate` that holds this flag soon raises `Cancelled`."""

class Cancelled(Exception):  # noqa: N818 - the native part names it
    """The trial was cancelled; it has no record."""

def simulate(spec_json: str, cancel: Cancel | None = None) -> str:
    """Runs one trial in virtual time (the GIL is released) and gives its record as JSON.

    The record has `metrics` or an `error`, and `flows`, columns for `longfat.system.flow_table`.
    """

def simulate_trials(spec_json: str, numbers: Sequence[int], cancel: Cancel | None = None) -> dict[str, Any]:
    """Runs the trials with these numbers of one specification, or the first of them if they are cancelled.

    Returns `errors` (a text or None for each trial), `metrics` (by name, the bytes of a double for each
    trial, NaN for none), `heights` (the bytes of the number of flows of each trial, 32 bit) and `flows`, the
    columns of all flows for `longfat.system.flow_table`, with bytes as values.
    """

def path_links(path_json: str, /) -> str:
    """The keys of each link of a `[path]`, forward and in reverse, with those of presets, as JSON.

    A list of pairs.

    Raises:
        ValueError: a key is unknown or cannot be read.
    """

def check_trial(spec_json: str) -> None:
    """Checks, without running it, that a trial's network can be built and that its hosts exist.

    ValueError names the key.
    """

def first_refused(
    columns: list[tuple[str, list[str], bytes]], seed: int, world: str | None = None
) -> int | None:
    """The number of the first specification that a world does not support, or, without one, that is no trial.

    A column is a section: its name, contents as JSON, and the number of the content in each specification
    (native 32 bit).
    """

def wrong_contents(section: str, contents: list[str]) -> list[int]:
    """The numbers of those contents of one section, as JSON, that have problems."""

def unsupported(world: str, spec_json: str) -> str:
    """The problems ("key", "message") of a trial that a world does not support, as a JSON list.

    A machine may support less.
    """

def host_metrics(spec_json: str) -> str:
    """The names of the metrics of single hosts and of traffic in a trial, as a JSON list."""

def links(spec_json: str) -> str:
    """The names of the links in a trial's network, as a JSON list."""

def layout(spec_json: str) -> str:
    """The network and the flows of a trial before anything is sent, with max-min fair shares, as JSON.

    `hosts`; `links` (`name`, `from`, `to`, `rate_bps`, `delay_s`, `loss`, `queue`, `is_steady`);
    `bottlenecks`
    (indices of links); `flows` (`traffic`, `from`, `to`, `links`, `reverse_links`, `payload_bytes`,
    `payload_share`, `max_min_bps`, `tcp` with `controller`, `window_bytes`, `timeout_s`).
    """

def trace(
    spec_json: str,
    pcapng: str | None = None,
    interval: float | None = None,
    side: str | None = None,
    snap: int | None = None,
) -> str:
    """As `simulate`, with the list "events" in the record, and "series" sampled every `interval` s.

    Writes a pcapng file where a path is given, of what one side of each flow saw ("sender" or "receiver";
    both where it is None), with `snap` bytes of each packet (all where it is None).
    """

def packetdrill(
    paths: Sequence[str], interpreter: Callable[[], Callable[[str, dict[str, int]], object]]
) -> str:
    """Runs packetdrill scripts, and *.pkt below directories, on virtual time; OSError for an unreadable one.

    `interpreter` returns the function that runs the snippets of one script (`longfat.api.snippets.Snippets`).

    Returns a JSON list of `{"path", "outcome": "pass" | "fail" | "unsupported" | "invalid", "printed"}` with
    `line`, and `expected`, `seen`, `at_s` of a failure or `what` of the last two outcomes.
    """

def check_emulated(spec_json: str, names: dict[str, str]) -> None:
    """Checks that `emulate` can run a trial: its hosts exist, and this kernel has what it configures.

    ValueError names the key.
    """

def emulate(spec_json: str, names: dict[str, str]) -> str:
    """Runs one trial between real kernels on wall time (the GIL is released) and gives its record as JSON.

    `names` says what the kernel calls congestion controllers that were given to it for the occasion. What the
    system or its kernel cannot do is the record's error.
    """

def emulate_traced(
    spec_json: str,
    names: dict[str, str],
    pcapng: str | None = None,
    interval: float | None = None,
    side: str | None = None,
    snap: int | None = None,
) -> str:
    """As `emulate`, with what `trace` adds to a record, and its arguments.

    What the system or its kernel cannot do is an OSError.
    """

def enter_user_namespace() -> None:
    """Lets a process that lacks permissions emulate: it enters a user namespace for good.

    Raises OSError where the system does not let it, naming the setting that stands in the way, or where the
    process has other threads already.
    """

class Session:
    """A simulated trial that advances in steps, with a sample every `interval` s.

    The sizes of steps do not affect the results. ValueError is about specifications, names and values.
    """

    def __init__(self, spec_json: str, interval: float) -> None: ...
    def advance(self, step: float) -> str:
        """Runs `step` seconds of virtual time; JSON with `now_s`, `over`, and new `events` and `series`."""

    def set_link(self, link: str, key: str, value_json: str) -> None:
        """Changes a key of a link now; null removes it."""

    def set_protocol(self, group: int, key: str, value_json: str) -> None:
        """Changes a key of a group's protocol now, 0 for the measured flows; null restores the default."""

    def set_controller(self, flow: int | None, congestion_json: str) -> None:
        """Replaces the controller of a flow's established TCP sender now; None: of later flows."""

    def start_flow(self, group: int, pair: int, size: int | None) -> int:
        """Starts a flow of a group between a pair of its hosts, and returns its number."""

    def stop_flow(self, flow: int) -> None:
        """Ends the stream of a flow's sender after the data in its send buffer."""

    def drop_packet(self, packet: int) -> None:
        """Requests the loss of a packet on the path."""

    def drop_next(self, flow: int) -> None:
        """Requests the loss of the next packet of a flow with payload."""

    def links(self) -> list[str]:
        """The names of the links."""

    def finish(self) -> str:
        """Ends the trial; returns its record as JSON."""

class Explorer:
    """The engine of the explorer's page: sessions, which use only permitted classes and files."""

    def __init__(self, permitted: Sequence[str] = ()) -> None: ...
    def reply(self, request: bytes) -> str:
        """Handles a request in JSON; returns `{"ok": ...}` or `{"error": "..."}`."""

def confined(function: Callable[[bytes], str], argument: bytes, permitted: Sequence[str] = (), /) -> str:
    """Calls a function, in which specifications name neither classes nor files except the permitted ones."""

class CallStopped(BaseException):
    """A call of a Python class exceeded its limit, or its run was cancelled."""

class Environments:
    """Trials whose TCP senders a program controls, stepped together on several threads without the GIL."""

    def __init__(self, count: int, agents: int, interval: float, threads: int) -> None: ...
    def reset(self, index: int, spec_json: str) -> None:
        """Starts a trial, and runs it until its first `agents` flows are established."""

    def step(self, actions: bytes) -> bytes:
        """Runs one interval everywhere.

        `actions` has two doubles for each agent: window in bytes, and pacing rate in bit/s (0: none). The
        result has ten for each: time (s), bytes sent, acknowledged and lost, number of RTT samples, their
        mean and minimum (s, NaN for none) and slope (s/s), timeouts, and 1 after the end.
        """

def explain_capture(path: str | None, on_progress: Callable[[int], bool | None]) -> str:
    """Reads a capture (pcap, pcapng, also gzip or zstd), or standard input for None, and names the causes.

    `on_progress` is called with the number of frames every 65,536 frames; when it returns False, the rest is
    not read. Ctrl-C ends standard input, and what was read is explained. Returns the JSON of
    `explanation::report::CaptureReport`. OSError if reading fails, ValueError for another format.
    """

def capture_sequence(
    path: str, sender: str, receiver: str, frames: tuple[int, int], interface: int, most: int
) -> str:
    """Reads the packets of one direction of a connection of a capture, for a graph of sequence numbers.

    `frames` are the first and last frame of the connection. Of more than about `most` marks, repetitions
    and an even part of the others stay. Returns a JSON list of `{"time_s", "kind", "from", "to", "frame"}`
    with the kinds data, again, ack, sack and window; bytes count from the first one of the stream.
    """

class HopProber:
    """Sends packets of many sizes to the routers on the way to a host, one or a few at a time.

    `protocol` is "udp" (to `port`, and with a `window` above 1 those behind it) or "icmp"; times in s.
    OSError says what the system refuses, and what to do about it.
    """

    def __init__(
        self,
        to: str,
        protocol: str = "udp",
        port: int = 33434,
        interval: float = 0.01,
        timeout: float = 1.0,
        window: int = 1,
    ) -> None: ...
    def run(self, probes: Sequence[tuple[int, int]], on_progress: Callable[[int], bool | None]) -> str:
        """Sends probes with a time to live and a size (with the IP header), and waits for the results.

        `on_progress` is called with the number of results since the last call, at least ten times a second.
        When it returns False no further probe is sent; an exception stops the run. Returns a JSON list of
        `{"ttl", "size", "answer": {"kind": "time-exceeded" | "reached" | "unreachable" | "too-big", "from",
        "size", "mtu"} | null, "application_s", "kernel_s"}` in the order of completion.
        """

def doctor(only: Sequence[str] | None = None) -> str:
    """What this machine can do: a JSON list of `{"key", "name", "ok", "busy", "detail", "remedy"}`.

    `only`: the keys of the checks to run. ValueError lists the keys.
    """

def clean() -> str:
    """Ends what killed emulations have left: JSON lists `ended` and `left` of `{"process", "what"}`."""

def shell(
    path_json: str,
    command: Sequence[str],
    seed: int = 1,
    server: str | None = None,
    tcp: tuple[str | None, str | None] = (None, None),
    programs: str = "{}",
    wait_port: tuple[int, bool] | None = None,
) -> str:
    """Runs a command (the user's shell where the list is empty) behind a path; its report as JSON.

    `server` is a line for `sh` at the other end, started first and ended with the command. `tcp` has the keys
    of longfat's TCP at either end as JSON, where it takes the place of the kernel's. The report has
    `code`, `seconds`, for `forward` and `reverse` what the link did, and in `path` what was asked of it.
    OSError says what the system lacks. A process (of one thread) that lacks permissions enters a user
    namespace, for good, in which it has them.

    `programs` is a JSON object that may have `sysctls` (each with `key`, `value` and optionally `host`),
    `congestion` and `pcapng`. The command starts once the server listens at `wait_port` (a number, and
    whether it is one of UDP).
    """

def checked_paths(spec_json: str) -> str:
    """The kinds of paths that packets of a trial take: a JSON list of `{"from", "to", "links", "asked"}`."""

def check_path(spec_json: str, number: int) -> str:
    """Builds one of `checked_paths` by itself and measures it, in 3 to 8 s, as JSON.

    `figures` (each with `name`, `unit`, `asked`, `measured`, `holds`, `detail`) and `refusals` (lines that
    say why this machine does not hold the path).
    """

def capacity(enough: float = ...) -> str:
    """What this machine emulates, measured in up to 3 s: `packets_per_second`, `late_p99_s` and `is_busy`.

    Higher loads than `enough` packets a second are not tried.
    """

class TcpRelay:
    """A relay of TCP connections over an emulated path. The constructor opens the listening sockets.

    `options_json` has `listeners` (a list of `{"listen", "target"}`: addresses, or the target "socks5" or
    "http-connect"), `udp` (the same with addresses only, for UDP), `path`, `protocol`, `separate`, `seed` and
    `pcapng` (a capture file of the path's packets, or null). ValueError is about options, OSError about the
    system.
    """

    def __init__(self, options_json: str) -> None: ...
    def run(self, on_report: Callable[[str], bool | None] | None = None) -> str:
        """Relays until the function returns False, or Ctrl-C; returns the last report.

        The report has `capture` if there is one: counts of `packets` in the file, and of those that are
        `missing`.

        `on_report` first gets `{"listening", "addresses", "path"}`, then reports, and
        `{"failure", "target"}` for each target that cannot be reached.
        """

    def set_path(self, path_json: str) -> str:
        """Replaces the path; returns its keys by direction."""

    def start_outage(self, seconds: float, forward: bool, reverse: bool) -> None:
        """Takes directions down for a time."""

    def end_outage(self) -> None:
        """Ends outages."""

    def lose_next(self, count: int, forward: bool, reverse: bool) -> None:
        """Loses the next packets of directions."""

    def reset_all(self) -> int:
        """Resets all connections; returns the number of their ends."""

    def report(self) -> str:
        """The counters so far."""

class Testbed:
    """The network of a trial between real kernels, whose hosts run commands, until `close`.

    A process (of one thread) that lacks permissions enters a user namespace, for good, in which it has them.
    ValueError is about names and options, OSError about the system.
    """

    def __init__(self, spec_json: str, programs: str = "{}") -> None:
        """`programs`: see `shell`."""

    def kernel(self) -> str:
        """The hosts' settings as JSON: `controller`, and `sysctls` that differ from this machine's."""

    def listens(self, host: str, port: int, is_udp: bool) -> bool:
        """Whether a socket that other hosts can reach listens at a port of a host."""

    def hosts(self) -> str:
        """A JSON list of `{"name", "address", "node"}`."""

    def routers(self) -> str:
        """A JSON list of `{"name", "address"}`: those that have addresses of their own."""

    def set(self, link: str, key: str, value_json: str) -> None:
        """Changes a key of a link while packets are on it; null takes the key away.

        ValueError names a link, key or value that there is not.
        """

    def links(self) -> str:
        """A JSON list of what each link was asked to do, what it has done, and its queue now."""

    def dropped(self) -> str:
        """A JSON list of the packets that each host's kernel has dropped, which no link lost.

        `{"name", "socket", "sent", "received"}`: at full socket buffers, and at the host's device on the way
        out and in.
        """

    def run(self, host: str, command_json: str, streams: tuple[int, int, int]) -> int:
        """Starts a command at a host with these descriptors, and gives the process, a child of this one.

        The JSON object has `command` (a list), and may have `directory`, `environment` and `terminal`
        ("none", "lent": this process's terminal is the command's until it is taken back, "given": it is the
        command's own). OSError has the system's number where there is no such command.
        """

    def ping_all(self, count: int) -> str:
        """A JSON list with an object a pair of hosts: round trips and losses, and what the links say."""

    def goodput(self, source: str, target: str, seconds: float) -> str:
        """What one connection of the kernel's TCP gets from one host to another, as JSON."""

    def close(self, patience: float = 0.0) -> str | None:
        """Stops all commands by SIGTERM, after `patience` seconds by SIGKILL, and removes the network.

        Returns the contents of the capture, if any, as JSON: numbers of `packets` and of `missing` ones.
        A signal ends the wait. OSError is about the capture.
        """

def endpoint(role: str, spec_json: str, addr: str | None) -> str:
    """One process (`receive`, `relay`, `send`) of a trial in the world `relay`; releases the GIL and blocks.

    `receive` and `relay` first print `{"listening": "127.0.0.1:port"}` on standard output and are ended from
    outside; `send` returns the record. `addr` is where `relay` forwards to and `send` sends to.
    """

def file_protocol(overrides: str) -> str:
    """The settings of file transfer as JSON, those in the JSON object `overrides` in place of its own."""

def new_code() -> str:
    """Returns a new random code for a transfer."""

def check_code(text: str) -> None:
    """Raises ValueError unless a text is a code."""

def new_identity() -> str:
    """Returns a new random secret key, as the text of an identity file."""

def public_key(text: str) -> str:
    """Returns the public key of an identity file's text. Raises ValueError if the text is not valid."""

def check_public_key(text: str) -> None:
    """Raises ValueError unless a text is a public key."""

def count_trusted(text: str) -> int:
    """Returns the number of keys in a list of trusted keys. Raises ValueError with an invalid line."""

def send_files(
    files: Sequence[str],
    to: str,
    protection_json: str,
    protocol_json: str = "{}",
    progress: Callable[[str], bool | None] | None = None,
    recursive: bool = False,
    wait_s: float = 0.0,
    input_name: str | None = None,
) -> str:
    """Sends files to the receiver at `to` ("host:port"); releases the GIL, gives a report as JSON.

    `protection_json` has a `kind`: `none`, `code` (with `code`), or `keys` (with `identity` and `trusted`,
    the texts of these files). `progress` gets a JSON object about 20 times a second (`name`, `file`,
    `files`, `done`, `total`, `elapsed_s`, `rate_Bps`, `left_s`) and stops the sending by giving False or
    raising. With `recursive`, folders are sent with all files in them. If the receiver disappears, the sender
    connects again for up to `wait_s` without progress (`waiting`). With `input_name`, standard input is sent
    under this name instead of files; its `total` and `size` are None until they are known. The report has
    `files` (each with `path`, `size`, `resumed`, `outcome` stored|already|failed, `detail`), `skipped` (links
    and special files), `reconnections`, `bytes`, `seconds`, `goodput_bps`, `rtt_s`, `packets_sent`,
    `bytes_sent`, `retransmissions`, `timeouts`.
    """

class Approvals:
    """Decisions about senders, which any thread may make while `receive_files` runs."""

    def __init__(self) -> None: ...
    def decide(self, request: int, accept: bool) -> None:
        """Accepts or declines what the sender of a request offers."""

def receive_files(
    listen: str,
    directory: str,
    protection_json: str,
    limits_json: str = "{}",
    on_event: Callable[[str], bool | None] | None = None,
    approvals: Approvals | None = None,
) -> str:
    """Receives files into `directory` until `on_event` gives False or raises.

    `limits_json` has `once` (one connection alone), `max_connections`, `max_bytes`, `dotfiles` and
    `executables`. `on_event` gets JSON objects whose `event` is listening, connected, request, started,
    progress, stored, failed or disconnected. With `approvals`, each `request` waits for its decision. The
    report has `files`, `already`, `bytes`, `failures`.
    """

def relay(
    listen: str,
    to: str,
    path_json: str,
    seed: int = 1,
    on_report: Callable[[str], bool | None] | None = None,
) -> str:
    """Relays datagrams from `listen` to `to` and back over a path on wall time, until stopped or Ctrl-C.

    `on_report` first gets `{"listening": address}`, then about 20 times a second what the links did. The
    answer is the last such report: `forward` and `reverse` (packets entered, delivered, lost, ...),
    `clients`, `dropped_by_relay`, `refused_by_server` (ICMP errors: nothing listened at `to`), `late_p50_s`,
    `late_p99_s`.
    """

class Acknowledgement:
    """An ACK that acknowledges new data. Times are in s, sizes in bytes of payload."""

    def __init__(
        self,
        *,
        now: float,
        bytes: int,  # noqa: A002 - as the facts are called
        marked_bytes: int = 0,
        rtt: float | None = None,
        smoothed_rtt: float = 0.0,
        newest_sent_at: float = 0.0,
        in_flight: int = 0,
        delivered: int = 0,
        delivery_rate: int | None = None,
        application_limited: bool = False,
        window_limited: bool = True,
        in_recovery: bool = False,
    ) -> None: ...
    @property
    def now(self) -> float:
        """Arrival time of the ACK in s since the start of the trial."""
    @property
    def bytes(self) -> int:
        """Newly acknowledged payload bytes, cumulatively or selectively (SACK).

        Each byte counts once, when it is first acknowledged.
        """
    @property
    def marked_bytes(self) -> int:
        """The part of `bytes` that the receiver reports as marked (ECN).

        Exact with TCP's key `ecn = "dctcp"`, the feedback of DCTCP (RFC 8257). With `ecn = true`, an upper
        bound: all bytes of an ACK with a congestion echo. 0 without ECN and for the ARQ protocols.
        """
    @property
    def rtt(self) -> float | None:
        """Round-trip time of the newest acknowledged packet in s.

        None if a retransmission makes it ambiguous (Karn's algorithm).
        """
    @property
    def smoothed_rtt(self) -> float:
        """Smoothed round-trip time in s (RFC 6298), this sample included; 0 before the first."""
    @property
    def newest_sent_at(self) -> float:
        """Send time of the newest acknowledged packet in s since the start of the trial."""
    @property
    def in_flight(self) -> int:
        """Payload bytes in flight after this ACK.

        Bytes that are selectively acknowledged or considered lost are not in flight.
        """
    @property
    def delivered(self) -> int:
        """Payload bytes acknowledged since the start of the connection, this ACK included.

        Both cumulative and selective acknowledgements count.
        """
    @property
    def delivery_rate(self) -> int | None:
        """Delivery rate over the flight of the newest acknowledged packet in bit/s; None without a sample."""
    @property
    def application_limited(self) -> bool:
        """Whether the sender ran out of data during the sample of the delivery rate.

        The rate is then a lower bound. False without a sample.
        """
    @property
    def window_limited(self) -> bool:
        """Whether the window or the pacing kept a packet from leaving since the last ACK.

        False if only the application or the receiver limits the sender.
        """
    @property
    def in_recovery(self) -> bool:
        """Whether the window must not grow.

        TCP repairs losses, reduces the window for an ECN mark, or receives duplicate ACKs. Always False
        for the ARQ protocols.
        """

class Loss:
    """Losses that one ACK revealed, reported together. Times are in s, sizes in bytes of payload."""

    def __init__(
        self,
        *,
        now: float,
        bytes: int,  # noqa: A002 - as the facts are called
        newest_sent_at: float = 0.0,
        prior_in_flight: int = 0,
        in_flight: int = 0,
        in_recovery: bool = False,
    ) -> None: ...
    @property
    def now(self) -> float:
        """Time of the detection in s since the start of the trial."""
    @property
    def bytes(self) -> int:
        """Payload bytes newly considered lost, without those of earlier detections; 0 for an ECN mark."""
    @property
    def newest_sent_at(self) -> float:
        """Send time of the newest lost packet in s since the start of the trial.

        Losses of packets sent before the last reduction belong to the same congestion event (RFC 6582).
        """
    @property
    def prior_in_flight(self) -> int:
        """Payload bytes in flight before the detection."""
    @property
    def in_flight(self) -> int:
        """Payload bytes in flight after the detection."""
    @property
    def in_recovery(self) -> bool:
        """Whether TCP was in loss recovery before the detection; always False for the ARQ protocols."""

def manage_paths(
    policy_json: str,
    name: str,
    on_event: Callable[[str | None], object],
    set_sysctl: bool = False,
    requested_only: bool = False,
    announce: bool = False,
    seed: int = 1,
) -> None:
    """Runs a path manager for this network namespace's MPTCP connections, controlled at the socket `name`.

    It runs until `on_event` returns False or raises; that is called with each event (JSON), and often with
    None.
    """

def mptcp_support() -> str:
    """Who opens subflows here: "user", "kernel", "kernel-only" (no choice), "disabled" or "missing"."""

def mptcp_subflows(descriptor: int) -> str | None:
    """The `token` and `subflows` of a socket's connection as JSON; None where it is plain TCP."""

def ping(options_json: str, on_progress: Callable[[str], object]) -> str:
    """Measures round trips to a host; returns JSON with `columns` and all `samples`.

    `on_progress` is called about ten times a second (JSON: `sent`, `answered`, `last_s`, `size`). Ctrl-C
    stops it with the samples so far; then `interrupted` is true.
    """

def transact(options_json: str, on_progress: Callable[[str], object]) -> str:
    """Measures transactions with an echo server; arguments and result as for `ping`."""

def echo(options_json: str, on_progress: Callable[[str], object]) -> str:
    """Serves round trips and transactions until `on_progress` raises; returns counters as JSON.

    `on_progress` is first called with the address (`listening`, `note`), then ten times a second with the
    counters.
    """

class Subflow:
    """A usable subflow of a Multipath TCP connection. Times in seconds, sizes in bytes of payload."""

    def __init__(
        self,
        *,
        number: int,
        path: int = 0,
        srtt: float = 0.0,
        rtt_variation: float = 0.0,
        base_rtt: float = 0.0,
        latest_rtt: float = 0.0,
        window: int = 0,
        in_flight: int = 0,
        queued: int = 0,
        segment: int = 1460,
        room: bool = True,
        backup: bool = False,
        timeouts: int = 0,
    ) -> None: ...
    @property
    def number(self) -> int:
        """Number in the connection."""
    @property
    def path(self) -> int:
        """Number of the path."""
    @property
    def srtt(self) -> float:
        """Smoothed RTT; 0 before the first sample."""
    @property
    def rtt_variation(self) -> float:
        """Mean deviation of the RTT."""
    @property
    def base_rtt(self) -> float:
        """Minimum RTT; 0 before the first sample."""
    @property
    def latest_rtt(self) -> float:
        """Latest RTT sample; 0 before the first."""
    @property
    def window(self) -> int:
        """Congestion window."""
    @property
    def in_flight(self) -> int:
        """Bytes in flight."""
    @property
    def queued(self) -> int:
        """Bytes assigned to it and not sent."""
    @property
    def segment(self) -> int:
        """Bytes of a full segment."""
    @property
    def room(self) -> bool:
        """Whether a full segment would leave at once: windows and pacer allow it, and its queue is empty."""
    @property
    def backup(self) -> bool:
        """Whether either end marked it as a backup."""
    @property
    def timeouts(self) -> int:
        """Consecutive timeouts without an acknowledgement."""

class DataView:
    """The data that a Multipath TCP connection has to send, in bytes."""

    def __init__(
        self, *, unsent: int, in_flight: int = 0, window: int = 0, reinjection: bool = False
    ) -> None: ...
    @property
    def unsent(self) -> int:
        """Bytes written and not scheduled."""
    @property
    def in_flight(self) -> int:
        """Bytes scheduled and not covered by a DATA_ACK."""
    @property
    def window(self) -> int:
        """Free bytes of the peer's receive window (RFC 8684, section 3.3.1)."""
    @property
    def reinjection(self) -> bool:
        """Whether the segment is a reinjection from a subflow that is not in the list."""

class HostPath:
    """A path from one host to another, over all connections of the host. Times in seconds, sizes in bytes."""

    def __init__(
        self,
        *,
        number: int,
        base_rtt: float = 0.0,
        rtt: float = 0.0,
        usual_rtt: float = 0.0,
        rate: float = 0.0,
        loss: float = 0.0,
        unfinished: int = 0,
        acknowledged: int = 0,
        lost: int = 0,
        subflows: int = 0,
    ) -> None: ...
    @property
    def number(self) -> int:
        """Number of the path, from 0."""
    @property
    def base_rtt(self) -> float:
        """RTT without queues: configured, or the smallest sample; 0 if unknown."""
    @property
    def rtt(self) -> float:
        """Latest RTT sample of the host; `base_rtt` before the first."""
    @property
    def usual_rtt(self) -> float:
        """Average RTT that includes queues but hardly the delays of ACKs."""
    @property
    def rate(self) -> float:
        """Highest recent rate of acknowledgements in bit/s; 0 before the first."""
    @property
    def loss(self) -> float:
        """Recent share of lost segments, 0 to 1."""
    @property
    def unfinished(self) -> int:
        """Bytes assigned to the path and not acknowledged."""
    @property
    def acknowledged(self) -> int:
        """Total bytes acknowledged."""
    @property
    def lost(self) -> int:
        """Total segments lost."""
    @property
    def subflows(self) -> int:
        """Open subflows."""

class Host:
    """The paths from one host to another at the time of a call."""

    def __init__(self, *, paths: list[HostPath], opened: int = 0) -> None: ...
    @property
    def paths(self) -> list[HostPath]:
        """The paths in the order of their numbers."""
    @property
    def opened(self) -> int:
        """Connections opened so far, for policies that take paths in turn."""

class Join:
    """A further subflow, opened as soon as possible or after a number of acknowledged bytes or a time in s.

    Both count from the moment when the connection can have further subflows. Raises ValueError for both.
    """

    def __init__(
        self,
        path: HostPath,
        *,
        after_bytes: int | None = None,
        after_time: float | None = None,
        backup: bool = False,
    ) -> None: ...
    @property
    def path(self) -> HostPath:
        """Path of the subflow."""
    @property
    def after_bytes(self) -> int | None:
        """Acknowledged bytes after which it opens."""
    @property
    def after_time(self) -> float | None:
        """Time in s after which it opens."""
    @property
    def backup(self) -> bool:
        """Whether it is a backup."""

class Progress:
    """The progress of a Multipath TCP connection."""

    def __init__(
        self, *, acknowledged: int, backlog: int = 0, age: float = 0.0, paths: Sequence[int] = ()
    ) -> None: ...
    @property
    def acknowledged(self) -> int:
        """Bytes covered by DATA_ACKs."""
    @property
    def backlog(self) -> int:
        """Bytes written and not acknowledged."""
    @property
    def age(self) -> float:
        """Time since the connection was opened, in s."""
    @property
    def paths(self) -> list[int]:
        """Numbers of the paths with an open or planned subflow."""

class Packet:
    """A packet in a queue. Times in seconds, sizes in bytes on the wire."""

    def __init__(
        self,
        *,
        number: int,
        size: int = 1500,
        since: float = 0.0,
        route: int = 0,
        flow: int = 0,
        ecn: bool = False,
        scalable: bool = False,
    ) -> None: ...
    @property
    def number(self) -> int:
        """Number of the packet at this queue, from 0."""
    @property
    def size(self) -> int:
        """Bytes on the wire."""
    @property
    def since(self) -> float:
        """Time of joining the queue."""
    @property
    def route(self) -> int:
        """Number of the route; flows are distinguished by `route` and `flow`."""
    @property
    def flow(self) -> int:
        """Number of the flow on its route."""
    @property
    def ecn(self) -> bool:
        """Whether the packet is ECN-capable."""
    @property
    def scalable(self) -> bool:
        """Whether the ECN code point is ECT(1) or CE: a packet of a scalable flow (RFC 9331)."""

class Arrival:
    """The arrival of a packet at a queue."""

    def __init__(
        self,
        *,
        now: float,
        packet: Packet,
        packets: int = 0,
        bytes: int = 0,  # noqa: A002 - as the facts are called
        fits: bool = True,
        free_at: float = 0.0,
    ) -> None: ...
    @property
    def now(self) -> float:
        """Time of the arrival."""
    @property
    def packet(self) -> Packet:
        """The arriving packet."""
    @property
    def packets(self) -> int:
        """Packets in the queue, the one in transmission included and the arriving one not."""
    @property
    def bytes(self) -> int:
        """Bytes of these packets."""
    @property
    def fits(self) -> bool:
        """Whether the queue with the arriving packet stays within its limit."""
    @property
    def free_at(self) -> float:
        """End of the current transmission, or of the last one if the link is idle."""
