//! The keys of a protocol with `kind = "quic"`.

use foundation::{Duration, Problem, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use transport::mptcp::PolicyConfig;

use crate::{ControllerChoice, PathScheduler};

/// The only value of `kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuicKind {
    /// QUIC (RFC 9000).
    #[default]
    Quic,
}

/// What changes when a client moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MigrationTarget {
    /// The port.
    Port,
    /// The address.
    #[default]
    Address,
    /// The path between the hosts, and the address.
    Path,
}

/// Most moves of a client.
const MOST_MOVES: usize = 1000;

omit_unset! {
    /// QUIC and its settings. Every key but `kind` is optional.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct QuicConfig {
        /// Protocol "quic": QUIC (RFC 9000) with one stream per flow.
        pub kind: QuicKind,
        /// Congestion controller: one of this project's with Linux's rules, or the QUIC library's own, quic-cubic or quic-reno. Default: "cubic".
        pub congestion: Option<ControllerChoice>,
        /// Initial congestion window in packets of max_datagram_size, or of 1200 bytes with mtu_discovery. Default: 10 (RFC 9002, section 7.2), or the controller's own key.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub initial_window: Option<u32>,
        /// Largest UDP payload that a host sends, from "1200B" to "65507B". Default: "1472B", which fills the MTU of Ethernet over IPv4.
        pub max_datagram_size: Option<Size>,
        /// Start with UDP payloads of 1200 bytes and search for the MTU of the path up to max_datagram_size (RFC 8899); otherwise send max_datagram_size at once. This project's controllers count in packets of 1200 bytes throughout the search. Default: false.
        pub mtu_discovery: Option<bool>,
        /// Certificate chain of the server, which takes part of its limit of three times the client's bytes before the client's address is validated, from "100B" to "12kB". Default: "3kB".
        pub certificate_chain: Option<Size>,
        /// Flow-control window of a stream and of the connection, from "16KiB" to "1984KiB", what TCP carries with Linux's default buffers, or to the payload of 1412 full packets if that is less ("1647804B" with max_datagram_size "1200B" or mtu_discovery), because the library fails connections with too many parts of a stream in its buffer. Default: the maximum.
        pub receive_window: Option<Size>,
        /// Send real-time frames in DATAGRAM frames (RFC 9221), which are not retransmitted; otherwise each frame on a stream of its own. Only with workloads of kind frames. Default: false.
        pub datagrams: Option<bool>,
        /// Send data of all streams in turns, a packet each; otherwise the data of a stream before that of later ones (RFC 9218, section 10). Default: false.
        pub fair_streams: Option<bool>,
        /// Memory for unacknowledged and unsent data; of DATAGRAM frames, for unsent ones, of which the oldest are dropped first. From "16KiB" to "1GiB". Default: "6MiB".
        pub send_window: Option<Size>,
        /// Explicit congestion notification with ECT(0). Default: true.
        pub ecn: Option<bool>,
        /// Later packets that arrived before a packet counts as lost (RFC 9002, section 6.1.1). Default: 3.
        #[schemars(range(min = 3, max = MOST_THRESHOLD))]
        pub packet_threshold: Option<u32>,
        /// Packets per acknowledgement that a host requests of its peer with an ACK_FREQUENCY frame (draft-ietf-quic-ack-frequency). Default: no request, which gives 2 (RFC 9000, section 13.2.2).
        #[schemars(range(min = 1, max = 1000))]
        pub ack_every: Option<u32>,
        /// Longest delay of an acknowledgement that a host requests of its peer, from "1ms" to "10s", with a limit of the library: at most 25 ms or the round-trip time, whichever is longer. Default: "25ms" (RFC 9000, section 18.2).
        pub ack_delay: Option<Duration>,
        /// Reordering after which a host requests an immediate acknowledgement of its peer: distance in packets between the largest one received and the smallest missing one not reported yet; 0: none for reordered packets. Default: 1, each packet out of order (RFC 9000, section 13.2.1).
        #[schemars(range(max = 1000))]
        pub ack_reordering: Option<u32>,
        /// Send the first request of a client's later connections to a server with the first flight (0-RTT: RFC 9001, section 4.6); each connection gets a ticket, which serves one later connection. Default: false.
        pub zero_rtt: Option<bool>,
        /// Round-trip time before the first sample, from "1ms" to "10s" (RFC 9002, section 6.2.2). Default: "333ms".
        pub initial_rtt: Option<Duration>,
        /// Time without packets from the peer after which the connection fails, from "1s" to "1d". Default: "30s".
        pub idle_timeout: Option<Duration>,
        /// Times after the opening of a connection at which the client moves to migrate_to (RFC 9000, section 9), in order, at the earliest when the handshake is confirmed. Packets to its earlier address are lost. Default: none.
        pub migrate: Option<Vec<Duration>>,
        /// With migrate: what changes: port, address, or path: the next path between the hosts with its own address. Worlds other than sim need port or path. Default: "address".
        pub migrate_to: Option<MigrationTarget>,
        /// Use several paths at once (draft-ietf-quic-multipath): each path between the hosts that the policy selects. Worlds sim and netns. Default: false.
        pub multipath: Option<bool>,
        /// With multipath: maximum number of paths of a connection at once. Default: 64.
        #[schemars(range(min = 1, max = 64))]
        pub subflows: Option<u32>,
        /// With multipath: path policy, which selects paths and when they open: all, single, fsfs, delayed, in-kernel, or one in Python. Default: "all".
        pub policy: Option<PolicyConfig>,
        /// With multipath: packet scheduler, which selects the path of each packet with data: min-rtt, round-robin, ecf, blest, one in Python, or the QUIC library's own, quic-first. Default: "min-rtt", with a controller of the library "quic-first".
        pub scheduler: Option<PathScheduler>,
        /// With multipath: time without packets from the peer on a path after which it is closed, from "100ms" to "1h", but at least three probe timeouts; both ends send a PING on each path three times as often. Default: "3s".
        pub path_timeout: Option<Duration>,
        /// With multipath: update the keys when the handshake is confirmed, and open further paths after the peer's update, one round trip later. Otherwise the library updates them after 10 to 1000 packets, and the receiver drops those that the update overtakes on another path. Default: false.
        pub early_key_update: Option<bool>,
    }
}

