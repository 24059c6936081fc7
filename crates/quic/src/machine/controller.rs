//! This project's congestion controllers behind the library's interface.
//!
//! Sizes are those of QUIC packets, as in RFC 9002. A segment is the size of full datagrams when the connection starts: the least
//! datagram if the MTU is discovered, because a controller's segment is fixed and a larger path MTU would make it too aggressive.
//! The library reports ACKs before the losses that they reveal, and controllers require losses first; so an ACK is passed on when
//! the library next reads or sends.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as StdInstant;

use foundation::{Duration, Instant};
use noq_proto::RttEstimator as LibraryRtt;
use noq_proto::congestion::{Controller as LibraryController, ControllerFactory, ControllerMetrics};
use transport::congestion::{
    Acknowledgement, CongestionConfig, ConnectionContext, Controller, Estimator, Loss, Rules, Sibling,
    Siblings, Snapshot,
};
use transport::rtt::RttEstimator;

use super::clock::from_library;
use crate::config::MOST_THRESHOLD;

/// The smallest window in datagrams, as after persistent congestion (RFC 9002, section 7.2).
const LEAST_WINDOW: u64 = 2;
/// The longest delay of an ACK (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// A packet in flight.
#[derive(Debug)]
struct Sent {
    bytes: u64,
    snapshot: Snapshot,
}

/// Packets that the current ACK acknowledges.
#[derive(Debug, Default)]
struct Batch {
    bytes: u64,
    newest_sent_at: Instant,
}

#[derive(Debug)]
struct State {
    controller: Box<dyn Controller>,
    estimator: Estimator,
    rtt: RttEstimator,
    /// By number and time: packet number spaces (RFC 9000, section 12.3) use the same numbers.
    sent: BTreeMap<(u64, Instant), Sent>,
    in_flight: u64,
    batch: Batch,
    /// An ACK that the controller has not received.
    pending: Option<Acknowledgement>,
    /// The newest of the packets that the library has just declared lost.
    lost: Option<Snapshot>,
    /// Start of the last recovery period (RFC 9002, section 7.3.2).
    recovery_at: Option<Instant>,
    /// Largest packet number acknowledged.
    largest: u64,
    now: Instant,
    initial_window: u64,
    /// Size of the largest datagram now.
    datagram: u64,
    /// Reports a full window to the library, because the packet scheduler chose another path.
    is_gated: bool,
    /// Whether the packet scheduler left room in the window unused.
    is_spared: bool,
    /// Time of the last ACK.
    acknowledged_at: Instant,
    /// Bytes acknowledged since the last reduction, and between the last two (OLIA).
    since_loss: u64,
    between_losses: u64,
}

impl State {
    fn new(controller: Box<dyn Controller>, now: Instant, datagram: u64) -> Self {
        Self {
            initial_window: controller.window(),
            controller,
            estimator: Estimator::new(),
            rtt: RttEstimator::new(Duration::ZERO),
            sent: BTreeMap::new(),
            in_flight: 0,
            batch: Batch::default(),
            pending: None,
            lost: None,
            recovery_at: None,
            largest: 0,
            now,
            datagram,
            is_gated: false,
            is_spared: false,
            acknowledged_at: now,
            since_loss: 0,
            between_losses: 0,
        }
    }

    fn window(&mut self) -> u64 {
        self.flush();
        self.controller.window().max(LEAST_WINDOW * self.datagram)
    }

    /// Returns whether the packet was sent before the last reduction. A packet sent at that moment follows it.
    fn in_recovery(&self, sent_at: Instant) -> bool {
        self.recovery_at.is_some_and(|start| sent_at < start)
    }

    /// Returns the time of sending for a controller that compares it with its last reduction: controllers count a packet sent at
    /// that moment to the window before, and here it follows.
    fn orders(&self, sent_at: Instant) -> Instant {
        let follows = self.recovery_at == Some(sent_at);
        sent_at + Duration::from_nanos(follows.into())
    }

    /// Passes the pending ACK to the controller.
    fn flush(&mut self) {
        if let Some(mut ack) = self.pending.take() {
            ack.in_recovery = self.in_recovery(ack.newest_sent_at);
            self.controller.on_acknowledged(&ack);
        }
    }

