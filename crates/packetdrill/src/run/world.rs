//! The state of a script's execution: virtual time, files, and connections.

use std::collections::{BTreeMap, VecDeque};

use foundation::{Duration, Instant, Size};
use transport::tcp::{Flags, HostMemory, Opening, Segment, TcpConfig, reset_for};

use super::settings::HostSettings;
use super::sockets::{File, Role};
use super::syn_cookies;
use super::tested::{SentSegment, TestedConnection};

/// Start of virtual time, chosen so that no timestamp of the machine is zero.
pub const START: Instant = Instant::from_nanos(10_000_000_000);

/// Maximum number of steps at one instant, after which the machine is considered stuck.
const LIMIT: u32 = 1_000_000;

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
                tested.machine.set_ecn_option(option);
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
            tested.machine.set_merged_segment(bytes.min(mss));
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
    pub fn arrive(
        &mut self,
        make: impl Fn(&TestedConnection) -> Result<Segment, String>,
        bare: Segment,
    ) -> Result<(), String> {
        let now = self.now;
        if let Some(tested) = self.connection() {
            let opens = bare.has(Flags::SYN) && !bare.has(Flags::ACK);
            let gone = tested.gone;
            let fresh = opens && (gone || self.listens_anew);
            if !(fresh && self.listener().is_some()) {
                let tested = self.connection().ok_or("no connection")?;
                let segment = make(tested)?;
                tested.arrive(now, segment);
                return Ok(());
            }
        }
        // RFC 9293, section 3.10.7.2: a listener accepts only a SYN.
        let opens = bare.has(Flags::SYN) && !bare.has(Flags::ACK | Flags::RST);
        match self.listener() {
            Some(number) if opens => {
                let config = self.config_of(number);
                let tested = self.accept(number, &config, &bare);
                let index = self.begin(tested);
                if let Some(mtu) = self.path_mtu {
                    self.connections[index].path_mtu(now, mtu);
                }
                if let Some(File::Socket(socket)) = self.files.get_mut(&number)
                    && let Role::Listening(backlog) = &mut socket.role
                {
                    backlog.push(index);
                }
            }
            _ => {
                let answer = reset_for(&bare).map(|segment| SentSegment { at: now, segment });
                self.strays.extend(answer);
            }
        }
        Ok(())
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
            while let Some(update) = tested.machine.take_peer_update() {
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