/// The smallest UDP payload that a path must carry (RFC 9000, section 14).
pub(crate) const LEAST_DATAGRAM: u64 = 1200;
/// The largest `packet_threshold`.
pub(crate) const MOST_THRESHOLD: u32 = 1000;
const LEAST_WINDOW: u64 = 16 << 10;
/// Full packets of a stream that may wait for an earlier one: as many as carry [`MOST_WINDOW`] with 1472 bytes each. The library
/// compacts the buffer of a stream with more than 2048 parts, and closes the connection if more than 1024 remain. Compacting does
/// not merge a full packet with its neighbours, and a retransmission that is spread over two packets adds a part.
const MOST_WAITING: u64 = 1412;
/// The largest flow-control window in bytes. Larger packets allow no larger one: with 9000 bytes, transfers with 3 MiB fail at a
/// loss of 40 %.
const MOST_WINDOW: u64 = 1984 << 10;

impl QuicConfig {
    /// Returns the controller.
    #[must_use]
    pub fn congestion(&self) -> ControllerChoice {
        self.congestion.clone().unwrap_or_default()
    }

    /// Returns the largest UDP payload in bytes.
    #[must_use]
    pub fn max_datagram_size(&self) -> u16 {
        let bytes = self.max_datagram_size.map_or(1472, Size::bytes);
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// Returns whether the connection searches for the MTU of the path.
    #[must_use]
    pub fn discovers_mtu(&self) -> bool {
        self.mtu_discovery == Some(true)
    }

    /// Returns the size of full UDP payloads when the connection starts, in bytes: the segment of this project's controllers.
    #[must_use]
    pub fn first_datagram_size(&self) -> u16 {
        if self.discovers_mtu() {
            LEAST_DATAGRAM as u16
        } else {
            self.max_datagram_size()
        }
    }

    /// Returns the bytes of a full packet that are not payload of a stream, in a short header with a packet number of two bytes:
    /// flags, connection ID, number, tag, and the header of a STREAM frame without length with an offset of four bytes.
    #[must_use]
    pub const fn overhead() -> u32 {
        (1 + crate::CONNECTION_ID + 2 + crate::TAG + 1 + 1 + 4) as u32
    }

    /// Returns the payload bytes of a stream in a full packet.
    #[must_use]
    pub fn segment(&self) -> u64 {
        u64::from(self.max_datagram_size()) - u64::from(Self::overhead())
    }

    /// Returns the flow-control window in bytes.
    #[must_use]
    pub fn receive_window(&self) -> u64 {
        self.receive_window
            .map_or_else(|| self.most_window(), Size::bytes)
    }

    /// Returns the largest flow-control window with packets of the size at the start, in bytes.
    fn most_window(&self) -> u64 {
        let datagram = u64::from(self.first_datagram_size()).max(LEAST_DATAGRAM);
        MOST_WINDOW.min(MOST_WAITING * (datagram - u64::from(Self::overhead())))
    }

    /// Returns the size of the send buffer in bytes.
    #[must_use]
    pub fn send_window(&self) -> u64 {
        self.send_window.map_or(6 << 20, Size::bytes)
    }

    /// Returns the time without packets from the peer after which the connection fails.
    #[must_use]
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout.unwrap_or(Duration::from_secs(30))
    }

