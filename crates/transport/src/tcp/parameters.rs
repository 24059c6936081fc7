//! Settings of a connection with the defaults of its profile.

use std::cell::RefCell;
use std::sync::Arc;

use foundation::{Duration, Ecn, Size};

use super::config::{Profile, Recovery, TcpConfig};
use super::ecn_mode::{EcnMode, EcnOption};
use super::options::timestamps_room;
use crate::congestion::MarkUse;

/// Settings of a connection with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    pub(super) profile: Profile,
    /// Value of the MSS option.
    pub(super) mss: u32,
    pub(super) recovery: Recovery,
    pub(super) sack: bool,
    pub(super) dsack: bool,
    pub(super) timestamps: bool,
    pub(super) window_scaling: bool,
    /// ECN to request, and the most accurate to accept.
    pub(super) ecn_request: EcnMode,
    pub(super) ecn_accept: EcnMode,
    /// Echo the mark of each segment (RFC 8257, section 3.2).
    pub(super) exact_echo: bool,
    pub(super) ecn_option: EcnOption,
    /// Whether a handshake with impossible code points ends the use of ECN.
    pub(super) ecn_fallback: bool,
    /// Code point of ECN-capable segments with accurate feedback.
    pub(super) ect: Ecn,
    pub(super) min_rto: Duration,
    pub(super) max_rto: Duration,
    pub(super) initial_rto: Duration,
    pub(super) delayed_ack: Duration,
    /// Whether the ACK delay adapts to the gaps between segments.
    pub(super) adaptive_delay: bool,
    pub(super) ack_every: u16,
    pub(super) quick_acks: bool,
    pub(super) sack_compression: bool,
    pub(super) nagle: bool,
    /// Bytes of memory of the send and receive buffers, and per segment in addition to its payload.
    pub(super) send_buffer: u64,
    pub(super) receive_buffer: u64,
    pub(super) send_overhead: u64,
    pub(super) receive_overhead: u64,
    /// Whether the buffers grow to those sizes on demand.
    pub(super) send_autotuning: bool,
    pub(super) receive_autotuning: bool,
    pub(super) initial_receive_window: u64,
    pub(super) time_wait: Duration,
    pub(super) fin_timeout: Option<Duration>,
    pub(super) user_timeout: Duration,
    pub(super) syn_retries: u32,
    /// Minimum interval between challenge ACKs.
    pub(super) challenge_interval: Duration,
    pub(super) keep_alive: Option<Duration>,
    pub(super) slow_start_after_idle: bool,
    pub(super) tail_loss_probe: bool,
    pub(super) limited_transmit: bool,
    pub(super) frto: bool,
    pub(super) prr: bool,
    pub(super) undo: bool,
    pub(super) reserved: ReservedOptions,
}

/// Bytes of header options that the caller adds to segments, for which the connection leaves room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReservedOptions {
    /// In segments with payload.
    pub data: u32,
    /// In segments without payload.
    pub bare: u32,
}

/// Number of different settings that [`Parameters::shared`] remembers.
const SHARED: usize = 4;

thread_local! {
    /// The last different settings, so that connections with the same ones share a copy.
    static RECENT: RefCell<[Option<Arc<Parameters>>; SHARED]> = const { RefCell::new([const { None }; SHARED]) };
}

impl Parameters {
    /// Returns a copy that connections with the same settings share.
    pub(super) fn shared(self) -> Arc<Self> {
        RECENT.with_borrow_mut(|recent| {
            let known = recent.iter().flatten().find(|known| ***known == self);
            if let Some(known) = known {
                return Arc::clone(known);
            }
            let new = Arc::new(self);
            recent.rotate_right(1);
            recent[0] = Some(Arc::clone(&new));
            new
        })
    }

    /// Returns the minimum RTO and the initial RTO.
    #[must_use]
    pub const fn timeouts(&self) -> (Duration, Duration) {
        (self.min_rto, self.initial_rto)
    }

    /// Returns the send buffer and the receive buffer in bytes.
    #[must_use]
    pub const fn buffers(&self) -> (u64, u64) {
        (self.send_buffer, self.receive_buffer)
    }

    /// Returns the window advertised first, in bytes.
    #[must_use]
    pub const fn first_window(&self) -> u64 {
        self.initial_receive_window
    }

    /// Returns the largest sustained number of unacknowledged bytes that the buffers allow. Linux wakes a writer when a third
    /// of the send buffer is free, so that two thirds are in use.
    #[must_use]
    pub fn largest_window(&self) -> u64 {
        let options = timestamps_room(self.timestamps);
        let segment = u128::from(self.mss.saturating_sub(options).max(1));
        let payload =
            |memory: u64, overhead: u64| u128::from(memory) * segment / (segment + u128::from(overhead));
        let sent = payload(self.send_buffer, self.send_overhead);
        let used = if self.is_linux() { sent * 2 / 3 } else { sent };
        let least = used.min(payload(self.receive_buffer, self.receive_overhead));
        u64::try_from(least).unwrap_or(u64::MAX)
    }

    /// Returns the RTO of a flow with nearly constant round trips (RFC 6298, section 2): the larger of the round trip and the
    /// minimum RTO; for Linux, their sum.
    #[must_use]
    pub fn steady_timeout(&self, round_trip: Duration) -> Duration {
        if self.is_linux() {
            return round_trip + self.min_rto;
        }
        round_trip.max(self.min_rto)
    }

    /// Whether the connection follows Linux where Linux differs from the RFCs.
    #[inline]
    pub(super) const fn is_linux(&self) -> bool {
        matches!(self.profile, Profile::Linux)
    }
}

