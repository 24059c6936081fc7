//! Network address translation: a middlebox at a link that gives each connection from the inside a separate port.
//!
//! A mapping from a connection to a port starts with the first packet from the inside, and ends when no packet leaves for the
//! timeout, or when the translator rebinds, as after a restart or a new address. The next packet from the inside then has
//! another source port (RFC 4787, sections 4.1 and 4.3; RFC 5382). Packets from the outside to a port without mapping are dropped.
//! ICMP errors pass if the connection of the packet that they quote has a mapping, which they do not refresh (RFC 5508, section 4).
//!
//! A peer that identifies connections by addresses and ports, as TCP does, accepts none with the new port, so that the packet
//! is dropped. (A real peer answers it with a reset, which is not modelled.) Peers that identify connections by numbers in the packets,
//! as QUIC does (RFC 9000, section 9), and datagrams without connections send to the new port from then on. QUIC's packets carry the
//! address outside of the translator, so that a server sees the change and validates the path.
//!
//! Not modelled: the states of TCP, so that a mapping has the timeout of an established connection also before and after it
//! (RFC 5382, REQ-5 permits 4 min); filters by the address of a peer; a limit of ports; connections from the outside through
//! configured ports. Fragments after the first have no ports and pass, since they are useless without the first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foundation::{Duration, Problem, omit_unset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::Subscriber;
use crate::packet::Connection;

/// The shortest timeout of UDP mappings that RFC 4787 permits (section 4.3, REQ-5).
const UDP_TIMEOUT: Duration = Duration::from_secs(120);
/// The shortest timeout of established TCP connections that RFC 5382 permits (section 5, REQ-5): 2 h 4 min.
const TCP_TIMEOUT: Duration = Duration::from_secs(7440);
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);
/// Limit of rebindings.
const MOST: usize = 1000;

/// The address of a connection outside of an address translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExternalAddress {
    /// Number of the address among those that the translator has had.
    pub host: u16,
    /// Port, above 0.
    pub port: u16,
}

omit_unset! {
    /// A network address translator between both ends of a link: `{ timeout = "30s", rebind = ["5s"] }`.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, expecting = "a table such as { timeout = \"30s\", rebind = [\"5s\"] }")]
    #[schemars(rename = "Nat")]
    pub struct NatConfig {
        /// Time without packets from the inside after which a mapping ends, from "1ms" to 24 h; default "7440s" for TCP (RFC 5382, REQ-5) and "120s" for other protocols (RFC 4787, REQ-5).
        pub timeout: Option<Duration>,
        /// Times since the start of the trial at which all mappings end, in order, e.g. ["5s"]; default: none.
        pub rebind: Option<Vec<Duration>>,
        /// Whether a rebinding gives connections a new address, not only a new port, as after a restart of a router; a server of QUIC then starts with a new congestion window (RFC 9000, section 9.4). World sim; requires rebind. Default: false.
        pub new_address: Option<bool>,
        /// End of the path that is inside: "near" or "far"; default "near". Connections must start there.
        pub inside: Option<Subscriber>,
    }
}

impl NatConfig {
    /// Returns all values out of range.
    #[must_use]
    pub(crate) fn validate(&self) -> Vec<Problem> {
        let timeout = self.timeout.unwrap_or(UDP_TIMEOUT);
        let rebind = self.rebind.as_deref().unwrap_or_default();
        let is_timeout = (Duration::from_millis(1)..=MAX_TIMEOUT).contains(&timeout);
        let is_ordered = rebind.len() <= MOST && rebind.windows(2).all(|pair| pair[0] < pair[1]);
        let order = format!("rising times, at most {MOST}");
        let lacks_rebind = self.new_address.is_some() && self.rebind.is_none();
        let requires = lacks_rebind.then(|| Problem::new("new_address", "requires rebind"));
        let problems = [
            requires,
            Problem::range(
                "timeout",
                format!("\"{timeout}\""),
                is_timeout,
                "\"1ms\" to \"24h\"",
            ),
            Problem::range("rebind", "the list", is_ordered, &order),
        ];
        problems.into_iter().flatten().collect()
    }

    /// Returns the translator at a link, whose sender is inside if `is_outgoing`.
    #[must_use]
    pub(crate) fn resolve(&self, is_outgoing: bool) -> Nat {
        Nat {
            timeout: self.timeout,
            rebind: self.rebind.clone().unwrap_or_default(),
            new_address: self.new_address == Some(true),
            is_outgoing,
        }
    }

