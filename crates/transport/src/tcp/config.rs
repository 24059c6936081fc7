//! The keys of a protocol with `kind = "tcp"`.

use foundation::{Duration, Problem, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::congestion::CongestionConfig;
use crate::path_choice::PathChoice;

/// The one word that `kind` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TcpKind {
    /// The Transmission Control Protocol (RFC 9293).
    #[default]
    Tcp,
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// By time: what was sent well before something that arrived is lost (RFC 8985). It needs SACK; without it, as `newreno`.
    RackTlp,
    /// By counting selective acknowledgements above a gap (RFC 6675). It needs SACK; without it, as `newreno`.
    Sack,
    /// By counting duplicate acknowledgements (RFC 6582), though SACK may be in use.
    Newreno,
}

/// Whose TCP it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StackKind {
    /// That of the hosts' kernels.
    Kernel,
    /// This project's, whatever the kernels have.
    Longfat,
}

/// TCP and its settings. Every key but `kind` may be left out: its default comes from the profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpConfig {
    /// Always "tcp".
    pub kind: TcpKind,
    /// Whose TCP runs at the hosts of the world netns: that of their kernels, or longfat's own, which takes every key and controller. In sim it is always longfat's. Default: netns "kernel".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<StackKind>,
    /// Which of several paths a connection takes: first, random, round-robin or least-rtt (as last seen). Default: "first".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathChoice>,
    /// Whose constants and habits: linux, rfc or ns3. Default: "linux".
    #[serde(default)]
    pub profile: Profile,
    /// The congestion controller, which counts by the profile's rules where it has no rules of its own. Default: linux "cubic", rfc and ns3 "reno".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion: Option<CongestionConfig>,
    /// Congestion window at the start, in packets. Default: 10 (RFC 6928), or what the controller's own key says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub initial_window: Option<u32>,
    /// Maximum segment size announced: payload and options, so timestamps take 12 bytes of it. Default: "1460B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss: Option<Size>,
    /// How losses are found: rack-tlp, sack or newreno. Default: linux "rack-tlp", rfc and ns3 "sack".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Offer selective acknowledgements, RFC 2018. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sack: Option<bool>,
    /// Report duplicates in SACK blocks, RFC 2883. Default: true, ns3 false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dsack: Option<bool>,
    /// Offer timestamps, RFC 7323. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Offer window scaling, RFC 7323. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_scaling: Option<bool>,
    /// Explicit congestion notification, RFC 3168: ask for it and agree to it. Default: false, but linux agrees where it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// The least retransmission timeout; under linux the least that it exceeds the smoothed round trip by. Default: linux "200ms", rfc and ns3 "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rto: Option<Duration>,
    /// The longest retransmission timeout. Default: linux "120s", rfc and ns3 "60s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rto: Option<Duration>,
    /// The retransmission timeout before the first round-trip sample. Default: "1s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_rto: Option<Duration>,
    /// How long an ACK may wait for more to acknowledge, at most "500ms"; "0ms" sends each at once. Default: linux "40ms" adapting up to "200ms", rfc and ns3 "200ms".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed_ack: Option<Duration>,
    /// Full segments after which an ACK waits no longer. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub ack_every: Option<u16>,
    /// Acknowledge the first segments of a connection at once. Default: linux true, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_acks: Option<bool>,
    /// Hold a small segment back while another is unacknowledged (Nagle's algorithm). Default: true, ns3 false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nagle: Option<bool>,
    /// Memory for what is written and not yet acknowledged, overhead included. Default: linux "4MiB" (tcp_wmem), rfc "1MiB", ns3 "128KiB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<Size>,
    /// Memory that a segment takes in the send buffer besides its payload. Default: linux "832B" (no segmentation offload), else "0B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_overhead: Option<Size>,
    /// Let the send buffer grow with the congestion window, up to send_buffer. Default: linux true, else false: all of it from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_autotuning: Option<bool>,
    /// Memory for what arrives, overhead included, below "1GiB"; it bounds the window offered. Default: linux "6MiB" (tcp_rmem), rfc "1MiB", ns3 "128KiB".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer: Option<Size>,
    /// Memory that a segment takes in the receive buffer besides its payload. Default: linux "856B", else "0B".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_overhead: Option<Size>,
    /// Let the receive buffer grow with what is read in a round trip, from twice the initial window up to receive_buffer. Default: linux true, else false: all of it from the start, as with multipath TCP's shared window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_autotuning: Option<bool>,
    /// The window that the receiver offers first; it then grows by two segments with each that arrives, up to receive_buffer. Default: linux "64KiB", rfc and ns3 all of receive_buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_receive_window: Option<Size>,
    /// How long TIME-WAIT lasts. Default: linux "60s", rfc and ns3 "240s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_wait: Option<Duration>,
    /// How long a closed connection waits in FIN-WAIT-2 for the peer's FIN. Default: linux "60s", else without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fin_timeout: Option<Duration>,
    /// Data unacknowledged for so long ends the connection. Default: linux "924.6s", rfc "300s", ns3 "127s".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_timeout: Option<Duration>,
    /// Retransmissions of a SYN before giving up. Default: 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 127))]
    pub syn_retries: Option<u32>,
    /// Probe a peer that was silent for so long; given up after nine probes 75 s apart. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive: Option<Duration>,
    /// Shrink the congestion window after a silence, RFC 5681 section 4.1. Default: true, ns3 false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_start_after_idle: Option<bool>,
    /// Probe for losses at the end of a flight, RFC 8985 section 7. Default: linux true, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_loss_probe: Option<bool>,
    /// Send new data on the first duplicate acknowledgements, RFC 3042. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_transmit: Option<bool>,
    /// Tell spurious timeouts from real ones, RFC 5682. Default: linux true, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frto: Option<bool>,
    /// Reduce the window in proportion to what arrives during recovery, RFC 6937. Default: true, rfc false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prr: Option<bool>,
    /// TCP Fast Open, RFC 7413: data leaves with the SYN, once the server has given a cookie; a server gives cookies. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast_open: bool,
    /// T/TCP, RFC 1644 (historic, and open to forgery): connections are counted, and a whole transaction takes three segments once both hosts know each other. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ttcp: bool,
    /// Take back a reduction that turns out to be needless (Eifel, RFC 4015; DSACK, RFC 3708). Default: linux true, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<bool>,
}