    fn on_sent(&mut self, at: StdInstant, bytes: u64, number: u64) {
        self.flush();
        self.now = from_library(at);
        self.is_spared = false;
        self.in_flight += bytes;
        let snapshot = self.estimator.on_sent(self.now, bytes, self.in_flight);
        self.sent.insert((number, self.now), Sent { bytes, snapshot });
        self.controller.on_sent(self.now, bytes, self.in_flight);
    }

    fn on_packet_acknowledged(&mut self, now: StdInstant, sent: StdInstant, bytes: u64, number: u64) {
        self.flush();
        self.now = from_library(now);
        let sent_at = from_library(sent);
        if let Some(known) = self.sent.remove(&(number, sent_at)) {
            self.estimator
                .on_packet_acknowledged(self.now, &known.snapshot, bytes, sent_at);
        }
        self.batch.bytes += bytes;
        self.batch.newest_sent_at = self.batch.newest_sent_at.max(sent_at);
    }

    /// Ends an ACK up to packet `largest`. Losses that it reveals follow, so a later one forgets what remains below it: lost MTU
    /// probes, which the library does not report, and packets of a finished handshake.
    fn on_end_of_ack(&mut self, in_flight: u64, application_limited: bool, largest: Option<u64>) {
        // Packets this far below an acknowledged one are no longer in flight.
        let below = self.largest.saturating_sub(u64::from(MOST_THRESHOLD));
        while let Some(oldest) = self.sent.first_entry().filter(|entry| entry.key().0 < below) {
            oldest.remove();
        }
        self.largest = self.largest.max(largest.unwrap_or(0));
        let batch = std::mem::take(&mut self.batch);
        self.in_flight = in_flight;
        if batch.bytes == 0 {
            return;
        }
        let rtt = self.now - batch.newest_sent_at;
        self.rtt.sample(self.now, rtt);
        self.acknowledged_at = self.now;
        self.since_loss += batch.bytes;
        let application_limited = application_limited || self.is_spared;
        if application_limited {
            self.estimator.set_application_limited(in_flight);
        }
        let minimum = self.rtt.minimum().unwrap_or(Duration::ZERO);
        let rate_sample = self.estimator.finish_ack(minimum);
        self.pending = Some(Acknowledgement {
            now: self.now,
            bytes: batch.bytes,
            marked_bytes: 0,
            rtt: Some(rtt),
            newest_sent_at: batch.newest_sent_at,
            smoothed_rtt: self.rtt.smoothed(),
            bytes_in_flight: in_flight,
            delivered: self.estimator.delivered(),
            rate_sample,
            window_limited: !application_limited,
            in_recovery: false,
        });
    }

    /// Notes the loss of a packet of any packet number space; its size selects it.
    fn on_packet_lost(&mut self, bytes: u64, number: u64) {
        self.estimator.on_lost(bytes);
        let numbered = (number, Instant::default())..(number + 1, Instant::default());
        let mut newest_first = self.sent.range(numbered).rev();
        let lost = newest_first.find(|(_, sent)| sent.bytes == bytes);
        if let Some(key) = lost.map(|(&key, _)| key) {
            self.lost = self.sent.remove(&key).map(|sent| sent.snapshot);
        }
    }

    fn on_loss(&mut self, now: StdInstant, sent: StdInstant, is_persistent: bool, bytes: u64) {
        self.now = from_library(now);
        let sent_at = from_library(sent);
        let snapshot = self.lost.take().unwrap_or_default();
        let prior = self.in_flight;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let in_recovery = self.in_recovery(sent_at);
        let newest_sent_at = self.orders(sent_at);
        if !in_recovery {
            self.recovery_at = Some(self.now);
            self.between_losses = std::mem::take(&mut self.since_loss);
        }
        if let Some(ack) = &mut self.pending {
            ack.bytes_in_flight = self.in_flight;
        }
        self.controller.on_lost(&Loss {
            now: self.now,
            bytes,
            newest_sent_at,
            prior_in_flight: prior,
            bytes_in_flight: self.in_flight,
            in_flight_at_send: snapshot.in_flight(),
            lost_since_send: self.estimator.lost_since(&snapshot),
            application_limited: snapshot.application_limited(),
            in_recovery,
        });
        self.flush();
        if is_persistent {
            self.controller.on_timeout(self.now, self.in_flight);
        }
    }

