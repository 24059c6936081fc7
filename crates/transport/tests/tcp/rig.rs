//! One connection, with a peer that the test scripts segment by segment.

use foundation::{Duration, Instant};
use transport::Machine;
use transport::tcp::{
    Connection, Ecn, Event, Flags, Info, Options, Outgoing, Segment, SequenceNumber, State, TcpConfig,
    Timestamps,
};

/// Initial sequence numbers near the wrap, so that every test crosses it.
pub const OURS: u32 = u32::MAX - 5000;
pub const THEIRS: u32 = u32::MAX - 700;

/// A segment of the peer, with relative numbers: 1 is the first byte of each stream.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub sequence: u32,
    pub acknowledgement: u32,
    pub window: u16,
    pub flags: Flags,
    pub length: u32,
    pub sack: [(u32, u32); 4],
    pub sacks: usize,
    pub timestamps: Option<(u32, u32)>,
    pub ecn: Ecn,
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack_permitted: bool,
}

impl Peer {
    pub const fn ack(acknowledgement: u32) -> Self {
        Self {
            sequence: 1,
            acknowledgement,
            window: 65_535,
            flags: Flags::ACK,
            length: 0,
            sack: [(0, 0); 4],
            sacks: 0,
            timestamps: None,
            ecn: Ecn::NotEct,
            mss: None,
            scale: None,
            sack_permitted: false,
        }
    }

    pub const fn syn() -> Self {
        let mut syn = Self::ack(0);
        syn.sequence = 0;
        syn.flags = Flags::SYN;
        syn.mss = Some(1000);
        syn
    }

    pub const fn from(mut self, sequence: u32) -> Self {
        self.sequence = sequence;
        self
    }

    pub const fn data(mut self, length: u32) -> Self {
        self.length = length;
        self
    }

    pub const fn window(mut self, window: u16) -> Self {
        self.window = window;
        self
    }

    pub fn with(mut self, flags: Flags) -> Self {
        self.flags |= flags;
        self
    }

    pub const fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    pub fn sack(mut self, blocks: &[(u32, u32)]) -> Self {
        self.sack[..blocks.len()].copy_from_slice(blocks);
        self.sacks = blocks.len();
        self
    }

    pub const fn stamped(mut self, value: u32, echo: u32) -> Self {
        self.timestamps = Some((value, echo));
        self
    }

    pub const fn marked(mut self, ecn: Ecn) -> Self {
        self.ecn = ecn;
        self
    }

    pub const fn offering(mut self, scale: Option<u8>, sack: bool) -> Self {
        self.scale = scale;
        self.sack_permitted = sack;
        self
    }

    fn segment(&self) -> Segment {
        let ours = SequenceNumber(OURS);
        let mut segment = Segment::bare(
            SequenceNumber(THEIRS) + self.sequence,
            ours + self.acknowledgement,
            self.flags,
        );
        segment.window = self.window;
        segment.length = self.length;
        segment.ecn = self.ecn;
        segment.options = Options {
            mss: self.mss,
            window_scale: self.scale,
            sack_permitted: self.sack_permitted,
            timestamps: self.timestamps.map(|(value, echo)| Timestamps {
                value,
                // Echoes are relative to the connection's clock, whose start is arbitrary.
                echo: if self.flags.contains(Flags::ACK) {
                    echo.wrapping_add(OURS)
                } else {
                    0
                },
            }),
            sack: self.sack[..self.sacks]
                .iter()
                .map(|&(start, end)| (ours + start, ours + end))
                .collect(),
            ..Options::default()
        };
        segment
    }
}

/// A segment of the connection, with relative numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Out {
    pub sequence: u32,
    pub acknowledgement: u32,
    pub length: u32,
    pub flags: Flags,
    pub packet: Outgoing,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let end = self.sequence.wrapping_add(self.length);
        write!(
            f,
            "{:?} {}..{end} ack {}",
            self.flags, self.sequence, self.acknowledgement
        )
    }
}

impl Out {
    pub fn options(&self) -> &Options {
        &self.packet.segment.options
    }

    pub fn window(&self) -> u16 {
        self.packet.segment.window
    }

