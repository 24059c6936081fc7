//! The thread that runs the network on wall time. Packets enter the network as soon as they are read from a host's
//! port, and are written to the destination's port when they are due.

use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use foundation::{Duration, Instant};
use hdrhistogram::Histogram;
use network::{HostId, Network, Packet};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, read, write};
use socket::clock::Clock;
use socket::rest::RestBudget;
use socket::spin::{Pause, SpinBudget, SpinLimits};
use socket::wait;

use super::priority;
use super::routing::{End, Routing};
use super::tap::Tap;
use crate::icmp::{self, Fault};
use crate::packet::IpPacket;
use crate::router;

/// Packets read from one port before due packets move again. Small enough to add only tens of microseconds to a delay.
const BATCH: usize = 16;
/// Ports per loop iteration.
const EVENTS: usize = 64;
/// Bytes of the largest IPv4 packet.
const LARGEST: usize = 65_536;
/// Buffers kept for reuse.
const POOL: usize = 16_384;
/// The longest sleep.
const LONGEST: Duration = Duration::from_secs(1);
/// Token of the eventfd that wakes the thread.
const WAKE: u64 = u64::MAX;
/// Bit that marks the tokens of user-space ports.
const ATTACHED: u64 = 1 << 32;

/// Counters of the emulator. Links have their own.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Packets read from hosts.
    pub read: u64,
    /// Packets written to hosts.
    pub written: u64,
    /// Packets that a host's port did not accept.
    pub refused: u64,
    /// Packets from hosts that are not IPv4.
    pub ignored: u64,
    /// Packets without a route.
    pub unroutable: u64,
    /// Packets that routers sent to hosts: ICMP messages and TCP resets.
    pub router_packets: u64,
    /// Whether the thread runs with real-time priority.
    pub real_time: bool,
    /// Lateness of the thread, in nanoseconds.
    pub late: Histogram<u64>,
    /// Delays of packets by destination host, in nanoseconds, from the read to just before the write.
    pub delays: Vec<Histogram<u64>>,
}

/// Nanoseconds up to 1000 s, with two significant digits.
fn histogram() -> Histogram<u64> {
    // These bounds are valid.
    Histogram::new_with_bounds(1, 1_000_000_000_000, 2).unwrap_or_else(|_| unreachable!())
}

impl EmulatorReport {
    fn new(hosts: usize) -> Self {
        Self {
            read: 0,
            written: 0,
            refused: 0,
            ignored: 0,
            unroutable: 0,
            router_packets: 0,
            real_time: false,
            late: histogram(),
            delays: vec![histogram(); hosts],
        }
    }
}

/// A function for the emulator's thread to run between two loop iterations.
pub(crate) type Job = Box<dyn FnOnce(&mut Emulator, Instant) + Send>;

/// A network on wall time.
pub(crate) struct Emulator {
    pub(crate) network: Network<IpPacket, Tap>,
    pub(crate) report: EmulatorReport,
    routing: Routing,
    clock: Clock,
    epoll: OwnedFd,
    /// The hosts' devices, host by host.
    devices: Vec<OwnedFd>,
    /// Host and way of each device.
    owners: Vec<(HostId, u8)>,
    /// Index of each host's first device, then the number of devices.
    first_device: Vec<usize>,
    /// User-space ports by host.
    attached: Vec<Option<UserPort>>,
    buffer: Vec<u8>,
    pool: Vec<Vec<u8>>,
}

/// A user-space port of a host.
struct UserPort {
    port: OwnedFd,
    /// The TCP ports of the stack if the kernel keeps all other traffic; `None` if the stack replaces the kernel.
    share: Option<RangeInclusive<u16>>,
}

impl UserPort {
    /// Whether a packet to the host goes to this port.
    fn is_for(&self, packet: &IpPacket) -> bool {
        let Some(share) = &self.share else {
            return true;
        };
        match packet.tcp_ports() {
            Some((_, destination)) => share.contains(&destination),
            // An ICMP error goes to the sender of the quoted packet.
            None => icmp::quoted(packet)
                .and_then(|quoted| quoted.tcp_ports())
                .is_some_and(|(source, _)| share.contains(&source)),
        }
    }
}

