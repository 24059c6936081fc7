//! An emulated network with its hosts.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::JoinHandle;

use capture::{CaptureReport, CaptureWriter};
use foundation::{Duration, Instant, Problem};
use network::{HostId, Network};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::write;
use socket::clock::Clock;

use super::command_environment::CommandEnvironment;
use super::default_controller::{self, Selection};
use super::device_port::DevicePort;
use super::drops::{self, HostDrops};
use super::emulator::{ControlChannel, Emulator, EmulatorReport, Job};
use super::host::{DeviceOptions, Host, HostKernel};
use super::keeper::Keeper;
use super::namespace::Namespace;
use super::offload::burst;
use super::port::Port;
use super::routing::{RouterState, Routing};
use super::sysctl::{Settings, SysctlDifference};
use super::tap::{PacketEvent, SegmentCounts, Tap};
use crate::address::{Block, to_ipv6};
use crate::error::{Error, system_error};
use crate::options::{EmulationOptions, Sysctl};
use crate::packet::IpPacket;

/// A network on wall time whose hosts are network namespaces with the kernel's own stack. Dropping it removes
/// everything that it created; so does the end of the process, however it ends.
#[derive(Debug)]
pub struct Emulation {
    block: Block,
    clock: Clock,
    jobs: Sender<Job>,
    wake: Arc<OwnedFd>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    // Dropped in this order, so that commands end before their namespaces.
    keeper: Keeper,
    hosts: Vec<Namespace>,
    /// Number of ways by host.
    ways: Vec<u8>,
    routers: Vec<RouterState>,
    /// Counters at the start, by host; zero in a new namespace.
    dropped_before: Vec<HostDrops>,
    backlog_before: u64,
    has_ipv6: bool,
    /// Settings of hosts that differ from the machine's.
    sysctls: Vec<SysctlDifference>,
    /// How hosts select the requested congestion controller.
    selection: Option<Selection>,
}

