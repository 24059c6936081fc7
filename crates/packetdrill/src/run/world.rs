//! The state of a script's execution: virtual time, files, and connections.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use foundation::kinds::Written as _;
use foundation::{Duration, Generator, Instant, Size, Streams};
use transport::mptcp::{self, MptcpConfig, MptcpKeys, MptcpOption, PolicyConfig, Setup, Signal};
use transport::tcp::{Flags, HostMemory, Opening, Segment, TcpConfig, reset_for};

use super::multipath::{self, Addresses, Context, Ends, Names};
use super::segment::Mapping;
use super::settings::HostSettings;
use super::sockets::{File, Role};
use super::syn_cookies;
use super::tested::{SentSegment, TestedConnection};
use crate::language::{AddressName, MultipathSpec, OptionSpec, PacketSpec, Route, TcpSpec};

/// Start of virtual time, chosen so that no timestamp of the machine is zero.
pub const START: Instant = Instant::from_nanos(10_000_000_000);

/// Maximum number of steps at one instant, after which the machine is considered stuck.
const LIMIT: u32 = 1_000_000;

/// Returns the settings of multipath TCP: the path manager of the script opens further subflows, no policy does.
fn setup(config: &TcpConfig, checksums: bool) -> Arc<Setup> {
    let own = MptcpKeys {
        policy: PolicyConfig::from_text("single").ok(),
        ..MptcpKeys::default()
    };
    let config = MptcpConfig {
        tcp: config.clone(),
        own,
    };
    let setup = Setup::new(config).following_linux();
    Arc::new(if checksums {
        setup.requiring_checksums()
    } else {
        setup
    })
}

/// Everything that a script acts on.
#[derive(Debug)]
pub struct World {
    /// The script's configuration.
    pub settings: HostSettings,
    /// The current time.
    pub now: Instant,
    /// Open files by number.
    pub files: BTreeMap<i64, File>,
    /// Connections in order of creation.
    pub connections: Vec<TestedConnection>,
    /// The connection that packets belong to: the most recent one.
    pub current: Option<usize>,
    /// Resets in reply to segments before any connection.
    pub strays: VecDeque<SentSegment>,
    /// The host's cached state of its peers for Fast Open.
    pub memory: HostMemory,
    /// The path MTU that ICMP errors reported, for the headers of IPv4; later connections of listeners start with it.
    pub path_mtu: Option<u32>,
    /// Names of keys and addresses of multipath TCP.
    pub names: Names,
    /// A listener was opened after the current connection.
    pub listens_anew: bool,
    /// Steps taken at this instant.
    steps: u32,
}

impl World {
    /// Creates the initial state.
    pub fn new(settings: HostSettings) -> Self {
        Self {
            settings,
            now: START,
            files: BTreeMap::new(),
            connections: Vec::new(),
            current: None,
            strays: VecDeque::new(),
            memory: HostMemory::new([0; 32], 0),
            path_mtu: None,
            names: Names::default(),
            listens_anew: false,
            steps: 0,
        }
    }

    /// Runs the commands in `text`.
    ///
    /// # Errors
    /// The first unsupported command.
    pub fn command(&mut self, text: &str) -> Result<(), String> {
        self.settings.command(text)?;
        if let Some(option) = self.settings.tcp.ecn_option {
            // The kernel reads this setting with each segment. All others apply to later connections here.
            for tested in &mut self.connections {
                if let Some(machine) = tested.machine.tcp_mut() {
                    machine.set_ecn_option(option);
                }
            }
        }
        if std::mem::take(&mut self.settings.metrics_flushed) {
            self.memory.forget_cookies();
        }
        Ok(())
    }

    /// Returns the time since the start of the script.
    pub fn elapsed(&self) -> Duration {
        self.now - START
    }

    /// Returns the connection that packets belong to.
    pub fn connection(&mut self) -> Option<&mut TestedConnection> {
        self.connections.get_mut(self.current?)
    }

