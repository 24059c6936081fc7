//! Queue disciplines written in Python: `longfat.extensions.queue`.

use std::collections::HashMap;

use foundation::{Instant, Problem};
use network::queue::{Discipline, DisciplineSettings, QueueActions, QueueContext, QueuedPacket, Transmitter};
use network::{Count, QueueLimit};
use pyo3::prelude::*;
use pyo3::types::PyList;
use rand::Rng;

use super::instance::Instance;
use super::{Class, fail, problems, seconds};

event! {
    /// A packet in a queue.
    "longfat.extensions.queue"
    pub struct Packet {
        /// Number of the packet at this queue, from 0.
        number: u64;
        /// Bytes on the wire.
        size: u32 = 1500,
        /// Time of joining the queue.
        since: f64 = 0.0,
        /// Number of the route; flows are distinguished by `route` and `flow`.
        route: u32 = 0,
        /// Number of the flow on its route.
        flow: u64 = 0,
        /// Whether the packet is ECN-capable.
        ecn: bool = false,
        /// Whether the ECN code point is ECT(1) or CE: a packet of a scalable flow (RFC 9331).
        scalable: bool = false,
    }
}

event! {
    /// The arrival of a packet.
    "longfat.extensions.queue"
    pub struct Arrival {
        /// Time of the arrival.
        now: f64,
        /// The arriving packet.
        packet: Py<Packet>;
        /// Packets in the queue, the one in transmission included and the arriving one not.
        packets: u64 = 0,
        /// Bytes of these packets.
        bytes: u64 = 0,
        /// Whether the queue with the arriving packet stays within its limit.
        fits: bool = true,
        /// End of the current transmission, or of the last one if the link is idle.
        free_at: f64 = 0.0,
    }
}

/// The settings of a Python queue discipline.
pub struct ClassSettings(pub(super) Class);

impl DisciplineSettings for ClassSettings {
    fn validate(&self) -> Vec<Problem> {
        problems(self.0.make((1e7, 0_u64)))
    }

    fn build(&self, limit: QueueLimit, context: &QueueContext) -> Box<dyn Discipline + Send> {
        let seed = context.streams.stream("external").next_u64();
        let rate = context.rate.map(|rate| rate.bits_per_second() as f64);
        let instance = self.0.create((rate, seed));
        let (packets, bytes) = limit.packets_and_bytes();
        Box::new(PythonQueue {
            instance,
            limit: Count { packets, bytes },
            limit_text: limit.to_string(),
            waiting: Count::default(),
            packets: HashMap::new(),
            next: 0,
        })
    }
}

/// One link's queue.
struct PythonQueue {
    instance: Instance,
    limit: Count,
    limit_text: String,
    waiting: Count,
    /// Packets that arrived and were neither dropped nor sent, by number.
    packets: HashMap<u64, QueuedPacket>,
    next: u64,
}

impl PythonQueue {
    /// Removes a packet of the queue.
    fn take(
        &mut self,
        packet: &Bound<'_, PyAny>,
        received: &str,
        expected: &str,
    ) -> Result<QueuedPacket, String> {
        let Ok(known) = packet.cast::<Packet>() else {
            return Err(self.instance.wrong(received, packet, expected));
        };
        let taken = self.packets.remove(&known.get().number).ok_or_else(|| {
            let why = "it is not in the queue: it was sent or dropped already, or never arrived";
            self.instance.wrong(received, packet, why)
        })?;
        self.waiting.packets -= 1;
        self.waiting.bytes -= u64::from(taken.size());
        Ok(taken)
    }

