//! The keys of a protocol with `kind = "tcp"`.

use std::sync::LazyLock;

use foundation::{Duration, Size, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ecn_mode::{EcnMode, EcnOption};
use crate::congestion::{CongestionConfig, Rules};
use crate::path_choice::PathChoice;

/// The only value of `kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpKind {
    /// The Transmission Control Protocol (RFC 9293).
    #[default]
    Tcp,
}

/// TCP stack whose constants and behaviour a connection follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Current Linux kernels with their default settings.
    #[default]
    Linux,
    /// The RFCs, with the values they recommend.
    Rfc,
    /// The TCP of ns-3, for comparisons with it.
    Ns3,
}

impl Profile {
    /// Returns the rules of controllers that set none themselves.
    #[must_use]
    pub const fn rules(self) -> Rules {
        match self {
            Self::Linux => Rules::Linux,
            Self::Rfc => Rules::Rfc,
            Self::Ns3 => Rules::Ns3,
        }
    }
}

/// Loss detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time: a segment is lost if one sent well after it has arrived (RFC 8985). Without SACK, as `newreno`.
    RackTlp,
    /// By counting selectively acknowledged segments above a gap (RFC 6675). Without SACK, as `newreno`.
    Sack,
    /// By counting duplicate ACKs (RFC 6582), even where SACK is in use.
    Newreno,
}

/// TCP implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// The kernel of each host.
    Kernel,
    /// This project's own.
    Longfat,
}

