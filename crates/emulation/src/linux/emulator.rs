//! The thread that owns the network and wall time: packets are read from the hosts' ports, enter the network when they
//! are read, and are written to the port of the host that they reach when they are due.

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

/// Packets read from one port before what is due is looked after again: few enough to add no more than some
/// tens of microseconds to anybody's delay.
const BATCH: usize = 16;
/// Ports looked at in one turn.
const EVENTS: usize = 64;
/// Bytes of the largest IPv4 packet.
const LARGEST: usize = 65_536;
/// Buffers kept for packets to come.
const POOL: usize = 16_384;
/// With nothing to do it looks around this often.
const LONGEST: Duration = Duration::from_secs(1);
/// The token of the descriptor that wakes the thread.
const WAKE: u64 = u64::MAX;
/// The bit by which tokens of hosts' user-space ports differ from those of devices.
const ATTACHED: u64 = 1 << 32;

/// What the emulator has done besides what its links count.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Packets that hosts have sent.
    pub read: u64,
    /// Packets that have been handed to hosts.
    pub written: u64,
    /// Packets for which a host had no room.
    pub refused: u64,
    /// What hosts have sent that is no IPv4 packet.
    pub ignored: u64,
    /// Packets to where no path leads.
    pub unroutable: u64,
    /// What routers have sent to hosts: ICMP messages, and resets of TCP.
    pub router_packets: u64,
    /// Whether the thread runs with real-time priority.
    pub real_time: bool,
    /// How late the thread was for what was due, in nanoseconds.
    pub late: Histogram<u64>,
    /// How long the packets that reached a host were on their way, in nanoseconds, by host: from when they were read to
    /// just before they were written.
    pub delays: Vec<Histogram<u64>>,
}