    /// Carries out the drops and marks that the object requested in its last call.
    fn act(&mut self, py: Python<'_>, actions: &mut dyn QueueActions) -> Result<(), String> {
        let object = self.instance.object.clone_ref(py);
        let requests = object
            .bind(py)
            .getattr(pyo3::intern!(py, "_requests"))
            .and_then(|list| Ok(list.cast_into::<PyList>()?))
            .map_err(|error| format!("{}: {error}", self.instance.name))?;
        for request in requests.iter() {
            let (is_mark, packet): (bool, Bound<'_, PyAny>) = request
                .extract()
                .map_err(|error| format!("{}: {error}", self.instance.name))?;
            if is_mark {
                self.mark(&packet, actions)?;
            } else {
                actions.drop(self.take(&packet, "drop received", "expected a packet")?);
            }
        }
        if !requests.is_empty() {
            requests
                .del_slice(0, requests.len())
                .map_err(|error| format!("{}: {error}", self.instance.name))?;
        }
        Ok(())
    }

    fn mark(&self, packet: &Bound<'_, PyAny>, actions: &mut dyn QueueActions) -> Result<(), String> {
        let known = packet.cast::<Packet>().ok().map(|packet| packet.get().number);
        let Some(queued) = known.and_then(|number| self.packets.get(&number)) else {
            let why = "it is not in the queue";
            return Err(self.instance.wrong("mark received", packet, why));
        };
        if !actions.mark(queued) {
            let why = "it is not ECN-capable: drop it instead (RFC 3168)";
            return Err(self.instance.wrong("mark received", packet, why));
        }
        Ok(())
    }

    fn check_limit(&self, transmitter: &Transmitter) {
        let length = self.waiting + transmitter.sending;
        if length.packets > self.limit.packets || length.bytes > self.limit.bytes {
            fail(format!(
                "{}.enqueue left {} packets ({} bytes) in a queue with the limit {}: drop a packet if arrival.fits is false",
                self.instance.name, length.packets, length.bytes, self.limit_text
            ));
        }
    }
}

impl Discipline for PythonQueue {
    fn enqueue(
        &mut self,
        now: Instant,
        arriving: QueuedPacket,
        transmitter: &Transmitter,
        actions: &mut dyn QueueActions,
    ) {
        let length = self.waiting + transmitter.sending;
        let size = u64::from(arriving.size());
        let code_point = actions.ecn(&arriving);
        let packet = Packet {
            number: self.next,
            size: arriving.size(),
            since: seconds(arriving.since),
            route: arriving.route.0,
            flow: arriving.flow,
            ecn: code_point.is_capable(),
            scalable: code_point.is_scalable(),
        };
        self.packets.insert(self.next, arriving);
        self.next += 1;
        self.waiting = self.waiting
            + Count {
                packets: 1,
                bytes: size,
            };
        let packet = Python::attach(|py| Py::new(py, packet));
        let arrival = Arrival {
            now: seconds(now),
            packet: packet.unwrap_or_else(|error| fail(format!("{}: {error}", self.instance.name))),
            packets: length.packets,
            bytes: length.bytes,
            fits: length.packets < self.limit.packets && length.bytes + size <= self.limit.bytes,
            free_at: seconds(transmitter.free),
        };
        self.instance
            .call(|py| pyo3::intern!(py, "enqueue"), (arrival,), |_, _| Ok(()));
        Python::attach(|py| self.act(py, actions)).unwrap_or_else(|message| fail(message));
        self.check_limit(transmitter);
    }

    fn dequeue(&mut self, now: Instant, actions: &mut dyn QueueActions) -> Option<QueuedPacket> {
        let next = self.instance.call(
            |py| pyo3::intern!(py, "dequeue"),
            (seconds(now),),
            |_, result| Ok(result.unbind()),
        );
        let taken = Python::attach(|py| {
            self.act(py, actions)?;
            let next = next.bind(py);
            if !next.is_none() {
                return self
                    .take(next, "dequeue returned", "expected a packet, or None")
                    .map(Some);
            }
            match self.waiting.packets {
                0 => Ok(None),
                waiting => Err(format!(
                    "{}.dequeue returned None, but {waiting} packets wait: drop or return them",
                    self.instance.name
                )),
            }
        });
        taken.unwrap_or_else(|message| fail(message))
    }

    fn waiting(&self) -> Count {
        self.waiting
    }
}
