//! Handshakes: MP_CAPABLE and MP_JOIN (RFC 8684, sections 3.1 and 3.2).

use std::sync::Arc;

use foundation::{Generator, Instant};
use rand::Rng as _;

use super::addresses::Addresses;
use super::checksums::Failure;
use super::handshake_retry::HandshakeRetry;
use super::subflow::{Role, Subflow};
use super::tail::TailProtection;
use super::{Connection, Mode};
use crate::mptcp::config::{JoinAfter, MOST_SUBFLOWS, MptcpConfig, ReinjectionTrigger};
use crate::mptcp::host::HostPaths;
use crate::mptcp::keys::{self, Keys, Nonces, join_hmac};
use crate::mptcp::policy::{ConnectionPlan, Join, JoinTime, StartParameters};
use crate::mptcp::receiver::DataReceiver;
use crate::mptcp::segment::{
    DSS_BARE, DSS_MAPPED, JoinHmac, MptcpOption, PathIndex, Segment, Signal, Token, reason,
};
use crate::mptcp::sender::{DataSender, Nagle};
use crate::statistics::Statistics;
use crate::tcp::{self, Flags, ReservedOptions, TcpConfig, reset_for};

/// Unlimited send buffer of a subflow: the buffer of the connection is the limit.
const UNLIMITED: u64 = 1 << 50;
/// Header bytes that subflows reserve for MPTCP options.
pub(super) const RESERVED: ReservedOptions = ReservedOptions {
    data: DSS_MAPPED,
    bare: DSS_BARE,
};

/// Settings, resolved once for all connections that share them.
#[derive(Debug)]
pub struct Setup {
    config: MptcpConfig,
    subflow: TcpConfig,
    send_buffer: u64,
    receive_buffer: u64,
    /// Initial size of a receive buffer that grows.
    first_window: Option<u64>,
    shared_window: bool,
    nagle: Option<Nagle>,
    most: usize,
    start: StartParameters,
    linux: bool,
    checksums: bool,
}

impl Setup {
    /// Resolves the settings of `config`.
    #[must_use]
    pub fn new(config: MptcpConfig) -> Self {
        let mut subflow = config.filled();
        let start = start_parameters(&subflow);
        let parameters = subflow.parameters();
        let (send_buffer, receive_buffer) = parameters.buffers();
        let first_window = config.window_grows().then(|| parameters.first_window());
        let profile = config.tcp.profile;
        let variant = if profile == tcp::Profile::Linux {
            Nagle::Minshall
        } else {
            Nagle::Classic
        };
        let nagle = subflow
            .nagle
            .unwrap_or(profile != tcp::Profile::Ns3)
            .then_some(variant);
        // The connection forms the segments and applies Nagle's algorithm itself.
        subflow.nagle = Some(false);
        subflow.send_buffer = Some(foundation::Size::from_bytes(UNLIMITED));
        subflow.send_autotuning = Some(false);
        Self {
            send_buffer,
            receive_buffer,
            first_window,
            shared_window: config.shared_window(),
            nagle,
            most: config.subflows().min(MOST_SUBFLOWS as usize),
            start,
            subflow,
            config,
            linux: false,
            checksums: false,
        }
    }

    /// Requires checksums of both ends (RFC 8684, section 3.1).
    #[must_use]
    pub fn requiring_checksums(mut self) -> Self {
        self.checksums = true;
        self
    }

    /// Follows Linux in details that RFC 8684 leaves open ([`linux`](super::linux)).
    #[must_use]
    pub fn following_linux(mut self) -> Self {
        self.linux = true;
        self
    }

    pub(super) const fn linux(&self) -> bool {
        self.linux
    }

    /// Returns the settings as configured.
    #[must_use]
    pub const fn config(&self) -> &MptcpConfig {
        &self.config
    }

    /// Returns the payload bytes of a full segment between two ends with these settings.
    #[must_use]
    pub fn segment(&self) -> u64 {
        let timestamps = self.subflow.timestamps != Some(false);
        self.subflow.mss().bytes() - u64::from(DSS_MAPPED) - if timestamps { 12 } else { 0 }
    }