    /// Returns the bytes of the certificate chain.
    #[must_use]
    pub fn certificate_chain(&self) -> usize {
        self.certificate_chain.map_or(3000, Size::bytes) as usize
    }

    /// Whether the client moves between the paths of its host.
    #[must_use]
    pub fn changes_path(&self) -> bool {
        self.migrate.is_some() && self.migrate_to == Some(MigrationTarget::Path)
    }

    /// Returns the problem of the keys of a client that moves.
    fn migration_problem(&self) -> Option<Problem> {
        let Some(times) = &self.migrate else {
            let message = "has no effect without moves: set migrate";
            return self.migrate_to.map(|_| Problem::new("migrate_to", message));
        };
        if self.multipath == Some(true) {
            let message = "moves a connection with one path: remove multipath";
            return Some(Problem::new("migrate", message));
        }
        let is_ordered = times.is_sorted_by(|before, after| before < after);
        let is_valid = is_ordered && (1..=MOST_MOVES).contains(&times.len());
        let message = format!("needs 1 to {MOST_MOVES} times in ascending order");
        (!is_valid).then(|| Problem::new("migrate", message))
    }

    /// Returns the keys that are out of range.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let size = |key, size: Option<Size>, range: std::ops::RangeInclusive<u64>, allowed: &str| {
            let size = size?;
            Problem::range(
                key,
                format_args!("\"{size}\""),
                range.contains(&size.bytes()),
                allowed,
            )
        };
        let time = |key, time: Option<Duration>, least: Duration, most: Duration| {
            let time = time?;
            let allowed = format!("\"{least}\" to \"{most}\"");
            Problem::range(
                key,
                format_args!("\"{time}\""),
                (least..=most).contains(&time),
                &allowed,
            )
        };
        let most = self.most_window();
        let windows = format!(
            "\"16KiB\" to \"{most}B\" with packets of {} bytes",
            self.first_datagram_size()
        );
        let mut problems: Vec<Problem> = self
            .congestion
            .iter()
            .flat_map(ControllerChoice::validate)
            .map(|problem| problem.within("congestion"))
            .collect();
        let packets = self.initial_window.unwrap_or(10);
        let valid = (1..=1_000_000).contains(&packets);
        problems.extend(Problem::range(
            "initial_window",
            packets,
            valid,
            "1 to 1000000 packets",
        ));
        let threshold = self.packet_threshold.unwrap_or(3);
        let valid = (3..=MOST_THRESHOLD).contains(&threshold);
        let allowed = format!("3 to {MOST_THRESHOLD}");
        problems.extend(Problem::range("packet_threshold", threshold, valid, &allowed));
        let every = self.ack_every.unwrap_or(2);
        let valid = (1..=1000).contains(&every);
        problems.extend(Problem::range("ack_every", every, valid, "1 to 1000 packets"));
        let reordering = self.ack_reordering.unwrap_or(1);
        let valid = reordering <= 1000;
        problems.extend(Problem::range("ack_reordering", reordering, valid, "0 to 1000"));
        let others = [
            size(
                "max_datagram_size",
                self.max_datagram_size,
                LEAST_DATAGRAM..=65_507,
                "\"1200B\" to \"65507B\"",
            ),
            size(
                "certificate_chain",
                self.certificate_chain,
                100..=12_000,
                "\"100B\" to \"12kB\"",
            ),
            size(
                "receive_window",
                self.receive_window,
                LEAST_WINDOW..=most,
                &windows,
            ),
            size(
                "send_window",
                self.send_window,
                LEAST_WINDOW..=1 << 30,
                "\"16KiB\" to \"1GiB\"",
            ),
            time(
                "ack_delay",
                self.ack_delay,
                Duration::from_millis(1),
                Duration::from_secs(10),
            ),
            time(
                "initial_rtt",
                self.initial_rtt,
                Duration::from_millis(1),
                Duration::from_secs(10),
            ),
            time(
                "idle_timeout",
                self.idle_timeout,
                Duration::from_secs(1),
                Duration::from_secs(86_400),
            ),
        ];
        problems.extend(others.into_iter().flatten());
        problems.extend(self.path_problems());
        problems.extend(self.migration_problem());
        if self.discovers_mtu() && u64::from(self.max_datagram_size()) == LEAST_DATAGRAM {
            let message =
                "true has nothing to find up to max_datagram_size = \"1200B\": remove one of the two";
            problems.push(Problem::new("mtu_discovery", message));
        }
        if self.datagrams == Some(true) && self.fair_streams.is_some() {
            let message = "true has no streams: remove fair_streams";
            problems.push(Problem::new("datagrams", message));
        }
        if self.initial_window.is_some() && matches!(self.congestion, Some(ControllerChoice::Library(_))) {
            let message = "the QUIC library's controllers keep their own initial window: remove it";
            problems.push(Problem::new("initial_window", message));
        }
        problems
    }
}
