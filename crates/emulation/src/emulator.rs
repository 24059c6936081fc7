//! The thread that runs the network on wall time. Packets enter the network as soon as they are read from a host's
//! port, and are written to the destination's port when they are due. Packets that hosts pass as one are single packets
//! in the network.

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

use super::device::{self, Device};
use super::offload::merge::Run;
use super::outbox::Outbox;
use super::priority;
use super::routing::{End, Routing};
use super::tap::Tap;
use crate::icmp::{self, Fault};
use crate::packet::IpPacket;
use crate::router;
use capture::CaptureTap;

/// Packets read from one port before due packets move again. Small enough to add only tens of microseconds to a delay.
const BATCH: u64 = 64;
/// How long packets are written before others are read, unless one write takes longer.
const SLICE: Duration = Duration::from_micros(100);
/// How long packets gather under load, like in a network card with interrupt coalescing. Otherwise the thread takes the
/// processor from the hosts' programs for every few packets.
const GATHERING: std::time::Duration = std::time::Duration::from_micros(50);
/// Packets that wait to be written, above which no packets are read: they wait at the hosts' devices instead.
const MOST_WAITING: usize = 512;
/// Ports per loop iteration.
const EVENTS: usize = 64;
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
    /// Packets from hosts that are not IP, and IPv6 packets to groups of hosts.
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
    devices: Vec<Device>,
    /// Host and way of each device.
    owners: Vec<(HostId, u8)>,
    /// Index of each host's first device, then the number of devices.
    first_device: Vec<usize>,
    /// User-space ports by host.
    attached: Vec<Option<UserPort>>,
    /// Packets for the devices.
    outbox: Outbox,
    /// The packets of the current write and their joined headers.
    run: Run,
    headers: Vec<u8>,
    buffer: Vec<u8>,
    pool: Vec<Vec<u8>>,
    /// Records the packets that hosts send and receive.
    pub(crate) capture: Option<CaptureTap>,
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
    /// `burst`: the most bytes that are written as one packet.
    pub(crate) fn new(
        network: Network<IpPacket, Tap>,
        routing: Routing,
        clock: Clock,
        hosts: Vec<Vec<Device>>,
        burst: usize,
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
        let limits = devices.iter().map(|device| device.merge_limits(burst));
        Ok(Self {
            network,
            report: EmulatorReport::new(count),
            outbox: Outbox::new(limits.collect()),
            run: Run::default(),
            headers: Vec::new(),
            routing,
            clock,
            epoll,
            attached: (0..count).map(|_| None).collect(),
            devices,
            owners,
            first_device,
            buffer: vec![0; device::LARGEST],
            pool: Vec::new(),
            capture: None,
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
                    _ if self.outbox.len() > MOST_WAITING => {}
                    port if port & ATTACHED != 0 => self.read_user_port(HostId(port as u32)),
                    device => self.read_device(device as usize),
                }
            }
            let now = self.clock.now();
            budget.count(now, self.report.read - before);
            self.advance(now);
            self.write_until(now + SLICE);
            let now = self.clock.now();
            match (
                rest.as_mut().and_then(|rest| rest.awake_until(now)),
                budget.pause(now, self.network.poll_timeout(), LONGEST),
            ) {
                // Meanwhile, packets queue and applications run.
                (Some(span), _) => std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos())),
                (None, Pause::Spin) => continue,
                (None, _) if rest.is_some() && budget.is_busy() && self.outbox.len() == 0 => {
                    std::thread::sleep(GATHERING);
                }
                // More packets may have arrived, or wait to be written.
                (None, Pause::Sleep(_)) if !events.is_empty() || self.outbox.len() > 0 => continue,
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
            self.write_until(Instant::MAX);
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
        let mut buffer = std::mem::take(&mut self.buffer);
        let until = self.report.read + BATCH;
        while self.report.read < until {
            let Ok(frame) = self.devices[device].read(&mut buffer) else {
                break;
            };
            let Some(mut packets) = frame.packets() else {
                self.report.read += 1;
                self.report.ignored += 1;
                continue;
            };
            let has_valid_checksum = packets.have_valid_checksums();
            let now = self.clock.now();
            loop {
                let mut bytes = self.empty_buffer();
                if !packets.next_into(&mut bytes) {
                    self.pool.push(bytes);
                    break;
                }
                self.enter(now, host, Some(way), bytes, has_valid_checksum);
            }
        }
        self.buffer = buffer;
    }

    fn empty_buffer(&mut self) -> Vec<u8> {
        let mut bytes = self.pool.pop().unwrap_or_default();
        bytes.clear();
        bytes
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
                Ok(length) => {
                    let mut bytes = self.empty_buffer();
                    bytes.extend_from_slice(&self.buffer[..length]);
                    self.enter(self.clock.now(), host, None, bytes, false);
                }
                Err(_) => return,
            }
        }
    }

    fn enter(
        &mut self,
        now: Instant,
        from: HostId,
        way: Option<u8>,
        bytes: Vec<u8>,
        has_valid_checksum: bool,
    ) {
        self.report.read += 1;
        let length = bytes.len();
        let Some(mut packet) = IpPacket::new(bytes) else {
            self.report.ignored += 1;
            return;
        };
        // Of IPv6 hosts: who is interested in a group of hosts, which no link leads to.
        if packet.is_ipv6() && packet.destination_address().is_multicast() {
            self.report.ignored += 1;
            return;
        }
        packet.has_valid_checksum = has_valid_checksum;
        packet.sent = Some((from, now));
        if let Some(capture) = &self.capture {
            capture.record(now, from.0 as usize, packet.bytes());
        }
        packet.way = way.unwrap_or_else(|| self.routing.way(&packet));
        match self.routing.route(&mut self.network, from, &packet) {
            Ok(route) => {
                self.network.send(now, Packet::new(route, length as u32, packet));
            }
            Err(fault) => {
                self.report.unroutable += 1;
                self.return_error(fault, &packet);
            }
        }
    }

    /// Moves due packets; those that reached a host wait to be written. Routers reply at the exact time of arrival.
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

    /// Passes a packet to a host: at once to a user-space port, else to the outbox.
    fn hand_over(&mut self, host: HostId, packet: IpPacket) {
        if let Some(capture) = &self.capture {
            capture.record(self.clock.now(), host.0 as usize, packet.bytes());
        }
        let place = host.0 as usize;
        let attached = self.attached[place].as_ref();
        let Some(own) = attached.filter(|attached| attached.is_for(&packet)) else {
            self.outbox.push(self.device(host, packet.way), packet);
            return;
        };
        let is_written = write(&own.port, packet.bytes()).is_ok();
        self.count_written(self.clock.now(), host, &packet, is_written);
        self.recycle(packet);
    }

    /// Writes waiting packets to the hosts' devices, until a time.
    fn write_until(&mut self, end: Instant) {
        let mut run = std::mem::take(&mut self.run);
        while let Some(device) = self.outbox.take(&mut run) {
            let now = self.clock.now();
            let is_written = self.devices[device].write_run(&run, &mut self.headers).is_ok();
            for packet in run.drain() {
                self.count_written(now, self.owners[device].0, &packet, is_written);
                self.recycle(packet);
            }
            if now >= end {
                break;
            }
        }
        self.run = run;
    }

    /// Counts a packet for a host that was written at `now`, or that its port did not accept.
    fn count_written(&mut self, now: Instant, host: HostId, packet: &IpPacket, is_written: bool) {
        if let Some((_, sent)) = packet.sent {
            let delay = now.saturating_since(sent);
            self.report.delays[host.0 as usize].saturating_record(delay.as_nanos());
        }
        match is_written {
            true => self.report.written += 1,
            false => self.report.refused += 1,
        }
    }

    /// Keeps a packet's buffer for reuse.
    fn recycle(&mut self, packet: IpPacket) {
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
    pub(crate) fn copy_of_device(&self, host: HostId) -> std::io::Result<Device> {
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
                self.devices[device].discard(&mut self.buffer);
                let data = EventData::new_u64(device as u64);
                let _ = epoll::add(&self.epoll, &self.devices[device], data, EventFlags::IN);
            }
        }
    }
}

/// Closes descriptors in parallel: the kernel takes about 16 ms for each device, mostly waiting.
fn close_all(mut devices: Vec<Device>) {
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