    fn on_mark(&mut self, now: StdInstant, sent: StdInstant) {
        self.now = from_library(now);
        let sent_at = from_library(sent);
        self.flush();
        if !self.in_recovery(sent_at) {
            let sent_at = self.orders(sent_at);
            self.recovery_at = Some(self.now);
            self.controller.on_congestion_experienced(self.now, sent_at);
        }
    }
}

/// What packet schedulers and coupled controllers need of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathView {
    pub window: u64,
    pub in_flight: u64,
    pub sibling: Sibling,
    pub rtt_variation: Duration,
    pub latest_rtt: Duration,
    /// Whether the oldest packet in flight has waited longer than a retransmission timeout without an ACK.
    pub is_stalled: bool,
    /// Phase of the controller, for traces.
    pub phase: &'static str,
}

/// A controller of one path.
#[derive(Clone, Debug)]
pub(super) struct Adapter(Arc<Mutex<State>>);

impl Adapter {
    /// Returns the adapter behind a controller of the library.
    pub(super) fn of(controller: &dyn LibraryController) -> Option<Self> {
        let adapter = controller.clone_box().into_any().downcast::<Self>();
        adapter.ok().map(|adapter| *adapter)
    }

    /// Reports a full window to the library while the gate is closed.
    pub(super) fn set_gate(&self, is_closed: bool) {
        self.state().is_gated = is_closed;
    }

    /// Notes whether the packet scheduler left room in the window unused: the window then does not grow.
    pub(super) fn set_spared(&self, is_spared: bool) {
        self.state().is_spared = is_spared;
    }

    /// Returns whether the controller needs [`pass_siblings`](Self::pass_siblings).
    pub(super) fn is_coupled(&self) -> bool {
        self.state().controller.is_coupled()
    }

    /// Passes the windows of all paths to the controller.
    pub(super) fn pass_siblings(&self, siblings: &Siblings<'_>) {
        let mut state = self.state();
        state.flush();
        state.controller.on_siblings(siblings);
    }

