//! Captures requests at the requesting host: their time on the wire and their number of packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration as StdDuration;

use foundation::Duration;
use measurement::Stamp;
use measurement::capture::{Capture, Direction, Filter, Frame, Protocol};

/// How long to wait for packets after the last response, in addition to the longest request: a FIN and its
/// acknowledgement take one RTT.
const GRACE: Duration = Duration::from_millis(2);

/// How long to wait for timestamps: for the first user, the kernel patches its code in a background thread, and packets
/// have no timestamps until then.
const UNTIL_STAMPED: StdDuration = StdDuration::from_millis(20);

/// A capture of one flow's packets at its host. It stays empty without the permission to capture.
pub(super) struct RequestCapture {
    capture: Option<Capture>,
    /// Whether no other flow sends such requests at the same time.
    is_alone: bool,
    frames: Vec<Frame>,
    longest: Duration,
}

/// The start of a request by the kernel's packet clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestStart(Stamp);

impl RequestCapture {
    /// Captures at the calling thread's host. `near`: its address; `to`: the peer, without a port for ICMP echo, whose
    /// requests have this `identifier`. Fragments have no ports, so a flow that is not alone gets no result for
    /// requests with fragments.
    pub(super) fn open(
        protocol: Protocol,
        near: Ipv4Addr,
        identifier: Option<u16>,
        to: SocketAddr,
        is_alone: bool,
    ) -> Self {
        let filter = Filter {
            protocol,
            near: IpAddr::V4(near),
            far: to.ip(),
            near_port: identifier,
            far_port: (protocol != Protocol::Echo).then(|| to.port()),
        };
        let capture = Capture::open(None, filter).ok();
        std::thread::sleep(UNTIL_STAMPED);
        Self {
            capture,
            is_alone,
            frames: Vec::new(),
            longest: Duration::ZERO,
        }
    }

    /// Returns the start time of a request.
    pub(super) fn start(&self) -> RequestStart {
        RequestStart(Stamp::now())
    }

    /// Returns the time on the wire of a request whose response is complete.
    pub(super) fn answered(&mut self, start: RequestStart) -> Option<Duration> {
        let until = Stamp::now();
        self.longest = self.longest.max(until.since(start.0));
        let capture = self.capture.as_mut()?;
        let first = self.frames.len();
        capture.take(&mut self.frames).ok()?;
        if !self.is_attributed(first) {
            return None;
        }
        span(&self.frames[first..], start.0, until)
    }

    /// Whether the flow of all packets from this index on is known.
    fn is_attributed(&self, from: usize) -> bool {
        self.is_alone || !self.frames[from..].iter().any(|frame| frame.packet.is_fragment)
    }

    /// Returns the number of packets in both directions, including those in flight; `None` if the capture missed some.
    pub(super) fn packets(mut self) -> Option<u64> {
        let grace = self.longest + GRACE;
        std::thread::sleep(StdDuration::from_nanos(grace.as_nanos()));
        let capture = self.capture.as_mut()?;
        capture.take(&mut self.frames).ok()?;
        let counts = capture.counts().ok()?;
        (counts.dropped == 0 && self.is_attributed(0)).then_some(counts.frames)
    }
}

/// Returns the time from the first packet out to the last packet in, between two times.
fn span(frames: &[Frame], from: Stamp, until: Stamp) -> Option<Duration> {
    let within = || {
        frames
            .iter()
            .filter(|frame| (from..=until).contains(&frame.stamp))
    };
    let first = within().find(|frame| frame.direction == Direction::Out)?;
    let last = within().rfind(|frame| frame.direction == Direction::In)?;
    (last.stamp > first.stamp).then(|| last.stamp.since(first.stamp))
}

#[cfg(test)]
mod tests {
    use measurement::capture::{Packet, Transport};

    use super::*;

    fn frame(nanos: u64, direction: Direction) -> Frame {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        Frame {
            stamp: Stamp::from_nanos(nanos),
            direction,
            device: 1,
            packet: Packet {
                source: address,
                destination: address,
                protocol: 17,
                length: 28,
                is_fragment: false,
                transport: Transport::Other,
            },
        }
    }

    #[test]
    fn span_ignores_packets_outside_the_request() {
        use Direction::{In, Out};
        let frames = [
            frame(90, Out),
            frame(95, In),
            frame(110, Out),
            frame(130, In),
            frame(150, In),
            frame(205, In),
        ];
        let (from, until) = (Stamp::from_nanos(100), Stamp::from_nanos(200));
        assert_eq!(span(&frames, from, until), Some(Duration::from_nanos(40)));
        assert_eq!(span(&frames[..3], from, until), None);
        assert_eq!(span(&frames[3..], from, until), None);
    }
}