/// The emulator's connection to other threads.
pub(crate) struct ControlChannel {
    pub(crate) jobs: Receiver<Job>,
    /// Wakes the thread.
    pub(crate) wake: Arc<OwnedFd>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Emulator {
    pub(crate) fn new(
        network: Network<IpPacket, Tap>,
        routing: Routing,
        clock: Clock,
        hosts: Vec<Vec<OwnedFd>>,
    ) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let count = hosts.len();
        let (mut devices, mut owners, mut first_device) = (Vec::new(), Vec::new(), vec![0]);
        for (host, own) in hosts.into_iter().enumerate() {
            owners.extend((0..own.len()).map(|way| (HostId(host as u32), way as u8)));
            devices.extend(own);
            first_device.push(devices.len());
        }
        for (place, device) in devices.iter().enumerate() {
            epoll::add(&epoll, device, EventData::new_u64(place as u64), EventFlags::IN)?;
        }
        Ok(Self {
            network,
            report: EmulatorReport::new(count),
            routing,
            clock,
            epoll,
            attached: (0..count).map(|_| None).collect(),
            devices,
            owners,
            first_device,
            buffer: vec![0; LARGEST],
            pool: Vec::new(),
        })
    }

    /// Runs until stopped, then closes the hosts' devices.
    pub(crate) fn run(mut self, control: &ControlChannel, real_time: bool) -> std::io::Result<()> {
        let result = self.run_loop(control, real_time);
        close_all(std::mem::take(&mut self.devices));
        result
    }