omit_unset! {
    /// TCP and its settings. Every key but `kind` is optional; its default comes from the profile.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct TcpConfig {
        /// Always "tcp".
        pub kind: TcpKind,
        /// TCP implementation at the hosts in world netns: "kernel", or "longfat" for this project's own, which accepts every key and controller. World sim always runs longfat. Default: netns "kernel".
        pub stack: Option<StackKind>,
        /// Path of a connection where several exist: first, random, round-robin or least-rtt (by the latest measurement). Default: "first".
        pub path: Option<PathChoice>,
        /// Constants and behaviour to follow: linux, rfc or ns3. Default: "linux".
        #[serde(default)]
        pub profile: Profile,
        /// Congestion controller; follows the profile's rules unless it sets its own. Default: linux "cubic", rfc and ns3 "reno".
        pub congestion: Option<CongestionConfig>,
        /// Initial congestion window in packets. Default: 10 (RFC 6928), or the controller's own key.
        #[schemars(range(min = 1, max = 1_000_000))]
        pub initial_window: Option<u32>,
        /// Announced maximum segment size: payload and options, so timestamps take 12 bytes of it. Default: "1460B".
        pub mss: Option<Size>,
        /// Loss detection: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack".
        pub recovery: Option<Recovery>,
        /// Offer selective acknowledgements (RFC 2018). Default: true.
        pub sack: Option<bool>,
        /// Report duplicates in SACK blocks (RFC 2883). Default: true, ns3 false.
        pub dsack: Option<bool>,
        /// Offer timestamps (RFC 7323). Default: true.
        pub timestamps: Option<bool>,
        /// Offer window scaling (RFC 7323). Default: true.
        pub window_scaling: Option<bool>,
        /// Explicit congestion notification: true (RFC 3168), false, "dctcp", whose ACKs echo the mark of each segment (RFC 8257, section 3.2), or "accecn", whose ACKs count marks (RFC 9768). Default: "dctcp" with congestion = "dctcp"; otherwise false, but linux accepts a request.
        pub ecn: Option<EcnMode>,
        /// The most accurate feedback that a server agrees to, if it differs from what a client requests (`ecn`). Default: as ecn.
        pub ecn_accept: Option<EcnMode>,
        /// With "accecn": segments with the AccECN option, which counts marked bytes: full (all segments), minimum (changes, and three per round trip) or off. Default: "full" (Linux).
        pub ecn_option: Option<EcnOption>,
        /// With "accecn": stop using ECN if the handshake shows that the path changes code points in a way that no queue does (RFC 9768, section 3.2.2.3). Default: true.
        pub ecn_fallback: Option<bool>,
        /// Minimum RTO; with profile linux, the minimum margin of the RTO above SRTT. With rfc and ns3, a minimum below 1 ms is the clock granularity, too (G of RFC 6298). Default: linux "200ms", rfc and ns3 "1s".
        pub min_rto: Option<Duration>,
        /// Maximum RTO. Default: linux "120s", rfc and ns3 "60s".
        pub max_rto: Option<Duration>,
        /// RTO before the first RTT sample. Default: "1s".
        pub initial_rto: Option<Duration>,
        /// ACK delay, at most "500ms"; "0ms" sends each ACK at once. Default: linux "40ms" adapting up to "200ms", rfc and ns3 "200ms".
        pub delayed_ack: Option<Duration>,
        /// Number of full segments that triggers an ACK at once. Default: 2.
        #[schemars(range(min = 1, max = 64))]
        pub ack_every: Option<u16>,
        /// Acknowledge the first segments of a connection at once. Default: linux true, else false.
        pub quick_acks: Option<bool>,
        /// Delay ACKs of data above a gap as Linux does: after three, by 5 % of the round trip, at most 1 ms and 44 segments. It matters to controllers that act per ACK, such as prague. Default: false.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub sack_compression: bool,
        /// Delay a small segment while another small one is unacknowledged (Minshall's variant of Nagle's algorithm, as in Linux), with profile rfc while any data is. Default: true, ns3 false.
        pub nagle: Option<bool>,
        /// Memory for unacknowledged and unsent data, overhead included. Default: linux "4MiB" (tcp_wmem), rfc "1MiB", ns3 "128KiB".
        pub send_buffer: Option<Size>,
        /// Memory per segment in the send buffer in addition to its payload. Default: linux "832B" (no segmentation offload), else "0B".
        pub send_overhead: Option<Size>,
        /// Grow the send buffer with the congestion window, up to send_buffer; otherwise all of it is available from the start. Default: linux true, else false.
        pub send_autotuning: Option<bool>,
        /// Memory for received data, overhead included, below "1GiB"; it limits the advertised window. Default: linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB".
        pub receive_buffer: Option<Size>,
        /// Memory per segment in the receive buffer in addition to its payload. Default: linux "856B", else "0B".
        pub receive_overhead: Option<Size>,
        /// Grow the receive buffer with the data read per round trip, from twice the initial window up to receive_buffer; otherwise all of it is available from the start, as with the shared window of multipath TCP. Default: linux true, else false.
        pub receive_autotuning: Option<bool>,
        /// Window that the receiver advertises first; each arriving segment then raises it by two segments, up to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer.
        pub initial_receive_window: Option<Size>,
        /// Duration of TIME-WAIT. Default: linux "60s", rfc and ns3 "240s".
        pub time_wait: Option<Duration>,
        /// Time limit of a closed connection in FIN-WAIT-2. Default: linux "60s", else unlimited.
        pub fin_timeout: Option<Duration>,
        /// Time without an acknowledgement after which the connection fails. Default: linux "924.6s", rfc "300s", ns3 "127s".
        pub user_timeout: Option<Duration>,
        /// Maximum retransmissions of a SYN; profile linux adds four before back-off starts. Default: 6.
        #[schemars(range(max = 127))]
        pub syn_retries: Option<u32>,
        /// Idle time before keep-alive probes; the connection fails after nine unanswered probes 75 s apart. Default: never.
        pub keep_alive: Option<Duration>,
        /// Reduce the congestion window after an idle period (RFC 5681, section 4.1). Default: true, ns3 false.
        pub slow_start_after_idle: Option<bool>,
        /// Send tail loss probes (RFC 8985, section 7). Default: linux true, else false.
        pub tail_loss_probe: Option<bool>,
        /// Send new data on the first duplicate ACKs (RFC 3042). Default: true.
        pub limited_transmit: Option<bool>,
        /// Detect spurious timeouts (F-RTO, RFC 5682). Default: linux true, else false.
        pub frto: Option<bool>,
        /// Proportional rate reduction during recovery (RFC 6937). Default: true, rfc false.
        pub prr: Option<bool>,
        /// TCP Fast Open (RFC 7413): a client with a cookie sends data with its SYN, and a server issues cookies. Default: false.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub fast_open: bool,
        /// T/TCP (RFC 1644; historic and open to forgery): a complete transaction takes three segments between hosts that have cached each other's connection count. Default: false.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub ttcp: bool,
        /// Undo a window reduction that proves spurious (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true, else false.
        pub undo: Option<bool>,
    }
}

impl TcpConfig {
    /// Keys that running connections take over ([`Connection::reconfigure`](super::Connection::reconfigure)).
    pub const LIVE_KEYS: [&'static str; 4] = ["congestion", "min_rto", "delayed_ack", "ack_every"];

    /// Returns TCP with the profile's default for every key.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// Returns the announced maximum segment size.
    #[must_use]
    pub fn mss(&self) -> Size {
        self.mss.unwrap_or(Size::from_bytes(1460))
    }

    /// Returns the settings of the congestion controller.
    #[must_use]
    pub fn congestion(&self) -> &CongestionConfig {
        self.congestion.as_ref().unwrap_or_else(|| match self.profile {
            Profile::Linux => &DEFAULTS[0],
            Profile::Rfc | Profile::Ns3 => &DEFAULTS[1],
        })
    }
}

/// Default controllers of the profiles, parsed once rather than per connection.
static DEFAULTS: LazyLock<[CongestionConfig; 2]> =
    LazyLock::new(|| ["cubic", "reno"].map(|name| CongestionConfig::named(name).unwrap_or_default()));