    /// Adds a connection, to which packets belong from now on.
    pub fn begin(&mut self, mut tested: TestedConnection) -> usize {
        if let Some(interval) = self.settings.challenge_interval {
            tested.machine.set_challenge_interval(interval);
        }
        if let Some(bytes) = self.settings.merged_segment {
            let mss = u16::try_from(self.settings.mss()).unwrap_or(u16::MAX);
            if let Some(machine) = tested.machine.tcp_mut() {
                machine.set_merged_segment(bytes.min(mss));
            }
        }
        tested.collect(self.now);
        self.listens_anew = false;
        self.connections.push(tested);
        let index = self.connections.len() - 1;
        self.current = Some(index);
        index
    }

    /// Returns when the next timer is due.
    pub fn timeout(&self) -> Option<Instant> {
        self.connections
            .iter()
            .filter_map(TestedConnection::timeout)
            .min()
    }

    /// Advances time to `to`, at most to the next timer, and runs the timers that are due.
    ///
    /// # Errors
    /// If the machine's timers never come to rest.
    pub fn step(&mut self, to: Instant) -> Result<(), String> {
        self.steps = if to > self.now { 0 } else { self.steps + 1 };
        if self.steps > LIMIT {
            return Err("a machine whose timers never advance".to_owned());
        }
        self.now = self.now.max(to);
        for tested in &mut self.connections {
            if tested.timeout().is_some_and(|due| due <= self.now) {
                tested.tick(self.now);
            }
        }
        Ok(())
    }

    /// Delivers a segment of the script to the current connection, or to a listener.
    ///
    /// # Errors
    /// If the segment cannot be represented.
    pub fn arrive(&mut self, packet: &PacketSpec, spec: &TcpSpec) -> Result<(), String> {
        let bare = Mapping::default().inbound(spec, packet.ecn)?;
        // RFC 9293, section 3.10.7.2: a listener accepts only a SYN.
        let opens = bare.has(Flags::SYN) && !bare.has(Flags::ACK | Flags::RST);
        if opens && self.joins(spec) {
            return self.arrive_join(&packet.route, spec, &bare);
        }
        if let Some(index) = self.current {
            let starts = bare.has(Flags::SYN) && !bare.has(Flags::ACK);
            let fresh = starts && (self.connections[index].gone || self.listens_anew);
            if !(fresh && self.listener().is_some()) {
                return self.deliver(index, packet, spec);
            }
        }
        match self.listener() {
            Some(number) if opens => self.open_from_syn(number, &packet.route, spec, &bare),
            _ => {
                let answer = reset_for(&bare).map(|segment| SentSegment::plain(self.now, segment));
                self.strays.extend(answer);
                Ok(())
            }
        }
    }

    /// Delivers a segment to a connection.
    fn deliver(&mut self, index: usize, packet: &PacketSpec, spec: &TcpSpec) -> Result<(), String> {
        let now = self.now;
        let flow = self.inbound_flow(index, &packet.route)?;
        let tested = &mut self.connections[index];
        let TestedConnection {
            machine,
            flows,
            addresses,
            ..
        } = tested;
        let segment = flows[flow].mapping.inbound(spec, packet.ecn)?;
        let mut options = (MptcpOption::None, Signal::None);
        if let Some(connection) = machine.multipath() {
            options = multipath::decode(
                spec,
                &mut Context {
                    names: &mut self.names,
                    connection: Some(connection),
                    addresses,
                    ends: &mut flows[flow].ends,
                },
            )?;
        }
        tested.arrive(now, flow, segment, options);
        Ok(())
    }