impl Emulation {
    /// Creates the hosts and starts the emulator's thread.
    ///
    /// # Errors
    /// Names the missing permission or device and how to fix it.
    pub fn start(options: EmulationOptions) -> Result<Self, Error> {
        options.check()?;
        let outer = options.nested.then(OuterHost::find).transpose()?;
        let block = Block::nested(outer.as_ref().map_or(0, |outer| outer.depth));
        let (network, routing) = Routing::build(&options.topology, options.streams, block);
        let routers: Vec<RouterState> = routing.routers().collect();
        let names = options.topology.hosts().iter().map(String::as_str);
        let addresses = (0..).map(|host| block.host(HostId(host)));
        let others = routers
            .iter()
            .map(|router| (router.name.as_str(), router.address));
        let count = options.topology.hosts().len();
        let has_ipv6 = options.kernel.has_ipv6 && Host::can_have_ipv6(options.mtu);
        let machines = names.zip(addresses).chain(others);
        let keeper = Keeper::start(CommandEnvironment::new(machines, count, has_ipv6))?;
        let (mut hosts, mut devices, mut ways) = (Vec::new(), Vec::new(), Vec::new());
        let count = count as u32;
        let burst = if options.offload {
            burst::most_bytes(&options.topology)
        } else {
            0
        };
        let device_options = DeviceOptions {
            mtu: options.mtu,
            burst,
        };
        let kernels = HostKernels::new(&options)?;
        let (mut sysctls, mut selection) = (Vec::new(), None);
        for host in (0..count - u32::from(outer.is_some())).map(HostId) {
            let loopback = options.topology.loopback();
            let kernel = kernels.host(host);
            let made = Host::create(
                block,
                host,
                (routing.ways(host), routing.longest()),
                device_options,
                loopback,
                &kernel,
            )?;
            sysctls.extend(kernels.differences(host, &made.namespace)?);
            selection = made.selection.or(selection);
            hosts.push(made.namespace);
            ways.push(made.ports.len() as u8);
            devices.push(made.ports);
        }
        if let Some(outer) = outer {
            let address = block.host(HostId(count - 1));
            let made = Host::join(
                outer.namespace,
                address,
                block,
                device_options,
                options.kernel.has_ipv6,
            )?;
            hosts.push(made.namespace);
            ways.push(1);
            devices.push(made.ports);
        }
        let system = |error| system_error("start the emulator", error);
        let dropped_before = read_drops(&hosts).map_err(system)?;
        let backlog_before = drops::backlog().map_err(system)?;
        let clock = Clock::new();
        let emulator = Emulator::new(network, routing, clock, devices, burst as usize).map_err(system)?;
        let (jobs, received) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(wake.map_err(|error| system(error.into()))?);
        let stop = Arc::new(AtomicBool::new(false));
        let control = ControlChannel {
            jobs: received,
            wake: Arc::clone(&wake),
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new()
            .name("emulator".into())
            .spawn(move || emulator.run(&control, options.real_time))
            .map_err(system)?;
        Ok(Self {
            block,
            clock,
            jobs,
            wake,
            stop,
            thread: Some(thread),
            keeper,
            hosts,
            ways,
            routers,
            dropped_before,
            backlog_before,
            has_ipv6,
            sysctls,
            selection,
        })
    }

    /// The settings of hosts that differed from those of this machine when the emulation started; none unless hosts
    /// inherit the machine's.
    #[must_use]
    pub fn sysctl_differences(&self) -> &[SysctlDifference] {
        &self.sysctls
    }

    /// The congestion controller of programs at a host that select none; `requested` is the one of the options.
    pub(crate) fn controller(&self, host: HostId, requested: Option<&str>) -> Option<String> {
        match (self.selection, requested) {
            (Some(Selection::Routes), Some(name)) => {
                let name = default_controller::label(name);
                Some(format!(
                    "{name} (by the routes, also for programs that select another)"
                ))
            }
            _ => self.in_host(host, default_controller::here),
        }
    }

    /// Starts a capture of all packets that hosts send and receive. Dropping the emulation or
    /// [`stop_capture`](Self::stop_capture) completes it.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// If the emulator has failed.
    pub(crate) fn capture(&self, file: &Path, hosts: &[String]) -> Result<CaptureWriter, Error> {
        let (writer, tap) = CaptureWriter::create(file, hosts, self.clock.now())
            .map_err(|error| system_error(format!("write {}", file.display()), error))?;
        self.run_in_emulator(move |emulator, _| emulator.capture = Some(tap));
        Ok(writer)
    }

    /// Completes the file of a capture.
    ///
    /// # Errors
    /// The system's, for example for a full disk.
    ///
    /// # Panics
    /// If the emulator has failed.
    pub(crate) fn stop_capture(&self, writer: CaptureWriter) -> Result<CaptureReport, Error> {
        self.run_in_emulator(|emulator, _| emulator.capture = None);
        let what = format!("write {}", writer.file().display());
        writer.finish().map_err(|error| system_error(what, error))
    }

    /// Sends SIGTERM to all commands at hosts and their descendants, and waits until they have ended: at most for the
    /// time that `patience` returns, which it may shorten meanwhile. The end of the emulation kills the rest.
    pub fn stop_commands(&self, patience: &mut dyn FnMut() -> Duration) {
        self.keeper.stop_commands(patience);
    }

    /// The number of hosts.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// A host's address, valid only within the emulation.
    #[must_use]
    pub const fn host_address(&self, host: HostId) -> Ipv4Addr {
        self.block.host(host)
    }

    /// A host's IPv6 address, valid only within the emulation; `None` without IPv6.
    #[must_use]
    pub fn host_address_v6(&self, host: HostId) -> Option<Ipv6Addr> {
        self.has_ipv6.then(|| to_ipv6(self.block.host(host)))
    }

    /// The routers with addresses, in the order of the topology's nodes. A router at the node of a host with its name
    /// uses the host's address instead.
    #[must_use]
    pub fn routers(&self) -> &[RouterState] {
        &self.routers
    }

    /// The number of a host's link-disjoint ways to others. Each is a device with an address.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn ways(&self, host: HostId) -> u8 {
        self.ways[host.0 as usize]
    }

    /// A host's address on one of its ways, from 0. Packets from this address use the way, and so do packets to it from
    /// a host's first address.
    #[must_use]
    pub const fn way_address(&self, host: HostId, way: u8) -> Ipv4Addr {
        self.block.on_way(host, way)
    }