/// Of nanoseconds, from 1 to 1000 s, to two digits.
fn histogram() -> Histogram<u64> {
    // Bounds that are in order are never refused.
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

/// What others let the thread do between two turns of its loop.
pub(crate) type Job = Box<dyn FnOnce(&mut Emulator, Instant) + Send>;

/// A network on wall time.
pub(crate) struct Emulator {
    pub(crate) network: Network<IpPacket, Tap>,
    pub(crate) report: EmulatorReport,
    routing: Routing,
    clock: Clock,
    epoll: OwnedFd,
    /// The devices of the hosts, those of one behind those of the one before.
    devices: Vec<OwnedFd>,
    /// Whose each device is, and of which way.
    owners: Vec<(HostId, u8)>,
    /// Where the devices of each host begin, and behind the last one's.
    first_device: Vec<usize>,
    /// The user-space ports that have taken their places.
    attached: Vec<Option<UserPort>>,
    buffer: Vec<u8>,
    pool: Vec<Vec<u8>>,
}

/// A user-space port of a host.
struct UserPort {
    port: OwnedFd,
    /// The TCP ports that are its own, where the host's kernel has everything else.
    share: Option<RangeInclusive<u16>>,
}

impl UserPort {
    /// Whether a packet to the host is for the port rather than for the kernel.
    fn is_for(&self, packet: &IpPacket) -> bool {
        let Some(share) = &self.share else {
            return true;
        };
        match packet.tcp_ports() {
            Some((_, destination)) => share.contains(&destination),
            // What a router says about a packet goes to who has sent it.
            None => icmp::quoted(packet)
                .and_then(|quoted| quoted.tcp_ports())
                .is_some_and(|(source, _)| share.contains(&source)),
        }
    }
}

/// How others reach the thread.
pub(crate) struct ControlChannel {
    pub(crate) jobs: Receiver<Job>,
    /// An eventfd that wakes it.
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

    /// Runs until it is stopped; then the hosts' devices are gone.
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
        // Threads of hosts that share the processor with a real-time one get what it leaves them.
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
                // Packets wait meanwhile, and their applications run.
                (Some(span), _) => std::thread::sleep(std::time::Duration::from_nanos(span.as_nanos())),
                (None, Pause::Spin) => continue,
                // There may be more of what was there a moment ago.
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

    /// Does what others ask for.
    fn run_jobs(&mut self, control: &ControlChannel) {
        // Reading resets the counter; that it fails means that there is nothing to reset.
        let _ = read(&control.wake, &mut [0_u8; 8]);
        while let Ok(job) = control.jobs.try_recv() {
            let now = self.clock.now();
            self.advance(now);
            job(self, now);
        }
    }

    /// Reads what a host has sent out of one of its devices.
    fn read_device(&mut self, device: usize) {
        let (host, way) = self.owners[device];
        // The port has taken the device's place since the event.
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

    /// Reads what a user-space port has sent.
    fn read_user_port(&mut self, host: HostId) {
        for _ in 0..BATCH {
            let Some(UserPort { port, .. }) = &self.attached[host.0 as usize] else {
                return;
            };
            match read(port, &mut self.buffer[..]) {
                // Its other end is closed.
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

    /// Moves what is due, and hands over what has reached a host. Routers answer at the very moment at which a packet
    /// reaches them.
    fn advance(&mut self, now: Instant) {
        if let Some(due) = self.network.poll_timeout().filter(|&due| due <= now) {
            self.report.late.saturating_record((now - due).as_nanos());
        }
        // What has entered since the last turn may have arrived already, over no link.
        self.deliver(now);
        while let Some(at) = self.network.handle_timeouts_until_delivery(now) {
            self.deliver(at);
        }
        self.network.handle_timeout(now);
    }

    /// Takes out what has arrived, and what was too large for a link, at `at`.
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

    /// A packet has reached the router at which its route ends: it is for the router itself, knows no way further, or has
    /// no hop left.
    fn arrive_at_router(&mut self, at: Instant, router: usize, mut packet: Packet<IpPacket>) {
        // Routers do not tell each other anything.
        let Some((sender, _)) = packet.body.sent else {
            return;
        };
        packet.body.pass_routers(packet.hop.saturating_sub(1));
        // A router that sees a damaged header says nothing (RFC 1812, section 5.2.2).
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

    /// A packet was too large for the next link of its route: it is cut, or its sender is told.
    fn refuse_too_big(&mut self, at: Instant, mtu: u16, mut packet: Packet<IpPacket>) {
        let (route, passed) = (packet.route, packet.hop);
        let Some(link) = self.network.route_links(route).nth(usize::from(passed)) else {
            return;
        };
        // What may be cut is, and goes on from here.
        if let Some(parts) = packet.body.fragments(usize::from(mtu)) {
            for part in parts {
                let mut cut = Packet::new(route, part.bytes().len() as u32, part);
                cut.hop = passed;
                self.network.send(at, cut);
            }
            return;
        }
        let fault = Fault::TooBig { mtu };
        // The sender's own link begins at no router.
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

    /// Sends what a router says of a packet over the links that the packet has taken, the other way round.
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

    /// Tells the sender of a packet at once why it goes nowhere.
    fn return_error(&mut self, why: Fault, packet: &IpPacket) {
        let message = why.message(packet, self.routing.anonymous());
        if let (Some((sender, _)), Some(mut message)) = (packet.sent, message) {
            self.report.router_packets += 1;
            message.way = packet.way;
            self.hand_over(sender, message);
        }
    }

    /// The device by which a way reaches a host.
    fn device(&self, host: HostId, way: u8) -> usize {
        let first = self.first_device[host.0 as usize];
        let device = first + way as usize;
        // A host with fewer ways than its peer has one that all of them lead to.
        if device < self.first_device[host.0 as usize + 1] {
            device
        } else {
            first
        }
    }

    /// Puts a user-space port in the place of a host's devices, or beside them for some TCP ports.
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

    /// The device of a host that has one, for who stands between its kernel and the network.
    pub(crate) fn copy_of_device(&self, host: HostId) -> std::io::Result<OwnedFd> {
        self.devices[self.first_device[host.0 as usize]].try_clone()
    }

    /// Lets the host's devices have their place back.
    fn detach(&mut self, host: HostId) {
        let place = host.0 as usize;
        if let Some(attached) = self.attached[place].take() {
            let _ = epoll::delete(&self.epoll, &attached.port);
            if attached.share.is_some() {
                return;
            }
            for device in self.first_device[place]..self.first_device[place + 1] {
                // What the host's kernel has tried to send meanwhile is not for now.
                while read(&self.devices[device], &mut self.buffer[..]).is_ok() {}
                let data = EventData::new_u64(device as u64);
                let _ = epoll::add(&self.epoll, &self.devices[device], data, EventFlags::IN);
            }
        }
    }
}

/// Closes descriptors side by side: the kernel takes about 16 ms to end a device, most of which it waits.
fn close_all(mut devices: Vec<OwnedFd>) {
    const AT_ONCE: usize = 64;
    let share = devices.len().div_ceil(AT_ONCE).max(1);
    std::thread::scope(|scope| {
        while devices.len() > share {
            let part = devices.split_off(devices.len() - share);
            // Where there can be no more threads, what the closure has been given is closed at once.
            let _ = std::thread::Builder::new()
                .name("closer".into())
                .spawn_scoped(scope, move || drop(part));
        }
        drop(devices);
    });
}