    /// Returns the same translator as seen from the opposite direction.
    #[must_use]
    pub(crate) fn reversed(mut self) -> Self {
        self.inside = Some(match self.is_near_inside() {
            true => Subscriber::Far,
            false => Subscriber::Near,
        });
        self
    }

    /// Returns whether the near end is inside.
    pub(crate) fn is_near_inside(&self) -> bool {
        self.inside.unwrap_or(Subscriber::Near) == Subscriber::Near
    }
}

/// A translator at one direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat {
    /// Time without packets from the inside after which a mapping ends; `None` for 7440 s if addresses and ports identify its
    /// connection (RFC 5382, REQ-5), and 120 s if not (RFC 4787, REQ-5).
    pub timeout: Option<Duration>,
    /// Times since the start of the trial at which all mappings end, in order.
    pub rebind: Vec<Duration>,
    /// Whether a rebinding gives connections a new address, not only a new port.
    pub new_address: bool,
    /// Whether the packets of the link come from the inside.
    pub is_outgoing: bool,
}

/// The mapping of a connection. Ports are numbers from 1 in the order of their assignment, without the limit of 16 bits.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    /// Its port.
    port: u32,
    /// Its address outside, and inside if that is known.
    outside: ExternalAddress,
    inside: Option<ExternalAddress>,
    /// Time of the last packet from the inside, in nanoseconds.
    used: u64,
    /// The port of the connection that its peer accepts; 0 if it accepts none.
    accepted: u32,
}

#[derive(Debug)]
struct State {
    /// Timeouts in nanoseconds: of connections without and with identification by addresses and ports.
    timeouts: [u64; 2],
    /// Times of rebindings since the start of the trial in nanoseconds, rising.
    rebind: Vec<u64>,
    /// Whether each of them brings a new address.
    new_address: bool,
    /// Start of the trial in nanoseconds.
    epoch: u64,
    /// The next port. Ports are not reused, like a port that another connection has taken.
    next: u32,
    mappings: BTreeMap<u64, Mapping>,
}

impl State {
    /// Returns whether a mapping of the connection last used at `used` exists at `now`.
    fn is_alive(&self, used: u64, now: u64, connection: &Connection) -> bool {
        let at = |after: &u64| self.epoch.saturating_add(*after);
        let next = self.rebind.partition_point(|after| at(after) <= used);
        let is_rebound = self.rebind.get(next).is_some_and(|after| at(after) <= now);
        now - used <= self.timeouts[usize::from(connection.is_bound)] && !is_rebound
    }

    /// Returns the address of a port that is assigned at `now`.
    fn outside(&self, now: u64, port: u32) -> ExternalAddress {
        let at = |after: &u64| self.epoch.saturating_add(*after);
        let host = match self.new_address {
            true => self.rebind.partition_point(|after| at(after) <= now),
            false => 0,
        };
        ExternalAddress {
            host: host as u16,
            port: ((port - 1) % u32::from(u16::MAX) + 1) as u16,
        }
    }

    /// Translates a packet from the inside with this address. Returns the one outside if its peer accepts it.
    fn leave(
        &mut self,
        now: u64,
        connection: &Connection,
        inside: Option<ExternalAddress>,
    ) -> Option<Option<ExternalAddress>> {
        if connection.is_error {
            return self.enter(now, connection, None);
        }
        let before = self.mappings.get(&connection.number).copied();
        let alive = before.filter(|mapping| self.is_alive(mapping.used, now, connection));
        let (port, outside) = match alive {
            Some(mapping) => (mapping.port, mapping.outside),
            None => {
                self.next += 1;
                (self.next, self.outside(now, self.next))
            }
        };
        let is_accepted = connection.opens || !connection.is_bound;
        let accepted = match before {
            Some(mapping) if !is_accepted => mapping.accepted,
            // The start of the connection has not passed.
            None if !is_accepted => 0,
            _ => port,
        };
        let mapping = Mapping {
            port,
            outside,
            inside,
            used: now,
            accepted,
        };
        self.mappings.insert(connection.number, mapping);
        (accepted == port).then_some(Some(outside))
    }