    /// Opens a connection for a SYN to a listener.
    fn open_from_syn(
        &mut self,
        number: i64,
        route: &Route,
        spec: &TcpSpec,
        bare: &Segment,
    ) -> Result<(), String> {
        let now = self.now;
        let config = self.config_of(number);
        let tested = if self.is_multipath(number) {
            let mut ends = self.ends_of(route);
            let syn = self.multipath_syn(&mut ends, spec, bare)?;
            let manager = self.settings.path_manager.clone();
            let random = self.random();
            let setup = setup(&config, manager.checksums);
            TestedConnection::accept_multipath(now, &setup, (ends, manager), random, &syn)
        } else {
            self.accept(number, &config, bare)
        };
        let index = self.begin(tested);
        if let Some(mtu) = self.path_mtu {
            self.connections[index].path_mtu(now, mtu);
        }
        if let Some(File::Socket(socket)) = self.files.get_mut(&number)
            && let Role::Listening(backlog) = &mut socket.role
        {
            backlog.push(index);
        }
        Ok(())
    }

    /// Opens a connection of multipath TCP actively.
    pub fn open_multipath(&mut self, config: &TcpConfig) -> TestedConnection {
        let ends = Ends::new(self.settings.fast_open.local, self.settings.fast_open.remote);
        self.names.add_remote(ends.remote);
        let manager = self.settings.path_manager.clone();
        let random = self.random();
        let setup = setup(config, manager.checksums);
        TestedConnection::open_multipath(self.now, &setup, (ends, manager), random)
    }

    /// Returns the random numbers of the next connection: its key and initial numbers.
    fn random(&self) -> Generator {
        Streams::new(0, self.connections.len() as u64).stream("mptcp")
    }

    /// Whether a SYN joins a connection of multipath TCP.
    fn joins(&self, spec: &TcpSpec) -> bool {
        let is_join =
            |option: &OptionSpec| matches!(option, OptionSpec::Multipath(MultipathSpec::JoinSyn { .. }));
        let connected = self
            .connections
            .iter()
            .any(|tested| tested.machine.multipath().is_some());
        let listens = self.listener().is_some_and(|number| self.is_multipath(number));
        (connected || listens) && spec.options.iter().flatten().any(is_join)
    }

    /// Delivers the SYN of a join to the connection with its token; without one, a reset answers it.
    fn arrive_join(&mut self, route: &Route, spec: &TcpSpec, bare: &Segment) -> Result<(), String> {
        let now = self.now;
        let mut ends = self.ends_of(route);
        let mut syn = self.multipath_syn(&mut ends, spec, bare)?;
        let found = self.connections.iter().position(|tested| {
            let connection = tested.machine.multipath().filter(|_| !tested.gone);
            connection.is_some_and(|connection| connection.has_token(&syn))
        });
        let Some(index) = found else {
            let answer = mptcp::Connection::refuse(&syn).map(|answer| SentSegment {
                at: now,
                segment: answer.tcp,
                option: answer.option,
                signal: answer.signal,
            });
            match self.connection() {
                Some(tested) => {
                    let flow = tested.add_flow(ends);
                    tested.flows[flow].sent.extend(answer);
                }
                None => self.strays.extend(answer),
            }
            return Ok(());
        };
        let tested = &mut self.connections[index];
        let flow = tested.add_flow(ends);
        syn.subflow = flow as u8;
        tested.arrive(now, flow, syn.tcp, (syn.option, syn.signal));
        Ok(())
    }

    /// Returns a SYN with its options of multipath TCP.
    fn multipath_syn(
        &mut self,
        ends: &mut Ends,
        spec: &TcpSpec,
        bare: &Segment,
    ) -> Result<mptcp::Segment, String> {
        let mut none = Addresses::default();
        let tested = self.current.map(|index| &mut self.connections[index]);
        let (connection, addresses) = match tested {
            Some(tested) => (tested.machine.multipath(), &mut tested.addresses),
            None => (None, &mut none),
        };
        let (option, signal) = multipath::decode(
            spec,
            &mut Context {
                names: &mut self.names,
                connection,
                addresses,
                ends,
            },
        )?;
        Ok(mptcp::Segment {
            tcp: *bare,
            option,
            signal,
            subflow: 0,
        })
    }

