//! Listening to an emulated network: every packet where it enters and where it leaves, and what happens to it between.

use experiment::trace::What;
use foundation::Instant;
use network::{DropReason, LinkId, Observer, PacketRef};

use crate::packet::IpPacket;

/// Something that happened to a packet.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When, by the emulation's clock.
    pub at: Instant,
    /// What: sent, received, dropped, duplicated, marked or corrupted.
    pub what: What,
    /// Why it was dropped.
    pub reason: Option<DropReason>,
    /// The packet's number: the same wherever it is heard.
    pub id: u64,
    /// The packet as it was then, where it is new or may have changed.
    pub packet: Option<IpPacket>,
}

/// Writes down what it hears, once it listens. Until then it costs a look a packet and link.
#[derive(Debug, Default)]
pub struct Tap {
    heard: Option<Vec<Heard>>,
    /// Links of each route.
    hops: Vec<u8>,
}

impl Tap {
    /// A tap on a network whose routes have so many links.
    pub(crate) const fn new(hops: Vec<u8>) -> Self {
        Self { heard: None, hops }
    }

    /// The network has got another route of so many links.
    pub(crate) fn add_route(&mut self, hops: u8) {
        self.hops.push(hops);
    }

    /// Listens from now on.
    pub(crate) fn listen(&mut self) {
        self.heard.get_or_insert_default();
    }

    /// What was heard so far; nothing where it does not listen.
    pub(crate) fn take(&mut self) -> Vec<Heard> {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    fn hear(
        &mut self,
        at: Instant,
        what: What,
        packet: &PacketRef<'_, IpPacket>,
        is_new: bool,
        reason: Option<DropReason>,
    ) {
        if let Some(heard) = &mut self.heard {
            heard.push(Heard {
                at,
                what,
                reason,
                id: packet.id,
                packet: is_new.then(|| packet.body.clone()),
            });
        }
    }
}

impl Observer<IpPacket> for Tap {
    #[inline]
    fn entered(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        if packet.hop == 0 {
            self.hear(at, What::Send, &packet, true, None);
        }
    }

    fn dropped(&mut self, at: Instant, _: LinkId, reason: DropReason, packet: PacketRef<'_, IpPacket>) {
        self.hear(at, What::Drop, &packet, false, Some(reason));
    }

    fn duplicated(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.hear(at, What::Duplicate, &packet, false, None);
    }

    fn corrupted(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.hear(at, What::Corrupt, &packet, true, None);
    }

    fn marked(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        self.hear(at, What::Mark, &packet, true, None);
    }

    #[inline]
    fn left(&mut self, at: Instant, _: LinkId, packet: PacketRef<'_, IpPacket>) {
        let hops = self.hops.get(packet.route.0 as usize);
        if hops.is_some_and(|&hops| packet.hop.checked_add(1) == Some(hops)) {
            self.hear(at, What::Receive, &packet, false, None);
        }
    }
}