    /// Translates a packet from the outside to this address. Returns the one inside if it has a mapping.
    fn enter(
        &self,
        now: u64,
        connection: &Connection,
        outside: Option<ExternalAddress>,
    ) -> Option<Option<ExternalAddress>> {
        let mapping = self.mappings.get(&connection.number)?;
        let is_addressed = outside.is_none_or(|outside| outside == mapping.outside);
        let is_alive = self.is_alive(mapping.used, now, connection);
        (is_alive && is_addressed && mapping.accepted == mapping.port).then_some(mapping.inside)
    }
}

/// The mappings of both directions. The links of a network belong to one thread, so the lock is never contended.
#[derive(Clone, Debug)]
pub(crate) struct Translator(Arc<Mutex<State>>);

impl Translator {
    pub(crate) fn new(nat: &Nat) -> Self {
        let timeout = |default: Duration| nat.timeout.unwrap_or(default).as_nanos();
        Self(Arc::new(Mutex::new(State {
            timeouts: [timeout(UDP_TIMEOUT), timeout(TCP_TIMEOUT)],
            rebind: nat.rebind.iter().map(|after| after.as_nanos()).collect(),
            new_address: nat.new_address,
            epoch: 0,
            next: 0,
            mappings: BTreeMap::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the start of the times of rebindings, and ends all mappings.
    pub(crate) fn restart(&self, epoch: u64) {
        let mut state = self.lock();
        state.epoch = epoch;
        state.mappings.clear();
    }

    /// Returns the translator of one direction.
    pub(crate) fn side(&self, nat: &Nat) -> TranslatorSide {
        TranslatorSide {
            translator: self.clone(),
            is_outgoing: nat.is_outgoing,
        }
    }
}

/// A translator, as one direction of its link uses it.
#[derive(Clone, Debug)]
pub(crate) struct TranslatorSide {
    translator: Translator,
    is_outgoing: bool,
}

impl TranslatorSide {
    /// Translates a packet with this address outside of the translators that it has passed, or to which it is addressed. Returns
    /// its address from then on; `None` if it does not pass.
    pub(crate) fn pass(
        &self,
        now: u64,
        connection: &Connection,
        external: Option<ExternalAddress>,
    ) -> Option<Option<ExternalAddress>> {
        let mut state = self.translator.lock();
        if self.is_outgoing {
            state.leave(now, connection, external)
        } else {
            state.enter(now, connection, external)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const TCP: Connection = Connection {
        number: 7,
        opens: false,
        is_bound: true,
        is_error: false,
    };
    const SYN: Connection = Connection { opens: true, ..TCP };
    const QUIC: Connection = Connection {
        number: 8,
        opens: false,
        is_bound: false,
        is_error: false,
    };

    fn translator(rebind: &[u64]) -> Translator {
        let nat = Nat {
            timeout: Some(Duration::from_secs(30)),
            rebind: rebind
                .iter()
                .map(|&seconds| Duration::from_secs(seconds))
                .collect(),
            new_address: false,
            is_outgoing: true,
        };
        Translator::new(&nat)
    }

    fn outcomes(translator: &Translator, packets: &[(u64, bool, Connection)]) -> Vec<bool> {
        let mut state = translator.lock();
        let pass = |&(at, leaves, connection): &(u64, bool, Connection)| match leaves {
            true => state.leave(at * SECOND, &connection, None).is_some(),
            false => state.enter(at * SECOND, &connection, None).is_some(),
        };
        packets.iter().map(pass).collect()
    }

    #[test]
    fn a_rebinding_ends_connections_that_addresses_identify() {
        let packets = |start: Connection, connection: Connection| {
            [
                (0, true, start),
                (1, false, connection),
                (4, true, connection),
                // The peer sends to the old port.
                (5, false, connection),
                (6, true, connection),
                (7, false, connection),
            ]
        };
        let nat = translator(&[5]);
        assert_eq!(
            outcomes(&nat, &packets(SYN, TCP)),
            [true, true, true, false, false, false]
        );
        assert_eq!(
            outcomes(&nat, &packets(QUIC, QUIC)),
            [true, true, true, false, true, true]
        );
        // Another connection of the same hosts is accepted.
        assert_eq!(outcomes(&nat, &[(8, true, SYN), (9, false, TCP)]), [true, true]);
    }

    /// A packet to the old port does not reach the new one, and one to the right port gets the address inside.
    #[test]
    fn packets_reach_the_address_that_they_are_sent_to() {
        for new_address in [false, true] {
            let nat = Nat {
                timeout: None,
                rebind: vec![Duration::from_secs(5)],
                new_address,
                is_outgoing: true,
            };
            let nat = Translator::new(&nat);
            let mut state = nat.lock();
            let inside = Some(ExternalAddress { host: 3, port: 9 });
            let old = state.leave(SECOND, &QUIC, inside).unwrap();
            assert_eq!(old, Some(ExternalAddress { host: 0, port: 1 }));
            assert_eq!(state.enter(2 * SECOND, &QUIC, old), Some(inside));
            let new = state.leave(6 * SECOND, &QUIC, inside).unwrap();
            let host = u16::from(new_address);
            assert_eq!(new, Some(ExternalAddress { host, port: 2 }));
            assert_eq!(state.enter(7 * SECOND, &QUIC, old), None);
            assert_eq!(state.enter(7 * SECOND, &QUIC, new), Some(inside));
        }
    }

    /// Packets from the inside keep a mapping, and those from the outside do not (RFC 4787, section 4.3, REQ-6).
    #[test]
    fn a_mapping_ends_after_the_timeout() {
        let nat = translator(&[]);
        let packets = [
            (0, true, SYN),
            (30, true, TCP),
            (59, false, TCP),
            (60, false, TCP),
            (61, false, TCP),
            (62, true, TCP),
        ];
        assert_eq!(outcomes(&nat, &packets), [true, true, true, true, false, false]);
    }

    /// RFC 4787, REQ-5, and RFC 5382, REQ-5.
    #[test]
    fn default_timeouts_are_those_of_the_protocol() {
        for (start, connection, timeout) in [(SYN, TCP, 7440), (QUIC, QUIC, 120)] {
            let nat = Translator::new(&NatConfig::default().resolve(true));
            let packets = [
                (0, true, start),
                (timeout, false, connection),
                (timeout + 1, false, connection),
            ];
            assert_eq!(outcomes(&nat, &packets), [true, true, false], "{connection:?}");
        }
    }

    /// RFC 5508, section 4: errors need a mapping, and neither create nor refresh one.
    #[test]
    fn icmp_errors_belong_to_the_connection_of_the_quoted_packet() {
        for (start, connection) in [(SYN, TCP), (QUIC, QUIC)] {
            let error = Connection {
                is_error: true,
                ..connection
            };
            let packets = [
                (0, true, error),
                (0, false, error),
                (1, true, start),
                (20, true, error),
                (21, false, error),
                (31, false, connection),
                // 30 s after the last packet that is not an error.
                (32, true, error),
                (32, false, error),
                (32, false, connection),
            ];
            let expected = [false, false, true, true, true, true, false, false, false];
            assert_eq!(outcomes(&translator(&[]), &packets), expected, "{connection:?}");
        }
        // After a rebinding, an error does not revive a mapping.
        let error = Connection {
            is_error: true,
            ..TCP
        };
        let packets = [(0, true, SYN), (6, true, error), (7, false, TCP), (8, true, TCP)];
        assert_eq!(outcomes(&translator(&[5]), &packets), [true, false, false, false]);
    }

    #[test]
    fn the_outside_starts_no_connection() {
        assert_eq!(
            outcomes(
                &translator(&[]),
                &[(0, false, SYN), (1, false, QUIC), (2, true, TCP)]
            ),
            [false; 3]
        );
    }

    proptest! {
        /// A packet from the outside passes only while the last packet from the inside passed, since the last rebinding and
        /// within the timeout. Datagrams from the inside always pass.
        #[test]
        fn replies_need_a_recent_packet(
            rebind in proptest::collection::btree_set(1_u64..200, 0..4),
            packets in proptest::collection::vec((0_u64..20, any::<bool>(), 0_u8..3), 1..80),
        ) {
            let times: Vec<u64> = rebind.into_iter().collect();
            let nat = translator(&times);
            let mut at = 0;
            let mut last: [Option<(u64, bool)>; 2] = [None; 2];
            for (gap, leaves, kind) in packets {
                at += gap;
                let connection = [TCP, SYN, QUIC][usize::from(kind)];
                let which = usize::from(kind == 2);
                let passes = outcomes(&nat, &[(at, leaves, connection)])[0];
                if leaves {
                    prop_assert!(passes || (connection.is_bound && !connection.opens));
                    last[which] = Some((at, passes));
                } else {
                    let expected = last[which].is_some_and(|(used, passed)| {
                        passed && at - used <= 30 && !times.iter().any(|&time| used < time && time <= at)
                    });
                    prop_assert_eq!(passes, expected);
                }
            }
        }
    }
}
