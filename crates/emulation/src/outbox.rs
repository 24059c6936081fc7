//! Packets that have arrived at hosts and wait to be written to their devices.

use std::collections::VecDeque;

use super::offload::merge::{MergeLimits, Run};
use crate::packet::IpPacket;

/// Waiting packets by device.
#[derive(Debug)]
pub struct Outbox {
    waiting: Vec<VecDeque<IpPacket>>,
    limits: Vec<MergeLimits>,
    /// Devices with waiting packets, each once, in the order of their turns.
    turns: VecDeque<usize>,
    packets: usize,
}

impl Outbox {
    /// An empty outbox for devices with these limits.
    pub fn new(limits: Vec<MergeLimits>) -> Self {
        Self {
            waiting: limits.iter().map(|_| VecDeque::new()).collect(),
            limits,
            turns: VecDeque::new(),
            packets: 0,
        }
    }

    /// The number of waiting packets.
    pub const fn len(&self) -> usize {
        self.packets
    }

    /// Adds a packet for a device.
    pub fn push(&mut self, device: usize, packet: IpPacket) {
        let queue = &mut self.waiting[device];
        if queue.is_empty() {
            self.turns.push_back(device);
        }
        queue.push_back(packet);
        self.packets += 1;
    }

    /// Moves the packets of the next write to an empty run and returns their device.
    pub fn take(&mut self, run: &mut Run) -> Option<usize> {
        let device = self.turns.pop_front()?;
        let (queue, limits) = (&mut self.waiting[device], self.limits[device]);
        while let Some(packet) = queue.pop_front() {
            if let Err(packet) = run.push(packet, limits) {
                queue.push_front(packet);
                self.turns.push_back(device);
                break;
            }
        }
        self.packets -= run.packets().len();
        Some(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(number: u8) -> IpPacket {
        let mut bytes = vec![0; 20];
        bytes[0] = 0x45;
        bytes[19] = number;
        IpPacket::new(bytes).unwrap()
    }

    #[test]
    fn devices_take_turns_and_keep_the_order_of_their_packets() {
        let mut outbox = Outbox::new(vec![MergeLimits::default(); 3]);
        for (device, number) in [(2, 1), (2, 2), (0, 3), (2, 4), (0, 5)] {
            outbox.push(device, packet(number));
        }
        assert_eq!(outbox.len(), 5);
        let mut run = Run::default();
        let mut taken = Vec::new();
        while let Some(device) = outbox.take(&mut run) {
            taken.extend(run.drain().map(|packet| (device, packet.bytes()[19])));
        }
        assert_eq!(taken, [(2, 1), (0, 3), (2, 2), (0, 5), (2, 4)]);
        assert_eq!(outbox.len(), 0);
    }
}