/// Linux: 15 retransmissions with back-off from 200 ms to 120 s.
const LINUX_USER_TIMEOUT: Duration = Duration::from_millis(924_600);

/// Linux 6.18 on a 64-bit machine with one segment per buffer (no segmentation offload), from `ss -m`: 1448 bytes of payload
/// take 2280 bytes to send (`tcp_stream_alloc_skb`), and 2304 on arrival at a TUN device.
const LINUX_SEND_OVERHEAD: u64 = 832;
const LINUX_RECEIVE_OVERHEAD: u64 = 856;

impl TcpConfig {
    /// Returns every setting, with the profile's defaults.
    #[must_use]
    pub fn parameters(&self) -> Parameters {
        let linux = self.profile == Profile::Linux;
        let ns3 = self.profile == Profile::Ns3;
        let by_profile = |linux: u64, rfc: u64, ns3: u64| match self.profile {
            Profile::Linux => linux,
            Profile::Rfc => rfc,
            Profile::Ns3 => ns3,
        };
        let ms = |given: Option<Duration>, default: u64| given.unwrap_or(Duration::from_millis(default));
        let bytes = |given: Option<Size>, default: u64| given.map_or(default, Size::bytes);
        let sack = self.sack.unwrap_or(true);
        let recovery = self.recovery.unwrap_or(match (linux, sack) {
            (true, _) => Recovery::RackTlp,
            (_, true) => Recovery::Sack,
            (_, false) => Recovery::Newreno,
        });
        let mark_use = self.congestion().mark_use();
        let ecn = self.ecn.or(match mark_use {
            MarkUse::Signal => None,
            MarkUse::Count => Some(EcnMode::Dctcp),
            MarkUse::Scalable => Some(EcnMode::Accurate),
        });
        let receive_buffer = bytes(self.receive_buffer, by_profile(6 << 20, 1 << 20, 128 << 10));
        let receive_overhead = bytes(self.receive_overhead, by_profile(LINUX_RECEIVE_OVERHEAD, 0, 0));
        Parameters {
            profile: self.profile,
            mss: u32::try_from(self.mss().bytes()).unwrap_or(u32::MAX),
            recovery,
            sack,
            dsack: self.dsack.unwrap_or(!ns3),
            timestamps: self.timestamps.unwrap_or(true),
            window_scaling: self.window_scaling.unwrap_or(true),
            ecn_request: ecn.unwrap_or(EcnMode::Off),
            ecn_accept: self.ecn_accept.or(ecn).unwrap_or(if linux {
                EcnMode::Classic
            } else {
                EcnMode::Off
            }),
            exact_echo: ecn == Some(EcnMode::Dctcp),
            ecn_option: self.ecn_option.unwrap_or(EcnOption::Full),
            ecn_fallback: self.ecn_fallback.unwrap_or(true),
            ect: if mark_use == MarkUse::Scalable {
                Ecn::Ect1
            } else {
                Ecn::Ect0
            },
            // RFC 6298, section 2.4: 1 s. In Linux, 200 ms is the minimum of the variance term.
            min_rto: ms(self.min_rto, by_profile(200, 1000, 1000)),
            max_rto: ms(self.max_rto, by_profile(120_000, 60_000, 60_000)),
            initial_rto: ms(self.initial_rto, 1000),
            delayed_ack: ms(self.delayed_ack, by_profile(40, 200, 200)),
            adaptive_delay: linux && self.delayed_ack.is_none(),
            ack_every: self.ack_every.unwrap_or(2),
            quick_acks: self.quick_acks.unwrap_or(linux),
            sack_compression: self.sack_compression,
            nagle: self.nagle.unwrap_or(!ns3),
            send_buffer: bytes(self.send_buffer, by_profile(4 << 20, 1 << 20, 128 << 10)),
            receive_buffer,
            send_overhead: bytes(self.send_overhead, by_profile(LINUX_SEND_OVERHEAD, 0, 0)),
            receive_overhead,
            send_autotuning: self.send_autotuning.unwrap_or(linux),
            receive_autotuning: self.receive_autotuning.unwrap_or(linux),
            initial_receive_window: match self.initial_receive_window {
                Some(window) => window.bytes(),
                None if linux && receive_overhead > 0 => (receive_buffer / 2).min(65_536),
                None if linux => receive_buffer.min(65_536),
                None => receive_buffer,
            },
            // RFC 9293, section 3.4.2: MSL is two minutes.
            time_wait: ms(self.time_wait, by_profile(60_000, 240_000, 240_000)),
            fin_timeout: self
                .fin_timeout
                .or_else(|| linux.then(|| Duration::from_secs(60))),
            // RFC 9293, section 3.9.1: five minutes. ns-3: six retransmissions from 1 s.
            user_timeout: self.user_timeout.unwrap_or(match self.profile {
                Profile::Linux => LINUX_USER_TIMEOUT,
                Profile::Rfc => Duration::from_secs(300),
                Profile::Ns3 => Duration::from_secs(127),
            }),
            syn_retries: self.syn_retries.unwrap_or(6),
            // RFC 5961, section 7; value of Linux.
            challenge_interval: Duration::from_millis(500),
            keep_alive: self.keep_alive,
            slow_start_after_idle: self.slow_start_after_idle.unwrap_or(!ns3),
            tail_loss_probe: sack && recovery == Recovery::RackTlp && self.tail_loss_probe.unwrap_or(linux),
            limited_transmit: self.limited_transmit.unwrap_or(true),
            frto: self.frto.unwrap_or(linux),
            prr: self.prr.unwrap_or(self.profile != Profile::Rfc),
            undo: self.undo.unwrap_or(linux),
            reserved: ReservedOptions::default(),
        }
    }
}
