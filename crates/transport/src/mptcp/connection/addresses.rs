//! Addresses that the ends announce and withdraw: ADD_ADDR and REMOVE_ADDR (RFC 8684, section 3.4).
//!
//! Addresses have numbers here. The owner knows what they stand for, checks the HMAC of an announcement before it passes it on,
//! and decides whether to open a subflow to an announced address.

use foundation::Instant;

use super::{Connection, Mode};
use crate::mptcp::policy::Join;
use crate::mptcp::segment::{AddressForm, MptcpOption, PathIndex, Signal, reason};
use crate::tcp::wire::MAX_OPTIONS;

/// Retransmissions of an announcement without echo (Linux's `ADD_ADDR_RETRANS_MAX`; RFC 8684 sets no number).
const MAX_REPEATS: u32 = 3;

/// Options about addresses that wait for a segment, and announcements that wait for their echo.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// Options to send, each with the number of its subflow.
    due: Vec<(u8, Signal)>,
    /// This end's announcements without echo.
    waiting: Vec<Waiting>,
    /// IDs that the peer announced, until the owner takes them, and all of its IDs.
    announced: Vec<u8>,
    known: Vec<u8>,
}

/// An announcement without echo.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u8,
    form: AddressForm,
    /// Transmissions so far, and when the next one is due.
    sent: u32,
    due_at: Instant,
}

impl Addresses {
    /// Returns when the next retransmission is due.
    #[inline]
    pub fn next_due(&self) -> Instant {
        let times = self.waiting.iter().map(|waiting| waiting.due_at);
        times.min().unwrap_or(Instant::MAX)
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.due.clear();
        self.waiting.clear();
    }
}

impl Connection {
    /// Announces an address of this end by ADD_ADDR, at once or as soon as a subflow can carry it, and up to three times more until
    /// the peer echoes it. `id`: its number, above 0.
    pub fn announce_address(&mut self, now: Instant, id: u8, form: AddressForm) {
        if self.over || self.mode == Mode::Plain {
            return;
        }
        self.addresses.waiting.retain(|waiting| waiting.id != id);
        self.addresses.waiting.push(Waiting {
            id,
            form,
            sent: 0,
            due_at: now,
        });
        self.send_announcements(now);
    }

    /// Withdraws an address of this end by REMOVE_ADDR, and resets the subflows that use it. The option leaves on a subflow with
    /// another address; without one, only the resets report the removal.
    pub fn remove_address(&mut self, now: Instant, id: u8) {
        self.addresses.waiting.retain(|waiting| waiting.id != id);
        for index in 0..self.subflows.len() {
            if self.subflows[index].address == id {
                self.drop_subflow(now, index);
            }
        }
        if let Some(index) = self.usable_subflow() {
            self.send_signal(index, Signal::RemoveAddress { id });
        }
    }

    /// Removes and returns the ID of an address that the peer announced and this end did not know.
    pub fn take_announced_address(&mut self) -> Option<u8> {
        let announced = &mut self.addresses.announced;
        (!announced.is_empty()).then(|| announced.remove(0))
    }

    /// Opens a subflow on `path` from this end's address `address` to the peer's address `peer_address`. Returns false before both
    /// ends have confirmed multipath TCP, and at the limit of subflows.
    pub fn open_subflow(
        &mut self,
        now: Instant,
        path: PathIndex,
        (address, peer_address): (u8, u8),
        backup: bool,
    ) -> bool {
        let join = Join {
            backup,
            ..Join::immediately(path)
        };
        let is_open = self.is_client && self.joinable_since.is_some() && !self.over && self.join(now, join);
        if let Some(subflow) = self.subflows.last_mut().filter(|_| is_open) {
            subflow.address = address;
            subflow.peer_address = peer_address;
        }
        is_open
    }

    fn usable_subflow(&self) -> Option<usize> {
        self.subflows.iter().position(|subflow| subflow.usable)
    }

    fn send_signal(&mut self, index: usize, signal: Signal) {
        let subflow = &mut self.subflows[index];
        self.addresses.due.push((subflow.id, signal));
        subflow.tcp.demand_acknowledgement();
        self.dirty |= 1 << index;
    }

