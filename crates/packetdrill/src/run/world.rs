//! The world of a script: virtual time, files, and connections.

use std::collections::{BTreeMap, VecDeque};

use foundation::{Duration, Instant, Size};
use transport::tcp::{Flags, Segment, TcpConfig, reset_for};

use super::link::{Link, Sent};
use super::settings::Settings;
use super::sockets::{File, Role};

/// Where virtual time begins, so that no timestamp of the machine is zero.
pub const START: Instant = Instant::from_nanos(10_000_000_000);

/// Steps at one instant after which the machine is taken to run in circles.
const LIMIT: u32 = 1_000_000;

/// Everything that a script acts on.
#[derive(Debug)]
pub struct World {
    /// What the script set.
    pub settings: Settings,
    /// Now.
    pub now: Instant,
    /// Open files by their numbers.
    pub files: BTreeMap<i64, File>,
    /// Connections, in the order they began.
    pub links: Vec<Link>,
    /// The connection that packets belong to: the one that began last.
    pub current: Option<usize>,
    /// Resets in answer to segments before any connection began.
    pub strays: VecDeque<Sent>,
    /// Steps taken at this instant.
    steps: u32,
}

impl World {
    /// A world before anything happened.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            now: START,
            files: BTreeMap::new(),
            links: Vec::new(),
            current: None,
            strays: VecDeque::new(),
            steps: 0,
        }
    }

    /// Time since the script began.
    pub fn elapsed(&self) -> Duration {
        self.now - START
    }

    /// The connection that packets belong to.
    pub fn link(&mut self) -> Option<&mut Link> {
        self.links.get_mut(self.current?)
    }

    /// Adds a connection, to which packets belong from now on.
    pub fn begin(&mut self, mut link: Link) -> usize {
        link.settle(self.now);
        self.links.push(link);
        let index = self.links.len() - 1;
        self.current = Some(index);
        index
    }

    /// When something happens next by itself.
    pub fn timeout(&self) -> Option<Instant> {
        self.links.iter().filter_map(Link::timeout).min()
    }

    /// Lets time pass until `to`, which is not beyond the next timeout, and sees to what is due then.
    ///
    /// # Errors
    /// Where the machine never comes to rest.
    pub fn step(&mut self, to: Instant) -> Result<(), String> {
        self.steps = if to > self.now { 0 } else { self.steps + 1 };
        if self.steps > LIMIT {
            return Err("a machine that asks to be called again and again at one instant".to_owned());
        }
        self.now = self.now.max(to);
        for link in &mut self.links {
            if link.timeout().is_some_and(|due| due <= self.now) {
                link.tick(self.now);
            }
        }
        Ok(())
    }

    /// A segment of the script arrives: at the connection that packets belong to, or at a listener.
    ///
    /// # Errors
    /// Where the script says what the machine cannot take.
    pub fn arrive(
        &mut self,
        make: impl Fn(&Link) -> Result<Segment, String>,
        bare: Segment,
    ) -> Result<(), String> {
        let now = self.now;
        if let Some(link) = self.link() {
            let fresh = link.gone && bare.has(Flags::SYN) && !bare.has(Flags::ACK);
            if !(fresh && self.listener().is_some()) {
                let link = self.link().ok_or("no connection")?;
                let segment = make(link)?;
                link.arrive(now, segment);
                return Ok(());
            }
        }
        // RFC 9293, section 3.10.7.2: a listener takes a SYN and nothing else.
        let opens = bare.has(Flags::SYN) && !bare.has(Flags::ACK | Flags::RST);
        match self.listener() {
            Some(number) if opens => {
                let config = self.config_of(number);
                let link = Link::accept(now, &config, &bare);
                let index = self.begin(link);
                if let Some(File::Socket(socket)) = self.files.get_mut(&number)
                    && let Role::Listening(backlog) = &mut socket.role
                {
                    backlog.push(index);
                }
            }
            _ => {
                let answer = reset_for(&bare).map(|segment| Sent { at: now, segment });
                self.strays.extend(answer);
            }
        }
        Ok(())
    }

    /// The listening socket.
    fn listener(&self) -> Option<i64> {
        let listens = |file: &File| match file {
            File::Socket(socket) => matches!(socket.role, Role::Listening(_)),
            _ => false,
        };
        let found = self.files.iter().find(|(_, file)| listens(file));
        found.map(|(number, _)| *number)
    }

    /// The machine's configuration for connections of a socket.
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