    /// The network's wall clock.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// A host's namespace.
    ///
    /// # Panics
    /// If there is no such host.
    #[must_use]
    pub fn namespace(&self, host: HostId) -> &Namespace {
        &self.hosts[host.0 as usize]
    }

    /// Runs `f` in a thread in the host's namespace. Sockets created there stay there.
    ///
    /// # Panics
    /// If `f` panics, or if the process has dropped the permission to enter namespaces.
    pub fn in_host<T: Send>(&self, host: HostId, f: impl FnOnce() -> T + Send) -> T {
        self.namespace(host)
            .run(f)
            .unwrap_or_else(|error| panic!("cannot enter the namespace of host {}: {error}", host.0))
    }

    /// Starts a command at a host, where host names resolve. The end of the emulation kills it and its descendants.
    ///
    /// # Errors
    /// The system's, for example for an unknown command.
    pub fn spawn_in_host(&self, host: HostId, command: Command) -> io::Result<Child> {
        self.keeper
            .spawn(host.0 as usize, self.namespace(host).as_fd(), command)
    }

    /// Calls `f` with the network and the time, in the emulator's thread, after everything due has moved. `f` must
    /// neither send packets nor poll deliveries.
    ///
    /// # Panics
    /// If `f` panics, or if the emulator has failed.
    pub fn with_network<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Network<IpPacket, Tap>, Instant) -> R + Send + 'static,
    ) -> R {
        self.run_in_emulator(|emulator, now| f(&mut emulator.network, now))
    }

    /// Starts recording all packet events with the packets' bytes, for [`take_packets`](Self::take_packets).
    ///
    /// # Panics
    /// If the emulator has failed.
    pub fn record_packets(&self) {
        self.run_in_emulator(|emulator, _| emulator.network.observer_mut().record_packets());
    }

    /// Returns the packet events since [`record_packets`](Self::record_packets) or the last call, in order of time.
    ///
    /// # Panics
    /// If the emulator has failed.
    #[must_use]
    pub fn take_packets(&self) -> Vec<PacketEvent> {
        self.run_in_emulator(|emulator, _| emulator.network.observer_mut().take())
    }

    /// Starts counting TCP segments, for [`take_counts`](Self::take_counts). It keeps no packets.
    pub(crate) fn count_segments(&self) {
        self.run_in_emulator(|emulator, _| emulator.network.observer_mut().count_segments());
    }

    /// Returns the TCP segments from or to each socket since [`count_segments`](Self::count_segments) or the last call.
    pub(crate) fn take_counts(&self) -> SegmentCounts {
        self.run_in_emulator(|emulator, _| emulator.network.observer_mut().take_counts())
    }

    /// Whether the emulator's thread is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the emulator's counters.
    ///
    /// # Panics
    /// If the emulator has failed.
    #[must_use]
    pub fn report(&self) -> EmulatorReport {
        self.run_in_emulator(|emulator, _| emulator.report.clone())
    }

    /// Returns the packets that each host's kernel has dropped. Link counters do not include them.
    ///
    /// # Errors
    /// The system's.
    pub fn host_drops(&self) -> Result<Vec<HostDrops>, Error> {
        let now = read_drops(&self.hosts).map_err(|error| system_error("count drops in hosts", error))?;
        let since = now.into_iter().zip(&self.dropped_before);
        Ok(since.map(|(now, &before)| now - before).collect())
    }

    /// Returns the packets dropped at full processor backlogs, before any socket, from any sender.
    ///
    /// # Errors
    /// The system's.
    pub fn backlog_drops(&self) -> Result<u64, Error> {
        let now = drops::backlog().map_err(|error| system_error("count drops in backlogs", error))?;
        Ok(now.saturating_sub(self.backlog_before))
    }

    /// Attaches a user-space stack to a host until the port is dropped. It gets the TCP ports `share` and the kernel keeps all
    /// other traffic; with `None` it replaces the kernel.
    ///
    /// # Errors
    /// The system's.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn attach(&self, host: HostId, share: Option<RangeInclusive<u16>>) -> io::Result<Port> {
        let (port, theirs) = Port::pair()?;
        self.run_in_emulator(move |emulator, _| emulator.attach(host, theirs, share))?;
        Ok(port)
    }

    /// Inserts a gateway between the kernel and the network of a host with one device, until the first port is dropped.
    /// The first port leads to the network, the second to the kernel.
    ///
    /// # Errors
    /// `Unsupported` for a host with several ways, and the system's.
    ///
    /// # Panics
    /// If there is no such host.
    pub fn interpose(&self, host: HostId) -> io::Result<(Port, DevicePort)> {
        let ways = self.ways(host);
        if ways > 1 {
            let message = format!("the host has {ways} devices: a gateway needs a host with one");
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let network = self.attach(host, None)?;
        let device = self.run_in_emulator(move |emulator, _| emulator.copy_of_device(host))?;
        let kernel = DevicePort::new(device);
        Ok((network, kernel))
    }

    fn run_in_emulator<R: Send + 'static>(
        &self,
        f: impl FnOnce(&mut Emulator, Instant) -> R + Send + 'static,
    ) -> R {
        let (reply, answer) = sync_channel(1);
        let job: Job = Box::new(move |emulator, now| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(emulator, now)));
            let _ = reply.send(result);
        });
        let sent = self.jobs.send(job).is_ok();
        self.wake();
        match answer.recv() {
            Ok(result) if sent => result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            _ => panic!("the emulator has failed"),
        }
    }

    fn wake(&self) {
        // A full counter wakes the thread too.
        let _ = write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read_drops(hosts: &[Namespace]) -> io::Result<Vec<HostDrops>> {
    hosts.iter().map(|host| host.run(HostDrops::read)?).collect()
}

/// The kernel's settings of all hosts.
struct HostKernels<'a> {
    options: &'a EmulationOptions,
    /// The settings of the calling thread's namespace, if hosts have them.
    machine: Option<Settings>,
    inherited: Settings,
}