    fn run_loop(&mut self, control: &ControlChannel, real_time: bool) -> std::io::Result<()> {
        wait::sharpen_timers();
        self.report.real_time = real_time && priority::become_real_time();
        let limits = if self.report.real_time {
            SpinLimits::REAL_TIME
        } else {
            wait::raise_priority();
            SpinLimits::SHARED
        };
        let mut budget = SpinBudget::new(limits);
        // Host threads on the same processor run only while this real-time thread rests.
        let mut rest = self.report.real_time.then(|| RestBudget::new(self.clock.now()));
        epoll::add(
            &self.epoll,
            &control.wake,
            EventData::new_u64(WAKE),
            EventFlags::IN,
        )?;
        let mut events = Vec::with_capacity(EVENTS);
        let none = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        while !control.stop.load(Ordering::Relaxed) {
            events.clear();
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                Some(&none),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let before = self.report.read;
            for event in &events {
                match event.data.u64() {
                    WAKE => self.run_jobs(control),
                    port if port & ATTACHED != 0 => self.read_user_port(HostId(port as u32)),
                    device => self.read_device(device as usize),
                }
            }
            let now = self.clock.now();
            budget.count(now, self.report.read - before);
            self.advance(now);
            let now = self.clock.now();
            match (
                rest.as_mut().and_then(|rest| rest.awake_until(now)),
                budget.pause(now, self.network.poll_timeout(), LONGEST),
            ) {
                // Meanwhile, packets queue and applications run.
                (Some(span), _) => std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos())),
                (None, Pause::Spin) => continue,
                // More packets may have arrived.
                (None, Pause::Sleep(_)) if !events.is_empty() => continue,
                (None, Pause::Sleep(span)) => {
                    wait::wait_any(&mut [PollFd::new(&self.epoll, PollFlags::IN)], span);
                }
            }
            if let Some(rest) = &mut rest {
                rest.slept_until(self.clock.now());
            }
        }
        Ok(())
    }

    /// Runs the jobs of other threads.
    fn run_jobs(&mut self, control: &ControlChannel) {
        // The read resets the counter. It fails if there is nothing to reset.
        let _ = read(&control.wake, &mut [0_u8; 8]);
        while let Ok(job) = control.jobs.try_recv() {
            let now = self.clock.now();
            self.advance(now);
            job(self, now);
        }
    }

    /// Reads packets from a host's device.
    fn read_device(&mut self, device: usize) {
        let (host, way) = self.owners[device];
        // A user-space port may have replaced the device since the event.
        if self.attached[host.0 as usize]
            .as_ref()
            .is_some_and(|own| own.share.is_none())
        {
            return;
        }
        for _ in 0..BATCH {
            match read(&self.devices[device], &mut self.buffer[..]) {
                Ok(0) | Err(_) => return,
                Ok(length) => self.enter(host, Some(way), length),
            }
        }
    }

    /// Reads packets from a user-space port.
    fn read_user_port(&mut self, host: HostId) {
        for _ in 0..BATCH {
            let Some(UserPort { port, .. }) = &self.attached[host.0 as usize] else {
                return;
            };
            match read(port, &mut self.buffer[..]) {
                // The stack closed its end.
                Ok(0) | Err(Errno::CONNRESET) => return self.detach(host),
                Ok(length) => self.enter(host, None, length),
                Err(_) => return,
            }
        }
    }

    fn enter(&mut self, from: HostId, way: Option<u8>, length: usize) {
        self.report.read += 1;
        let mut bytes = self.pool.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(&self.buffer[..length]);
        let Some(mut packet) = IpPacket::new(bytes) else {
            self.report.ignored += 1;
            return;
        };
        let now = self.clock.now();
        packet.sent = Some((from, now));
        packet.way = way.unwrap_or_else(|| self.routing.way(&packet));
        match self.routing.route(&mut self.network, from, &packet) {
            Ok(route) => {
                self.network
                    .send(self.clock.now(), Packet::new(route, length as u32, packet));
            }
            Err(fault) => {
                self.report.unroutable += 1;
                self.return_error(fault, &packet);
            }
        }
    }

    /// Moves due packets and writes those that reached a host. Routers reply at the exact time of arrival.
    fn advance(&mut self, now: Instant) {
        if let Some(due) = self.network.poll_timeout().filter(|&due| due <= now) {
            self.report.late.saturating_record((now - due).as_nanos());
        }
        // Packets over no link arrive at once.
        self.deliver(now);
        while let Some(at) = self.network.handle_timeouts_until_delivery(now) {
            self.deliver(at);
        }
        self.network.handle_timeout(now);
    }

    /// Handles packets that reached an end of their route, or a link with a smaller MTU, at time `at`.
    fn deliver(&mut self, at: Instant) {
        while let Some((end, mut packet)) = self.network.poll_delivery() {
            match self.routing.end(end) {
                End::Host(host) => {
                    packet.body.pass_routers(packet.hop.saturating_sub(1));
                    self.hand_over(host, packet.body);
                }
                End::Router(router) => self.arrive_at_router(at, router, packet),
            }
        }
        while let Some(refused) = self.network.poll_too_big() {
            let mtu = u16::try_from(refused.mtu).unwrap_or(u16::MAX);
            self.refuse_too_big(at, mtu, refused.packet);
        }
    }

    /// Handles a packet whose route ends at a router: it is for the router, has no route, or its time to live expired.
    fn arrive_at_router(&mut self, at: Instant, router: usize, mut packet: Packet<IpPacket>) {
        // Routers do not reply to each other.
        let Some((sender, _)) = packet.body.sent else {
            return;
        };
        packet.body.pass_routers(packet.hop.saturating_sub(1));
        // A router discards packets with a damaged header (RFC 1812, section 5.2.2).
        if !packet.body.has_right_header() {
            return;
        }
        let destination = packet.body.destination();
        let message = if self.routing.is_of(router, destination) {
            router::answer(&packet.body)
        } else {
            let fault = self.routing.fault(sender, packet.body.way, destination);
            self.report.unroutable += u64::from(fault.is_some());
            let fault = fault.unwrap_or(Fault::TimeExceeded);
            fault.message(&packet.body, self.routing.address(router))
        };
        self.send_back(at, sender, &packet, message);
    }

    /// Fragments a packet that exceeds the next link's MTU, or returns an error to its sender.
    fn refuse_too_big(&mut self, at: Instant, mtu: u16, mut packet: Packet<IpPacket>) {
        let (route, passed) = (packet.route, packet.hop);
        let Some(link) = self.network.route_links(route).nth(usize::from(passed)) else {
            return;
        };
        // The fragments continue from here.
        if let Some(parts) = packet.body.fragments(usize::from(mtu)) {
            for part in parts {
                let mut cut = Packet::new(route, part.bytes().len() as u32, part);
                cut.hop = passed;
                self.network.send(at, cut);
            }
            return;
        }
        let fault = Fault::TooBig { mtu };
        // The first link starts at the host itself, not at a router.
        if passed == 0 {
            return self.return_error(fault, &packet.body);
        }
        let Some((sender, _)) = packet.body.sent else {
            return;
        };
        packet.body.pass_routers(passed - 1);
        let message = fault.message(&packet.body, self.routing.address_before(link));
        self.send_back(at, sender, &packet, message);
    }

    /// Sends a router's message back over the links that the packet took.
    fn send_back(&mut self, at: Instant, to: HostId, about: &Packet<IpPacket>, message: Option<IpPacket>) {
        let back = self.routing.back(&mut self.network, about.route, about.hop, to);
        if let (Some(route), Some(mut message)) = (back, message) {
            self.report.router_packets += 1;
            message.way = about.body.way;
            let size = message.bytes().len() as u32;
            self.network.send(at, Packet::new(route, size, message));
        }
    }

    fn hand_over(&mut self, host: HostId, packet: IpPacket) {
        let place = host.0 as usize;
        if let Some((_, sent)) = packet.sent {
            let delay = self.clock.now() - sent;
            self.report.delays[place].saturating_record(delay.as_nanos());
        }
        let device = self.device(host, packet.way);
        let attached = self.attached[place].as_ref();
        let own = attached.filter(|attached| attached.is_for(&packet));
        let port = own.map_or(&self.devices[device], |own| &own.port);
        match write(port, packet.bytes()) {
            Ok(_) => self.report.written += 1,
            Err(_) => self.report.refused += 1,
        }
        if self.pool.len() < POOL {
            self.pool.push(packet.into_bytes());
        }
    }

    /// Returns an ICMP error to the sender without delay.
    fn return_error(&mut self, why: Fault, packet: &IpPacket) {
        let message = why.message(packet, self.routing.anonymous());
        if let (Some((sender, _)), Some(mut message)) = (packet.sent, message) {
            self.report.router_packets += 1;
            message.way = packet.way;
            self.hand_over(sender, message);
        }
    }

    /// Index of the device through which a way reaches a host.
    fn device(&self, host: HostId, way: u8) -> usize {
        let first = self.first_device[host.0 as usize];
        let device = first + way as usize;
        // A host with fewer ways than its peer uses its first device for the others.
        if device < self.first_device[host.0 as usize + 1] {
            device
        } else {
            first
        }
    }

    /// Attaches a user-space port, which replaces the host's devices or shares them by TCP port.
    pub(crate) fn attach(
        &mut self,
        host: HostId,
        port: OwnedFd,
        share: Option<RangeInclusive<u16>>,
    ) -> std::io::Result<()> {
        self.detach(host);
        let place = host.0 as usize;
        if share.is_none() {
            for device in &self.devices[self.first_device[place]..self.first_device[place + 1]] {
                epoll::delete(&self.epoll, device)?;
            }
        }
        let data = EventData::new_u64(ATTACHED | u64::from(host.0));
        epoll::add(&self.epoll, port.as_fd(), data, EventFlags::IN)?;
        self.attached[place] = Some(UserPort { port, share });
        Ok(())
    }

    /// Duplicates the descriptor of a host's only device, for a gateway.
    pub(crate) fn copy_of_device(&self, host: HostId) -> std::io::Result<OwnedFd> {
        self.devices[self.first_device[host.0 as usize]].try_clone()
    }

    /// Detaches a user-space port and reactivates the host's devices.
    fn detach(&mut self, host: HostId) {
        let place = host.0 as usize;
        if let Some(attached) = self.attached[place].take() {
            let _ = epoll::delete(&self.epoll, &attached.port);
            if attached.share.is_some() {
                return;
            }
            for device in self.first_device[place]..self.first_device[place + 1] {
                // Discard packets that the kernel sent meanwhile.
                while read(&self.devices[device], &mut self.buffer[..]).is_ok() {}
                let data = EventData::new_u64(device as u64);
                let _ = epoll::add(&self.epoll, &self.devices[device], data, EventFlags::IN);
            }
        }
    }
}

/// Closes descriptors in parallel: the kernel takes about 16 ms for each device, mostly waiting.
fn close_all(mut devices: Vec<OwnedFd>) {
    const AT_ONCE: usize = 64;
    let share = devices.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        while devices.len() > share {
            let part = devices.split_off(devices.len() - share);
            // If no thread starts, dropping the closure closes its descriptors.
            let _ = std::thread::Builder::new()
                .name("closer".into())
                .spawn_scoped(scope, move || drop(part));
        }
        drop(devices);
    });
}