    /// Returns the addresses of a new flow that a packet of the script opens. A source without value is an unused address, except
    /// for the first flow.
    fn ends_of(&mut self, route: &Route) -> Ends {
        let settings = &self.settings.fast_open;
        let (local, remote) = (settings.local, settings.remote);
        let remote = match &route.source {
            None => remote,
            Some(name) => match self.names.address(name) {
                Some(address) => address,
                None if self.current.is_none() => self.names.address_or(name, remote),
                None => {
                    let unused = self.names.next_remote(remote);
                    self.names.address_or(name, unused)
                }
            },
        };
        self.names.add_remote(remote);
        let local = match &route.destination {
            Some(name) => self.names.address_or(name, local),
            None => local,
        };
        Ends::new(local, remote)
    }

    /// Returns the flow of a packet of the script.
    fn inbound_flow(&mut self, index: usize, route: &Route) -> Result<usize, String> {
        self.flow(index, route.destination.as_ref(), route.source.as_ref(), true)
            .ok_or_else(|| "a packet between addresses without a subflow".to_owned())
    }

    /// Returns the newest flow of a connection between two addresses. Names without value get those of the flow. `shown`: only flows
    /// that the script has shown.
    pub fn flow(
        &mut self,
        index: usize,
        local: Option<&AddressName>,
        remote: Option<&AddressName>,
        shown: bool,
    ) -> Option<usize> {
        let value = |names: &mut Names, name: Option<&AddressName>| name.and_then(|name| names.address(name));
        let wanted = (value(&mut self.names, local), value(&mut self.names, remote));
        let tested = &self.connections[index];
        let found = tested.find(wanted.0, wanted.1, shown)?;
        let ends = tested.flows[found].ends;
        for (name, value) in [(local, ends.local), (remote, ends.remote)] {
            if let Some(name) = name {
                self.names.address_or(name, value);
            }
        }
        Some(found)
    }

    /// Whether a socket belongs to multipath TCP.
    fn is_multipath(&self, number: i64) -> bool {
        matches!(self.files.get(&number), Some(File::Socket(socket)) if socket.multipath)
    }

    /// Answers a SYN to a listener.
    fn accept(&mut self, number: i64, config: &TcpConfig, syn: &Segment) -> TestedConnection {
        if self.settings.syn_cookies {
            let syn = syn_cookies::preserved(syn, self.settings.ipv6);
            return TestedConnection::accept(self.now, config, &syn, Opening::default());
        }
        let options = match self.files.get(&number) {
            Some(File::Socket(socket)) => &socket.options,
            _ => return TestedConnection::accept(self.now, config, syn, Opening::default()),
        };
        let settings = &self.settings.fast_open;
        let opening = if settings.listens(options.fast_open_queue) {
            let own = (options.fast_open_key, options.fast_open_queue);
            settings.admission(self.now, config, &mut self.memory, syn, own)
        } else {
            Opening::default()
        };
        TestedConnection::accept(self.now, config, syn, opening)
    }

    /// Stores what connections discovered about the peer in the host's memory.
    pub fn apply_peer_updates(&mut self) {
        for tested in &mut self.connections {
            let Some(machine) = tested.machine.tcp_mut() else {
                continue;
            };
            while let Some(update) = machine.take_peer_update() {
                self.memory
                    .apply(self.now, self.settings.fast_open.remote, update);
            }
        }
    }

    /// Returns the listening socket.
    fn listener(&self) -> Option<i64> {
        let listens = |file: &File| match file {
            File::Socket(socket) => matches!(socket.role, Role::Listening(_)),
            _ => false,
        };
        let found = self.files.iter().find(|(_, file)| listens(file));
        found.map(|(number, _)| *number)
    }

    /// Returns the machine's configuration for connections of a socket.
    pub fn config_of(&self, number: i64) -> TcpConfig {
        let mut config = self.settings.tcp.clone();
        let mut mss = self.settings.mss();
        if let Some(File::Socket(socket)) = self.files.get(&number) {
            socket.options.configure(&mut config);
            mss = mss.min(socket.options.mss.unwrap_or(u32::MAX));
        }
        config.congestion = Some(self.settings.congestion(config.congestion()));
        config.mss = Some(Size::from_bytes(u64::from(mss)));
        config
    }
}
