//! The interface of all protocol state machines.

use foundation::Instant;

/// A protocol state machine. The caller provides the time and stores the payload bytes.
///
/// # Contract
/// - `handle_*` methods process input and never fail: an invalid frame is ignored.
/// - `poll_*` methods return output. After **every** `handle_*` call, and after any call of the application interface such
///   as a write, the caller drains [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Machine::poll_event) until
///   they return `None`, and then calls [`poll_timeout`](Machine::poll_timeout), whose result may have changed.
/// - `now` never decreases between calls.
/// - At the time of `poll_timeout`, the caller calls [`handle_timeout`](Machine::handle_timeout). An early call has no
///   effect, and a late one processes everything due by then.
pub trait Machine {
    /// Frame from the network.
    type Incoming;
    /// Frame for the network.
    type Outgoing;
    /// Event for the application.
    type Event;

    /// Processes an arriving frame.
    fn handle_frame(&mut self, now: Instant, frame: Self::Incoming);
    /// Processes all timers due by `now`.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next frame to send at `now`.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Outgoing>;
    /// Returns when to call `handle_timeout` (or `poll_transmit`, for paced frames) next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns the next event for the application.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