    pub(super) const fn subflow(&self) -> &TcpConfig {
        &self.subflow
    }

    /// Returns the header bytes that subflows reserve for MPTCP options.
    pub(super) const fn reserved(&self) -> ReservedOptions {
        if self.linux {
            super::linux::RESERVED
        } else {
            RESERVED
        }
    }

    pub(super) const fn shared_window(&self) -> bool {
        self.shared_window
    }

    pub(super) const fn nagle(&self) -> Option<Nagle> {
        self.nagle
    }

    pub(super) fn rejoin(&self) -> Option<foundation::Duration> {
        self.config.own.rejoin
    }

    pub(super) fn retransmits_when_blocked(&self) -> bool {
        self.config.own.opportunistic_retransmission == Some(true)
    }

    pub(super) fn penalises(&self) -> bool {
        self.config.own.penalisation == Some(true)
    }

    pub(super) fn reinjects_at_timeout(&self) -> bool {
        self.config.reinjection() == ReinjectionTrigger::Timeout
    }
}

/// Returns the start parameters of a TCP with these settings, read from a connection that sends nothing.
fn start_parameters(config: &TcpConfig) -> StartParameters {
    let tcp = tcp::Connection::open_reserving(Instant::ZERO, config, 0, RESERVED);
    let window = tcp.window_bytes() / u64::from(tcp.segment_size()).max(1);
    let (min_rto, initial_rto) = config.parameters().timeouts();
    StartParameters {
        initial_window: u32::try_from(window.max(1)).unwrap_or(u32::MAX),
        min_rto,
        initial_rto,
    }
}

impl Connection {
    /// Opens a connection. The policy chooses among the paths of `host`, given the `size` in bytes that the
    /// connection will send, if known. `random` provides keys, random numbers and sequence numbers; the policy draws
    /// from `paths`.
    pub fn open(
        now: Instant,
        setup: &Arc<Setup>,
        size: Option<u64>,
        host: &mut HostPaths,
        random: Generator,
        paths: &mut Generator,
    ) -> Self {
        let mut policy = setup.config.policy().build();
        policy.set_start_parameters(&setup.start);
        let plan = policy.open(size, host, paths);
        host.on_connection();
        if let Some(size) = size {
            host.on_flow(now, size);
        }
        let mut connection = Self::new(now, setup, true, random);
        connection.policy = policy.follows_progress().then_some(policy);
        connection.start(now, plan);
        connection
    }

    /// Accepts the SYN that a listener received on `path`.
    pub fn accept(
        now: Instant,
        setup: &Arc<Setup>,
        random: Generator,
        path: PathIndex,
        syn: &Segment,
    ) -> Self {
        let mut connection = Self::new(now, setup, false, random);
        connection.mode = match syn.option {
            MptcpOption::Capable { checksums, .. } => {
                connection.checksums |= checksums;
                Mode::Multipath
            }
            _ => Mode::Plain,
        };
        let reserved = connection.reserved();
        let number = connection.random.next_u32();
        let tcp = tcp::Connection::accept_reserving(now, &setup.subflow, number, &syn.tcp, reserved);
        connection.add(Subflow::new(syn.subflow, path, tcp, Role::Initial));
        connection
    }

    fn new(now: Instant, setup: &Arc<Setup>, is_client: bool, mut random: Generator) -> Self {
        Self {
            is_client,
            established: false,
            mode: Mode::Handshake,
            key: random.next_u64(),
            peer_key: None,
            confirmed: false,
            subflows: Vec::new(),
            dirty: 0,
            unreported: 0,
            outgoing: DataSender::new(setup.send_buffer),
            incoming: DataReceiver::new(setup.receive_buffer, setup.first_window),
            queued: false,
            scheduler: setup.config.scheduler().build(),
            policy: None,
            joins: Vec::new(),
            joinable_since: None,
            rejoins: Vec::new(),
            paths: Vec::new(),
            expected: Vec::new(),
            short: false,
            scatter: None,
            tail: None,
            retry: None,
            random,
            coupled: false,
            views: Vec::new(),
            full_views: None,
            changed: 0,
            siblings: Vec::new(),
            opened_at: now,
            fast_closing: false,
            fin_sent: false,
            fin_due: 0,
            keys_sent: false,
            peer_finished: false,
            resend_at: Instant::MAX,
            backoff: 0,
            una_at_resend: 1,
            write_blocked: false,
            closed: false,
            addresses: Addresses::default(),
            checksums: setup.checksums,
            failure: Failure::default(),
            peer_is_wide: false,
            alone_until: Instant::MAX,
            finish_due: false,
            over: false,
            events: Vec::new(),
            statistics: Statistics {
                opened_at: Some(now),
                ..Statistics::default()
            },
            setup: Arc::clone(setup),
        }
    }