impl<'a> HostKernels<'a> {
    fn new(options: &'a EmulationOptions) -> Result<Self, Error> {
        let machine = options.kernel.inherits.then(Settings::here);
        let inherited = match &machine {
            None => Settings::default(),
            Some(machine) => {
                let fresh = Namespace::create()?.run(Settings::here);
                let fresh = fresh.map_err(|error| system_error("enter a network namespace", error))?;
                machine.changes_from(&fresh)
            }
        };
        Ok(Self {
            options,
            machine,
            inherited,
        })
    }

    fn host(&self, host: HostId) -> HostKernel<'_> {
        HostKernel {
            inherited: &self.inherited,
            options: &self.options.kernel,
            name: &self.options.topology.hosts()[host.0 as usize],
        }
    }

    /// The settings of a new host that differ from the machine's. Hosts without settings of their own equal the first
    /// one, whose differences are those of all hosts.
    fn differences(&self, host: HostId, namespace: &Namespace) -> Result<Vec<SysctlDifference>, Error> {
        let kernel = self.host(host);
        let of_host = |sysctl: &&Sysctl| sysctl.host.as_deref() == Some(kernel.name);
        let own: Vec<&Sysctl> = self.options.kernel.sysctls.iter().filter(of_host).collect();
        let Some(machine) = &self.machine else {
            return Ok(Vec::new());
        };
        if host.0 > 0 && own.is_empty() {
            return Ok(Vec::new());
        }
        let found = namespace.run(|| machine.differences_here(kernel.requested()));
        let mut found = found.map_err(|error| system_error("enter a network namespace", error))?;
        found.retain_mut(|difference| {
            let is_own = own.iter().any(|sysctl| sysctl.key == difference.key);
            difference.host = is_own.then(|| kernel.name.to_owned());
            is_own || host.0 == 0
        });
        Ok(found)
    }
}

/// The emulated host of the calling thread.
struct OuterHost {
    namespace: Namespace,
    depth: u8,
}

impl OuterHost {
    fn find() -> Result<Self, Error> {
        let depth = super::host::depth_here().ok_or_else(|| {
            Error::Option(
                Problem::new("nested", "this process is not at a host of an emulated network").to_string(),
            )
        })?;
        Ok(Self {
            namespace: Namespace::current()?,
            depth: depth + 1,
        })
    }
}
