//! The one contract of every protocol machine.

use foundation::Instant;

/// A protocol machine: the caller owns time and bytes.
///
/// # Contract
/// - Methods named `handle_*` tell the machine what happened. They mutate it and never fail: a frame
///   that makes no sense is ignored, as it would be on a network.
/// - Methods named `poll_*` ask what the machine wants. After **every** `handle_*` call (and after
///   any call of the application's interface, such as writing or finishing) the caller drains
///   [`poll_transmit`](Machine::poll_transmit) and [`poll_event`](Machine::poll_event) until they give
///   `None`, and then reads [`poll_timeout`](Machine::poll_timeout) anew: it may have moved.
/// - `now` never goes backwards between calls.
/// - When the time of `poll_timeout` has come, the caller calls
///   [`handle_timeout`](Machine::handle_timeout). Calling it early or late is harmless: early it does
///   nothing, late it does what is due by then.
pub trait Machine {
    /// What arrives from the network.
    type Incoming;
    /// What leaves for the network.
    type Outgoing;
    /// What the application is told.
    type Event;

    /// A frame arrived.
    fn handle_frame(&mut self, now: Instant, frame: Self::Incoming);
    /// Time has passed; whatever is due by `now` happens.
    fn handle_timeout(&mut self, now: Instant);
    /// The next frame to send at `now`, if any may leave.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Outgoing>;
    /// When `handle_timeout` (or `poll_transmit`, for paced departures) wants to be called next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next thing that the application should know.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