    fn start(&mut self, now: Instant, plan: ConnectionPlan) {
        let most = self.setup.most;
        self.joins = plan.joins;
        self.joins.truncate(most - 1);
        self.joins.reverse();
        self.subflows.reserve_exact(1 + self.joins.len());
        self.paths.push(plan.first);
        self.paths.extend(self.joins.iter().rev().map(|join| join.path));
        self.expected = plan.expected;
        self.short = plan.short;
        self.scatter = plan.scatter;
        self.tail = plan.tail.map(TailProtection::new);
        let number = self.random.next_u32();
        let tcp = tcp::Connection::open_reserving(now, &self.setup.subflow, number, self.setup.reserved());
        self.add(Subflow::new(0, plan.first, tcp, Role::Initial));
        self.retry = HandshakeRetry::new(now, plan.attempts);
        if let Some(scatter) = &self.scatter {
            self.subflows[0].tcp.expect_reordering(scatter.duplicates);
        }
    }

    fn reserved(&self) -> ReservedOptions {
        match self.mode {
            Mode::Plain => ReservedOptions { data: 0, bare: 0 },
            _ => self.setup.reserved(),
        }
    }

    pub(super) fn add(&mut self, mut subflow: Subflow) {
        self.coupled |= subflow.tcp.controller().is_coupled();
        let expected = self.expected.iter().find(|(path, _)| *path == subflow.path);
        subflow.expected = expected.map_or(0, |&(_, bytes)| bytes);
        self.dirty |= 1 << self.subflows.len();
        self.unreported |= 1 << self.subflows.len();
        self.subflows.push(subflow);
    }

    /// Opens the subflows that are due once the connection may have further ones. RFC 8684, section 3.1, requires a
    /// received DSS option first.
    pub(super) fn check_joinable(&mut self, now: Instant) {
        if !self.is_client || self.joinable_since.is_some() || self.mode != Mode::Multipath {
            return;
        }
        let waits = self.setup.config.join_after() == JoinAfter::Established;
        if self.peer_key.is_some() && (self.confirmed || !waits) {
            self.joinable_since = Some(now);
            self.open_due_joins(now);
        }
    }

    /// Opens the subflows that are due.
    pub(super) fn open_due_joins(&mut self, now: Instant) {
        let Some(since) = self.joinable_since else { return };
        if self.over || self.outgoing.fin_acknowledged() {
            self.joins.clear();
            return;
        }
        let acknowledged = self.outgoing.acknowledged();
        let is_due = |join: &Join| match join.when {
            JoinTime::Immediately => true,
            JoinTime::AfterBytes(bytes) => acknowledged >= bytes,
            JoinTime::AfterTime(time) => since + time <= now,
        };
        let mut index = self.joins.len();
        while index > 0 {
            index -= 1;
            if is_due(&self.joins[index]) {
                let join = self.joins.remove(index);
                self.join(now, join);
            }
        }
    }

    /// Returns when the next subflow is due.
    pub(super) fn next_join(&self) -> Instant {
        let Some(since) = self.joinable_since else {
            return Instant::MAX;
        };
        let at = |join: &Join| match join.when {
            JoinTime::AfterTime(time) => since + time,
            _ => Instant::MAX,
        };
        self.joins.iter().map(at).min().unwrap_or(Instant::MAX)
    }

