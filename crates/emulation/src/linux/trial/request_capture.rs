//! Requests as the asking host's interface sees them: their time on the wire, and how many packets they cost.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration as StdDuration;

use foundation::Duration;
use measurement::Stamp;
use measurement::capture::{Capture, Direction, Filter, Frame, Protocol};

/// How long packets that follow the last response are waited for, beside as long as the longest request took: a FIN and
/// its acknowledgement take a round trip.
const GRACE: Duration = Duration::from_millis(2);

/// How long the kernel is given to begin to stamp packets: it patches its own code for the first who asks, by a thread that
/// runs when it may, and leaves packets without stamps until then.
const UNTIL_STAMPED: StdDuration = StdDuration::from_millis(20);

/// Looks at all packets between two hosts of one flow. Where the system lets nobody look, it sees nothing.
pub(super) struct RequestCapture {
    capture: Option<Capture>,
    /// Whether nobody else asks so at the same time.
    is_alone: bool,
    frames: Vec<Frame>,
    longest: Duration,
}

/// When a request began, on the clock that the kernel stamps packets with.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestStart(Stamp);

impl RequestCapture {
    /// Looks from the calling thread's host, whose address is `near`; `to` is the far end, without a port for ICMP echo,
    /// whose requests have this `identifier`. Fragments tell nobody whose they are: where others ask at the same time, what
    /// has any is not told.
    pub(super) fn look(
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

    /// A request begins.
    pub(super) fn ask(&self) -> RequestStart {
        RequestStart(Stamp::now())
    }

    /// Its response is whole: gives how long it took on the wire.
    pub(super) fn answered(&mut self, asked: RequestStart) -> Option<Duration> {
        let until = Stamp::now();
        self.longest = self.longest.max(until.since(asked.0));
        let capture = self.capture.as_mut()?;
        let seen = self.frames.len();
        capture.take(&mut self.frames).ok()?;
        if !self.is_told(seen) {
            return None;
        }
        span(&self.frames[seen..], asked.0, until)
    }

    /// Whether it is known whose the packets are that were seen from this one on.
    fn is_told(&self, from: usize) -> bool {
        self.is_alone || !self.frames[from..].iter().any(|frame| frame.packet.is_fragment)
    }

    /// All packets so far, both ways; those that are still on their way are waited for. `None` where some went unseen.
    pub(super) fn packets(mut self) -> Option<u64> {
        let grace = self.longest + GRACE;
        std::thread::sleep(StdDuration::from_nanos(grace.as_nanos()));
        let capture = self.capture.as_mut()?;
        capture.take(&mut self.frames).ok()?;
        let counts = capture.counts().ok()?;
        (counts.dropped == 0 && self.is_told(0)).then_some(counts.frames)
    }
}

/// From the first packet out to the last one in, of those that passed between two moments.
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
                hop_limit: 64,
                is_fragment: false,
                transport: Transport::Other,
            },
        }
    }

    #[test]
    fn what_is_late_from_before_or_comes_after_does_not_count() {
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