    /// Sends the announcements that are due, if a subflow can carry them.
    pub(super) fn send_announcements(&mut self, now: Instant) {
        let Some(index) = self.usable_subflow() else {
            return;
        };
        let timeout = self.subflows[index].tcp.retransmission_timeout();
        for at in 0..self.addresses.waiting.len() {
            let waiting = &mut self.addresses.waiting[at];
            if waiting.due_at > now || waiting.sent > MAX_REPEATS {
                continue;
            }
            waiting.due_at = now + timeout.doubled(waiting.sent);
            waiting.sent += 1;
            let (id, form) = (waiting.id, waiting.form);
            let signal = Signal::AddAddress {
                id,
                echo: false,
                form,
            };
            self.send_signal(index, signal);
        }
    }

    /// Retransmits announcements without echo, and gives up after the last time.
    pub(super) fn on_announcement_timeout(&mut self, now: Instant) {
        self.addresses
            .waiting
            .retain(|waiting| waiting.due_at > now || waiting.sent <= MAX_REPEATS);
        if self.usable_subflow().is_some() {
            self.send_announcements(now);
        } else {
            // The next usable subflow sends them.
            for waiting in &mut self.addresses.waiting {
                waiting.sent = 0;
                waiting.due_at = Instant::MAX;
            }
        }
    }

    /// Sends what waited for a usable subflow.
    pub(super) fn on_usable_subflow(&mut self, now: Instant) {
        if self.addresses.waiting.is_empty() {
            return;
        }
        for waiting in &mut self.addresses.waiting {
            if waiting.sent == 0 {
                waiting.due_at = now;
            }
        }
        self.send_announcements(now);
    }

    /// Handles the further option of a segment.
    pub(super) fn process_signal(&mut self, now: Instant, index: usize, signal: Signal) {
        match signal {
            Signal::None => {}
            Signal::Priority { backup } => self.subflows[index].peer_backup = backup,
            Signal::AddAddress { id, echo: true, .. } => {
                self.addresses.waiting.retain(|waiting| waiting.id != id);
            }
            Signal::AddAddress {
                id,
                echo: false,
                form,
            } if self.mode == Mode::Multipath => {
                if !self.addresses.known.contains(&id) {
                    self.addresses.known.push(id);
                    self.addresses.announced.push(id);
                }
                let echo = Signal::AddAddress { id, echo: true, form };
                self.send_signal(index, echo);
            }
            Signal::RemoveAddress { id } if self.mode == Mode::Multipath => {
                self.addresses.known.retain(|known| *known != id);
                self.addresses.announced.retain(|known| *known != id);
                for index in 0..self.subflows.len() {
                    if self.subflows[index].peer_address == id {
                        self.drop_subflow(now, index);
                    }
                }
            }
            Signal::AddAddress { .. } | Signal::RemoveAddress { .. } => {}
        }
    }

    /// Resets a subflow whose address was removed; its data goes to others.
    fn drop_subflow(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        if !subflow.gone {
            subflow.reset_for(now, true, reason::UNSPECIFIED);
            self.dirty |= 1 << index;
            self.on_subflow_closed(now, index, None);
        }
    }

    /// Returns the option about an address that a segment without payload can carry besides `option`, given the bytes of its TCP
    /// options. An option that is too long for both replaces a bare DATA_ACK.
    pub(super) fn next_signal(
        &mut self,
        index: usize,
        option: MptcpOption,
        tcp_options: u32,
    ) -> (MptcpOption, Signal) {
        let subflow = &mut self.subflows[index];
        let due = &mut self.addresses.due;
        let Some(at) = due.iter().position(|(id, _)| *id == subflow.id) else {
            return (option, Signal::None);
        };
        let (_, signal) = due[at];
        let room = MAX_OPTIONS.saturating_sub(tcp_options + signal.encoded_length());
        let is_bare = matches!(option, MptcpOption::Dss { mapping: None, .. });
        let fits = option.encoded_length() <= room;
        if fits || is_bare {
            due.remove(at);
        }
        if due.iter().any(|(id, _)| *id == subflow.id) {
            subflow.tcp.demand_acknowledgement();
        }
        match (fits, is_bare) {
            (true, _) => (option, signal),
            (false, true) => (MptcpOption::None, signal),
            (false, false) => (option, Signal::None),
        }
    }
}