/// The longest that RFC 9293, section 3.8.6.3 lets an ACK wait.
const MAX_DELAYED_ACK: Duration = Duration::from_millis(500);

impl TcpConfig {
    /// TCP with this profile's default for every key.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// Everything that is wrong with these settings.
    #[must_use]
    pub fn validate(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut check = |key: &str, fine: bool, value: &dyn std::fmt::Display, allowed: &str| {
            if !fine {
                problems.push(Problem::new(key, format!("{value} is out of range: {allowed}")));
            }
        };
        let packets = self.initial_window.unwrap_or(10);
        check(
            "initial_window",
            (1..=1_000_000).contains(&packets),
            &packets,
            "1 to 1000000 packets",
        );
        // RFC 9293, section 3.7.1: an MSS option has 16 bits. With 40 bytes of options, 88 leave 48 for data.
        let mss = self.mss();
        check("mss", (88..=65_495).contains(&mss.bytes()), &mss, "88B to 65495B");
        let every = self.ack_every.unwrap_or(2);
        check("ack_every", (1..=64).contains(&every), &every, "1 to 64 segments");
        let parameters = self.parameters();
        let delay = parameters.delayed_ack;
        check("delayed_ack", delay <= MAX_DELAYED_ACK, &delay, "at most 500ms");
        let (least, most) = (parameters.min_rto, parameters.max_rto);
        check(
            "min_rto",
            !least.is_zero() && least <= most,
            &least,
            "above 0 and at most max_rto",
        );
        check(
            "max_rto",
            most <= Duration::from_secs(3600),
            &most,
            "at most 3600s",
        );
        let first = parameters.initial_rto;
        check(
            "initial_rto",
            !first.is_zero() && first <= most,
            &first,
            "above 0 and at most max_rto",
        );
        // RFC 7323, section 2.3: the window stays below 2^30.
        let buffer = Size::from_bytes(parameters.receive_buffer);
        let room = (mss.bytes().min(1460)..1 << 30).contains(&buffer.bytes());
        check("receive_buffer", room, &buffer, "one segment or more, below 1GiB");
        let first = Size::from_bytes(parameters.initial_receive_window);
        check(
            "initial_receive_window",
            first <= buffer && first.bytes() > 0,
            &first,
            "above 0B, at most receive_buffer",
        );
        for (key, bytes) in [
            ("send_overhead", parameters.send_overhead),
            ("receive_overhead", parameters.receive_overhead),
        ] {
            let overhead = Size::from_bytes(bytes);
            check(key, bytes <= 1 << 20, &overhead, "at most 1MiB");
        }
        let buffer = Size::from_bytes(parameters.send_buffer);
        check("send_buffer", buffer.bytes() > 0, &buffer, "above 0B");
        let retries = self.syn_retries.unwrap_or(6);
        check("syn_retries", retries <= 127, &retries, "at most 127");
        let timeout = parameters.user_timeout;
        check("user_timeout", !timeout.is_zero(), &timeout, "above 0");
        let idle = self.keep_alive.unwrap_or(Duration::from_secs(1));
        check("keep_alive", !idle.is_zero(), &idle, "above 0");
        if self.recovery == Some(Recovery::RackTlp) && self.sack == Some(false) {
            problems.push(Problem::new("recovery", "\"rack-tlp\" needs sack = true"));
        }
        if self.recovery == Some(Recovery::Sack) && self.sack == Some(false) {
            problems.push(Problem::new("recovery", "\"sack\" needs sack = true"));
        }
        if self.tail_loss_probe == Some(true) && parameters.recovery != Recovery::RackTlp {
            problems.push(Problem::new(
                "tail_loss_probe",
                "it needs recovery = \"rack-tlp\"",
            ));
        }
        if self.fast_open && self.ttcp {
            problems.push(Problem::new(
                "ttcp",
                "it excludes fast_open: a SYN opens in one of the two ways",
            ));
        }
        let congestion = self.congestion();
        problems.extend(congestion.validate().into_iter().map(|p| p.within("congestion")));
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> TcpConfig {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn profiles_are_sound_and_can_be_written_and_read() {
        for profile in [Profile::Linux, Profile::Rfc, Profile::Ns3] {
            let config = TcpConfig::new(profile);
            assert_eq!(config.validate(), [], "{profile:?}");
            let text = serde_json::to_string(&config).unwrap();
            assert_eq!(read(&text), config);
        }
        assert_eq!(read(r#"{"kind": "tcp"}"#), TcpConfig::new(Profile::Linux));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let problems =
            |text: &str| -> Vec<String> { read(text).validate().iter().map(Problem::to_string).collect() };
        for (text, expected) in [
            (
                r#"{"kind": "tcp", "mss": "20B"}"#,
                "mss: 20B is out of range: 88B to 65495B",
            ),
            (
                r#"{"kind": "tcp", "delayed_ack": "600ms"}"#,
                "delayed_ack: 600ms is out of range: at most 500ms",
            ),
            (
                r#"{"kind": "tcp", "min_rto": "0ms"}"#,
                "min_rto: 0ns is out of range: above 0 and at most max_rto",
            ),
            (
                r#"{"kind": "tcp", "recovery": "sack", "sack": false}"#,
                "recovery: \"sack\" needs sack = true",
            ),
            (
                r#"{"kind": "tcp", "fast_open": true, "ttcp": true}"#,
                "ttcp: it excludes fast_open",
            ),
            (
                r#"{"kind": "tcp", "ack_every": 0}"#,
                "ack_every: 0 is out of range: 1 to 64 segments",
            ),
            (
                r#"{"kind": "tcp", "initial_window": 0}"#,
                "initial_window: 0 is out of range: 1 to 1000000 packets",
            ),
        ] {
            let found = problems(text);
            assert!(found.iter().any(|p| p.starts_with(expected)), "{text}: {found:?}");
        }
        assert!(serde_json::from_str::<TcpConfig>(r#"{"kind": "tcp", "sak": true}"#).is_err());
        assert!(serde_json::from_str::<TcpConfig>(r#"{"kind": "udp"}"#).is_err());
    }
}