    /// SACK blocks with relative numbers.
    pub fn sack(&self) -> Vec<(u32, u32)> {
        let relative = |n: SequenceNumber| n - SequenceNumber(THEIRS);
        let blocks = self.options().sack;
        blocks
            .as_slice()
            .iter()
            .map(|&(s, e)| (relative(s), relative(e)))
            .collect()
    }
}

/// The connection and its clock.
pub struct Rig {
    pub connection: Connection,
    pub now: Instant,
    pub events: Vec<Event>,
}

impl Rig {
    /// Returns an opening connection whose SYN is not yet polled.
    pub fn client(config: &TcpConfig) -> Self {
        Self {
            connection: Connection::open(Instant::ZERO, config, OURS),
            now: Instant::ZERO,
            events: Vec::new(),
        }
    }

    /// Returns a connection established 100 ms after the peer's SYN, with segments of 1000 bytes, optional SACK
    /// and no other option.
    pub fn server(config: &TcpConfig, sack: bool) -> Self {
        let mut rig = Self::accepting(config, &Peer::syn().offering(None, sack));
        assert_eq!(rig.out().len(), 1);
        rig.wait(100);
        rig.receive(Peer::ack(1));
        assert_eq!(rig.connection.state(), State::Established);
        assert_eq!(rig.out(), []);
        rig
    }

    /// Returns a connection that has received the peer's SYN.
    pub fn accepting(config: &TcpConfig, syn: &Peer) -> Self {
        Self {
            connection: Connection::accept(Instant::ZERO, config, OURS, &syn.segment()),
            now: Instant::ZERO,
            events: Vec::new(),
        }
    }

    /// Advances time with timeouts; all segments must have been polled.
    pub fn wait(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        if let Some(at) = self.connection.poll_timeout()
            && at <= until
        {
            assert!(
                at > until || ms == 0,
                "a timer ran out at {at:?} before {until:?}"
            );
        }
        self.now = until;
    }

    /// Advances time by `ms` and returns the sent segments with their times in ms from now.
    pub fn run(&mut self, ms: u64) -> Vec<(u64, Out)> {
        let start = self.now;
        let until = self.now + Duration::from_millis(ms);
        let mut all = Vec::new();
        loop {
            let since = (self.now - start).as_micros() / 1000;
            all.extend(self.out().into_iter().map(|out| (since, out)));
            match self.connection.poll_timeout().filter(|&at| at <= until) {
                Some(at) => {
                    assert!(at > self.now, "a timer in the past");
                    self.now = at;
                    self.connection.handle_timeout(at);
                }
                None => break,
            }
        }
        self.now = until;
        all
    }

    pub fn receive(&mut self, peer: Peer) {
        self.connection.handle_frame(self.now, peer.segment());
    }

    /// Returns the segments that leave now.
    pub fn out(&mut self) -> Vec<Out> {
        let mut all = Vec::new();
        while let Some(packet) = self.connection.poll_transmit(self.now) {
            let segment = &packet.segment;
            all.push(Out {
                sequence: segment.sequence - SequenceNumber(OURS),
                acknowledgement: segment.acknowledgement - SequenceNumber(THEIRS),
                length: segment.length,
                flags: segment.flags,
                packet,
            });
        }
        while let Some(event) = self.connection.poll_event() {
            self.events.push(event);
        }
        all
    }

    /// Processes a segment of the peer and returns the segments that leave.
    pub fn exchange(&mut self, peer: Peer) -> Vec<Out> {
        self.receive(peer);
        self.out()
    }

    /// Processes a segment of the peer and returns the positions of the data segments that leave.
    pub fn starts(&mut self, peer: Peer) -> Vec<u32> {
        self.exchange(peer)
            .iter()
            .filter(|out| out.length > 0)
            .map(|out| out.sequence)
            .collect()
    }

    /// Writes into a send buffer that has already grown, and returns the segments that leave.
    pub fn write(&mut self, bytes: u64) -> Vec<Out> {
        self.connection.set_send_buffer(4 << 20);
        assert_eq!(self.connection.write(self.now, bytes), bytes);
        self.out()
    }

    pub fn info(&self) -> Info {
        self.connection.info()
    }

    pub fn state(&self) -> State {
        self.connection.state()
    }
}
