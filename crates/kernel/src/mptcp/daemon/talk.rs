//! What applications ask a path manager: one JSON object a line, and one in answer, over an abstract Unix socket
//! (`unix(7)`), which belongs to the network namespace and leaves no file behind.

use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The name of the machine's own path manager.
pub const NAME: &str = "longfat/mptcp";

/// The longest line, and the most that talk at once: more are nobody's honest wish.
const LONGEST: usize = 4096;
const MOST: usize = 256;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// I am about to connect: from where?
    Open {
        /// The peer.
        to: IpAddr,
        /// The bytes that I will send, where I know.
        size: Option<u64>,
    },
    /// I have connected as I was told.
    Begin {
        /// The number of the answer.
        opening: u64,
        /// The token of the connection (`MPTCP_INFO`).
        token: u32,
        /// The port of the peer.
        port: u16,
    },
    /// What is known?
    Status {},
}

/// A path in an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfPath {
    /// Its address.
    pub address: IpAddr,
    /// The round trip as last seen, in milliseconds; null where none was.
    pub rtt_ms: Option<f64>,
    /// The least round trip.
    pub base_rtt_ms: Option<f64>,
    /// Bytes on their way.
    pub unfinished: u64,
    /// Bytes acknowledged, ever.
    pub acknowledged: u64,
    /// Subflows that are open.
    pub subflows: u32,
}

/// A peer in an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfPeer {
    /// Its address.
    pub address: IpAddr,
    /// The paths to it.
    pub paths: Vec<OfPath>,
}

/// A connection in an answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfConnection {
    /// Its token.
    pub token: u32,
    /// The peer.
    pub to: IpAddr,
    /// The bytes that it will send; null where nobody said.
    pub size: Option<u64>,
    /// Bytes acknowledged from each address.
    pub bytes: Vec<(IpAddr, u64)>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Connect from there.
    Opening {
        /// Say this number when you have.
        opening: u64,
        /// The address.
        from: IpAddr,
    },
    /// It is looked after.
    Begun {
        /// The token.
        token: u32,
    },
    /// What is known.
    Status {
        /// Hosts that connections go to.
        peers: Vec<OfPeer>,
        /// Connections that stand.
        connections: Vec<OfConnection>,
    },
    /// What is wrong.
    Error(String),
}

/// Where applications ask.
pub(super) struct Listener {
    socket: UnixListener,
    clients: Vec<Client>,
}

struct Client {
    socket: UnixStream,
    line: Vec<u8>,
}

impl Listener {
    pub(super) fn bind(name: &str) -> Result<Self, Error> {
        let bound = || -> io::Result<UnixListener> {
            let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = bound().map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => Error::System {
                what: format!("be asked at @{name}: another path manager runs in this network namespace"),
                source: error,
            },
            _ => Error::of(format!("be asked at @{name}"), error),
        })?;
        Ok(Self {
            socket,
            clients: Vec::new(),
        })
    }

    /// What to wait for.
    pub(super) fn sources(&self) -> impl Iterator<Item = PollFd<'_>> {
        let clients = self.clients.iter().map(|client| &client.socket);
        std::iter::once(PollFd::new(&self.socket, PollFlags::IN))
            .chain(clients.map(|socket| PollFd::new(socket, PollFlags::IN)))
    }

    /// Takes who has come, and answers what was asked.
    pub(super) fn serve(&mut self, mut answer: impl FnMut(Request) -> Reply) {
        while let Ok((socket, _)) = self.socket.accept() {
            if self.clients.len() < MOST && socket.set_nonblocking(true).is_ok() {
                self.clients.push(Client {
                    socket,
                    line: Vec::new(),
                });
            }
        }
        self.clients.retain_mut(|client| client.serve(&mut answer));
    }
}

impl Client {
    /// Answers what was asked; false when the client has gone or asks what nobody does.
    fn serve(&mut self, answer: &mut impl FnMut(Request) -> Reply) -> bool {
        let mut bytes = [0; LONGEST];
        let stays = loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => break false,
                Ok(count) => self.line.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
            if self.line.len() > LONGEST {
                return false;
            }
        };
        while let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            let reply = match serde_json::from_slice(&line) {
                Ok(request) => answer(request),
                Err(error) => Reply::Error(error.to_string()),
            };
            let mut text = serde_json::to_vec(&reply).unwrap_or_default();
            text.push(b'\n');
            // Who does not read its answers is gone.
            if self.socket.write_all(&text).is_err() {
                return false;
            }
        }
        stays
    }
}
