//! The ends of a connection at their start, and what each of them carries.

use std::collections::VecDeque;
use std::sync::Arc;

use foundation::{Generator, Instant};
use noq_proto::crypto::{ClientConfig, ServerConfig};
use noq_proto::{Endpoint, FourTuple};
use transport::mptcp::ConnectionPlan;

use super::super::clock::to_library;
use super::super::controller::Factory;
use super::super::ledger::Ledger;
use super::super::migration::Migration;
use super::super::paths::Paths;
use super::super::selection::Selection;
use super::super::setup::{self, CLIENT, Cryptography, SERVER};
use super::super::streams::Streams;
use super::super::unreliable::Unreliable;
use super::{Connection, Event};
use crate::{Carriage, QuicConfig};

impl Connection {
    /// Opens a connection without encryption. All randomness derives from `random`.
    #[must_use]
    pub fn open(now: Instant, config: &QuicConfig, random: Generator) -> Self {
        Self::open_with(
            now,
            config,
            Cryptography::null_client(false, &Arc::default()),
            random,
        )
    }

    /// Opens a connection without encryption that [gets a ticket](Self::take_ticket) for a later one. With the ticket of an
    /// earlier one (`resumes`), its first flight carries data (0-RTT: RFC 9001, section 4.6).
    #[must_use]
    pub fn resume(now: Instant, config: &QuicConfig, resumes: bool, random: Generator) -> Self {
        let ticket = Arc::default();
        let cryptography = Cryptography::null_client(resumes, &ticket);
        let mut connection = Self::open_with(now, config, cryptography, random);
        connection.ticket = ticket;
        connection
    }

    /// Opens a connection. Only the cryptography has a randomness of its own.
    #[must_use]
    pub fn open_with(
        now: Instant,
        config: &QuicConfig,
        cryptography: Cryptography<dyn ClientConfig>,
        mut random: Generator,
    ) -> Self {
        let (transport, controllers) = setup::transport(config);
        let client = setup::client(cryptography.handshake, Arc::new(transport), &mut random);
        let settings = setup::endpoint(config, cryptography.reset_key, &mut random);
        let mut endpoint = Endpoint::new(Arc::new(settings), None, true);
        let opened = endpoint.connect(to_library(now), client, SERVER, "example.com");
        let mut connection = Self::new(now, config, endpoint, true, controllers);
        connection.tap = cryptography.tap;
        connection.migration = Migration::new(now, config).map(Box::new);
        match opened {
            Ok(opened) => {
                let has_early_data = opened.1.has_0rtt();
                connection.inner = Some(opened);
                if has_early_data {
                    connection.events.push_back(Event::Connected);
                    connection.is_early = true;
                }
            }
            Err(error) => connection.events.push_back(Event::Failed(error.to_string())),
        }
        connection
    }

    /// Returns the end that waits for a connection without encryption.
    #[must_use]
    pub fn listen(now: Instant, config: &QuicConfig, random: Generator) -> Self {
        Self::listen_with(now, config, Cryptography::null_server(config), random)
    }

    /// Returns the end that waits for a connection. Only the cryptography has a randomness of its own.
    #[must_use]
    pub fn listen_with(
        now: Instant,
        config: &QuicConfig,
        cryptography: Cryptography<dyn ServerConfig>,
        mut random: Generator,
    ) -> Self {
        let (transport, controllers) = setup::transport(config);
        let server = setup::server(cryptography.handshake, Arc::new(transport));
        let settings = setup::endpoint(config, cryptography.reset_key, &mut random);
        let endpoint = Endpoint::new(Arc::new(settings), Some(Arc::new(server)), true);
        let mut connection = Self::new(now, config, endpoint, false, controllers);
        connection.tap = cryptography.tap;
        connection
    }

    fn new(
        now: Instant,
        config: &QuicConfig,
        endpoint: Endpoint,
        is_client: bool,
        controllers: Option<Arc<Factory>>,
    ) -> Self {
        let is_multipath = config.paths() > 1;
        Self {
            endpoint,
            inner: None,
            is_client,
            peer: FourTuple::from_remote(if is_client { SERVER } else { CLIENT }),
            uses_ecn: config.ecn.unwrap_or(true),
            idle_timeout: config.idle_timeout(),
            controllers,
            paths: is_multipath.then(|| Box::new(Paths::new(config, is_client))),
            reported: Vec::new(),
            migration: None,
            changes_way: config.changes_path(),
            selection: Selection::new(config).filter(|_| is_multipath),
            written: 0,
            streams: Streams::default(),
            unreliable: None,
            is_finished: false,
            ledger: Ledger::new(now, config.receive_window()),
            tap: None,
            ticket: Arc::default(),
            is_early: false,
            read: 0,
            events: VecDeque::new(),
            answers: VecDeque::new(),
            buffer: Vec::new(),
        }
    }

    /// Carries each message and its answer on a stream of their own, earlier streams first unless `fair`.
    #[must_use]
    pub fn with_messages(mut self, fair: bool) -> Self {
        self.streams = Streams::of_messages(!fair);
        self
    }

    /// Carries the data in this way; of streams, earlier ones first unless `fair`.
    #[must_use]
    pub fn carrying(self, carriage: Carriage, fair: bool) -> Self {
        match carriage {
            Carriage::Stream => self,
            Carriage::Exchanges => self.with_messages(fair),
            Carriage::Frames => self.with_frames(fair),
            Carriage::Datagrams => self.with_datagrams(),
        }
    }

    /// Sets the number of paths between the hosts, over which a client may move (`migrate_to`).
    #[must_use]
    pub fn between(mut self, ways: u8) -> Self {
        if let Some(migration) = &mut self.migration {
            migration.set_ways(ways);
        }
        self
    }

    /// Opens the paths of this plan, if the settings allow several.
    #[must_use]
    pub fn with_plan(mut self, plan: ConnectionPlan) -> Self {
        if let Some(paths) = &mut self.paths {
            paths.plan(plan);
        }
        self
    }

    /// Carries each message of the client on a stream of one direction, earlier streams first unless `fair`.
    #[must_use]
    pub fn with_frames(mut self, fair: bool) -> Self {
        self.streams = Streams::of_frames(!fair);
        self
    }

    /// Carries each message of the client in DATAGRAM frames, which are not retransmitted (RFC 9221).
    #[must_use]
    pub fn with_datagrams(mut self) -> Self {
        self.unreliable = Some(Unreliable::default());
        self
    }
}