    /// Opens a subflow. Returns false at the limit of subflows: closed ones do not count, but their numbers stay in
    /// use.
    pub(super) fn join(&mut self, now: Instant, join: Join) -> bool {
        let open = self.subflows.iter().filter(|subflow| !subflow.gone).count();
        if open >= self.setup.most || self.subflows.len() >= MOST_SUBFLOWS as usize {
            return false;
        }
        let id = self.subflows.len() as u8;
        let role = Role::Joined {
            nonces: Nonces {
                sender: self.random.next_u32(),
                receiver: 0,
            },
            verified: false,
            confirmed: false,
        };
        let number = self.random.next_u32();
        let tcp = tcp::Connection::open_reserving(now, &self.setup.subflow, number, self.setup.reserved());
        let mut subflow = Subflow::new(id, join.path, tcp, role);
        subflow.backup = join.backup;
        self.add(subflow);
        true
    }

    /// Accepts an MP_JOIN SYN on `path` (RFC 8684, section 3.2).
    pub(super) fn accept_join(&mut self, now: Instant, path: PathIndex, segment: &Segment) {
        let syn = segment.tcp.has(Flags::SYN) && !segment.tcp.has(Flags::ACK | Flags::RST);
        let MptcpOption::JoinSyn {
            token,
            nonce,
            backup,
            address,
        } = segment.option
        else {
            return;
        };
        let known = self.is_own(token);
        // Invalid joins are ignored: the listener sends the reset.
        let full = self.subflows.len() >= MOST_SUBFLOWS as usize;
        if !syn || !known || full || self.over || self.mode != Mode::Multipath || self.peer_key.is_none() {
            return;
        }
        let role = Role::Joined {
            nonces: Nonces {
                sender: self.random.next_u32(),
                receiver: nonce,
            },
            verified: false,
            confirmed: true,
        };
        let number = self.random.next_u32();
        let reserved = self.setup.reserved();
        let tcp = tcp::Connection::accept_reserving(now, &self.setup.subflow, number, &segment.tcp, reserved);
        let mut subflow = Subflow::new(segment.subflow, path, tcp, role);
        subflow.peer_backup = backup;
        subflow.peer_address = address;
        self.alone_until = Instant::MAX;
        self.add(subflow);
    }

    /// Returns the HMAC of this end for a handshake with these random numbers.
    pub(super) fn own_hmac(&self, nonces: Nonces) -> JoinHmac {
        JoinHmac::Derived {
            keys: Keys {
                sender: self.key,
                receiver: self.peer_key.unwrap_or(0),
            },
            nonces,
        }
    }

    /// Returns whether the first `bytes` of the peer's HMAC are correct; `nonces` are as this end sees them.
    pub(super) fn verifies(&self, hmac: &JoinHmac, nonces: Nonces, bytes: usize) -> bool {
        let Some(peer_key) = self.peer_key else {
            return false;
        };
        let keys = Keys {
            sender: peer_key,
            receiver: self.key,
        };
        let nonces = nonces.reversed();
        match *hmac {
            JoinHmac::Derived { keys: k, nonces: n } => k == keys && n == nonces,
            JoinHmac::Bytes(bits) => bits[..bytes] == join_hmac(keys, nonces)[..bytes],
        }
    }

    /// Returns whether an MP_JOIN SYN carries the token of this connection.
    #[must_use]
    pub fn has_token(&self, segment: &Segment) -> bool {
        match segment.option {
            MptcpOption::JoinSyn { token, .. } => self.is_own(token),
            _ => false,
        }
    }

    fn is_own(&self, token: Token) -> bool {
        match token {
            Token::Derived(key) => key == self.key,
            Token::Value(bits) => bits == keys::token(self.key),
        }
    }

    /// Returns the reset that answers a segment of an unknown subflow, if it requires one. A join with an unknown token is an error
    /// of the protocol (RFC 8684, section 3.2).
    #[must_use]
    pub fn refuse(segment: &Segment) -> Option<Segment> {
        let option = match segment.option {
            MptcpOption::JoinSyn { .. } => MptcpOption::Reset {
                transient: false,
                reason: reason::ERROR,
            },
            _ => MptcpOption::None,
        };
        Some(Segment {
            tcp: reset_for(&segment.tcp)?,
            option,
            signal: Signal::None,
            subflow: segment.subflow,
        })
    }
}