    pub(super) fn view(&self, now: Instant) -> PathView {
        let mut state = self.state();
        let window = state.window();
        let rtt = &state.rtt;
        let oldest = state.sent.keys().next().filter(|_| state.in_flight > 0);
        let since = oldest.map(|&(_, at)| at.max(state.acknowledged_at));
        PathView {
            window,
            in_flight: state.in_flight,
            sibling: Sibling {
                window,
                rtt: if rtt.has_sample() {
                    rtt.smoothed()
                } else {
                    Duration::ZERO
                },
                base_rtt: rtt.minimum().unwrap_or(Duration::ZERO),
                between_losses: state.between_losses.max(state.since_loss),
            },
            rtt_variation: rtt.variation(),
            latest_rtt: rtt.latest(),
            is_stalled: since.is_some_and(|since| now > since + rtt.timeout() + MAX_ACK_DELAY),
            phase: state.controller.phase(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LibraryController for Adapter {
    fn on_packet_sent(&mut self, now: StdInstant, bytes: u16, pn: u64) {
        self.state().on_sent(now, bytes.into(), pn);
    }

    fn on_ack(&mut self, now: StdInstant, sent: StdInstant, bytes: u64, pn: u64, _: bool, _: &LibraryRtt) {
        self.state().on_packet_acknowledged(now, sent, bytes, pn);
    }

    fn on_end_acks(&mut self, _: StdInstant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.state().on_end_of_ack(in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: StdInstant,
        sent: StdInstant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _: u64,
    ) {
        if is_ecn {
            self.state().on_mark(now, sent);
        } else {
            self.state()
                .on_loss(now, sent, is_persistent_congestion, lost_bytes);
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, _: StdInstant) {
        self.state().on_packet_lost(lost_bytes.into(), pn);
    }

    fn on_spurious_congestion_event(&mut self) {
        let mut state = self.state();
        state.flush();
        let now = state.now;
        state.recovery_at = None;
        state.controller.on_spurious(now);
    }

    /// The segment stays; the smallest window follows the datagrams.
    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.state().datagram = new_mtu.into();
    }

    fn window(&self) -> u64 {
        let mut state = self.state();
        if state.is_gated { 0 } else { state.window() }
    }

    /// The pacer's window is the controller's, whether gated or not.
    fn metrics(&self) -> ControllerMetrics {
        let mut state = self.state();
        let window = state.window();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = window;
        metrics.ssthresh = state.controller.ssthresh();
        let rate = state.controller.pacing_rate();
        metrics.pacing_rate = rate.map(|rate| rate.bits_per_second() / 8);
        metrics
    }

    /// Shares the state: a new address of the same path, as after NAT rebinding, keeps it.
    fn clone_box(&self) -> Box<dyn LibraryController> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.state().initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Builds controllers, and gives access to the newest one.
#[derive(Debug)]
pub(super) struct Factory {
    config: CongestionConfig,
    initial_window: Option<u32>,
    newest: Mutex<Option<Adapter>>,
}

impl Factory {
    pub(super) fn new(config: CongestionConfig, initial_window: Option<u32>) -> Self {
        Self {
            config,
            initial_window,
            newest: Mutex::new(None),
        }
    }

    /// Calls `read` with the newest controller, if one was built.
    pub(super) fn with<R>(&self, read: impl FnOnce(&dyn Controller) -> R) -> Option<R> {
        let newest = lock(&self.newest);
        newest.as_ref().map(|adapter| {
            let mut state = adapter.state();
            state.flush();
            read(&*state.controller)
        })
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: StdInstant, datagram: u16) -> Box<dyn LibraryController> {
        let controller = self.config.build_for(&ConnectionContext {
            segment: datagram.into(),
            rules: Rules::Linux,
            initial_window: self.initial_window.map(u64::from),
        });
        let state = State::new(controller, from_library(now), datagram.into());
        let adapter = Adapter(Arc::new(Mutex::new(state)));
        *lock(&self.newest) = Some(adapter.clone());
        Box::new(adapter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::to_library;
    use super::*;

    const SIZE: u64 = 1000;

    fn at(milliseconds: u64) -> StdInstant {
        to_library(Instant::default() + Duration::from_millis(milliseconds))
    }

    /// Returns a state with Reno and a window of ten segments.
    fn state() -> State {
        let config = CongestionConfig::named("reno").unwrap();
        let controller = config.build_for(&ConnectionContext {
            segment: SIZE,
            rules: Rules::Linux,
            initial_window: None,
        });
        State::new(controller, Instant::default(), SIZE)
    }

    fn acknowledge(state: &mut State, now: u64, sent: u64, number: u64) {
        state.on_packet_acknowledged(at(now), at(sent), SIZE, number);
        state.on_end_of_ack(0, false, Some(number));
    }

    /// One reduction per round trip (RFC 9002, section 7.3.2), and the loss of a packet sent with the new window is another.
    #[test]
    fn packets_sent_at_the_reduction_belong_to_the_new_window() {
        let mut state = state();
        let mut lose = |now, sent| {
            state.on_loss(at(now), at(sent), false, SIZE);
            state.controller.window()
        };
        let once = lose(20, 1);
        assert_eq!(lose(21, 19), once);
        assert!(lose(40, 20) < once);
    }

    /// RFC 9002, sections 7.2 and 7.6.2.
    #[test]
    fn persistent_congestion_leaves_two_datagrams() {
        let adapter = Adapter(Arc::new(Mutex::new(state())));
        adapter.state().on_loss(at(20), at(1), true, SIZE);
        assert_eq!(adapter.state().controller.window(), SIZE);
        assert_eq!(adapter.window(), 2 * SIZE);
    }

    #[test]
    fn loss_removes_the_packet_of_its_number_space() {
        let mut state = state();
        state.on_sent(at(0), 1200, 3);
        state.on_sent(at(5), SIZE, 3);
        state.on_packet_lost(1200, 3);
        let left: Vec<u64> = state.sent.values().map(|sent| sent.bytes).collect();
        assert_eq!(left, [SIZE]);
        acknowledge(&mut state, 20, 5, 3);
        assert!(state.sent.is_empty());
        assert_eq!(state.estimator.delivered(), SIZE);
    }

    #[test]
    fn forgets_packets_that_are_neither_acknowledged_nor_lost() {
        let mut state = state();
        for number in 0..3000 {
            state.on_sent(at(number), SIZE, number);
            if number % 100 != 7 {
                acknowledge(&mut state, number + 1, number, number);
            }
        }
        assert_eq!(state.sent.len(), 10);
    }
}
