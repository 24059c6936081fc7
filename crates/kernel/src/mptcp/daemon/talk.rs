//! What applications ask a path manager: one JSON object a line, and one in answer, over an abstract Unix socket
//! (`unix(7)`), which belongs to the network namespace and leaves no file behind. It serves root and the user that the path
//! manager runs as.

use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};

use super::access;
use crate::error::Error;

/// The name of the machine's own path manager.
pub const NAME: &str = "longfat/mptcp";

/// The longest line, and the most that talk at once: more are nobody's honest wish.
const LONGEST: usize = 4096;
const MOST: usize = 256;
/// A client that completes no request for this time is disconnected.
const IDLE: Duration = Duration::from_secs(10);

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

impl Reply {
    fn line(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Where applications ask.
pub(super) struct Listener {
    socket: UnixListener,
    clients: Vec<Client>,
}

struct Client {
    socket: UnixStream,
    line: Vec<u8>,
    /// When it connected, or completed its last request.
    active_at: Instant,
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

    /// Accepts clients, answers their requests, and disconnects other users and idle clients.
    pub(super) fn serve(&mut self, now: Instant, mut answer: impl FnMut(Request) -> Reply) {
        while let Ok((socket, _)) = self.socket.accept() {
            if socket.set_nonblocking(true).is_err() {
                continue;
            }
            if !access::is_allowed(&socket) {
                // A client that has gone already needs no reason.
                let _ = (&socket).write_all(&Reply::Error(access::refusal()).line());
            } else if self.clients.len() < MOST {
                self.clients.push(Client {
                    socket,
                    line: Vec::new(),
                    active_at: now,
                });
            }
        }
        self.clients.retain_mut(|client| {
            client.serve(now, &mut answer) && now.saturating_duration_since(client.active_at) < IDLE
        });
    }
}

impl Client {
    /// Answers what was asked; false when the client has gone or asks what nobody does.
    fn serve(&mut self, now: Instant, answer: &mut impl FnMut(Request) -> Reply) -> bool {
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
            // Who does not read its answers is gone.
            if self.socket.write_all(&reply.line()).is_err() {
                return false;
            }
            self.active_at = now;
        }
        stays
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;

    use rustix::process::Uid;

    use super::*;

    /// The user "nobody", who owns nothing.
    const NOBODY: u32 = 65_534;

    fn listener(name: &str) -> (Listener, String) {
        let name = format!("longfat/test/{}/{name}", std::process::id());
        (Listener::bind(&name).unwrap(), name)
    }

    fn connect(name: &str) -> UnixStream {
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap()
    }

    fn status(_: Request) -> Reply {
        Reply::Status {
            peers: Vec::new(),
            connections: Vec::new(),
        }
    }

    fn line(client: &UnixStream) -> String {
        let mut text = String::new();
        io::BufReader::new(client).read_line(&mut text).unwrap();
        text
    }

    #[test]
    fn serves_its_own_user() {
        let (mut listener, name) = listener("own");
        let mut client = connect(&name);
        client.write_all(b"{\"status\": {}}\n").unwrap();
        listener.serve(Instant::now(), status);
        assert_eq!(line(&client), "{\"status\":{\"peers\":[],\"connections\":[]}}\n");
    }

    #[test]
    fn refuses_other_users_without_reading_their_requests() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: becoming another user takes root");
            return;
        }
        let (mut listener, name) = listener("other");
        // Credentials belong to a thread; this one ends with its own.
        let client = std::thread::spawn(move || {
            let nobody = Uid::from_raw(NOBODY);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            let mut client = connect(&name);
            client.write_all(b"{\"status\": {}}\n").unwrap();
            client
        });
        let client = client.join().unwrap();
        listener.serve(Instant::now(), |_| panic!("a request of another user"));
        assert_eq!(
            line(&client),
            "{\"error\":\"the path manager here serves root only\"}\n"
        );
        assert!(listener.clients.is_empty());
    }

    #[test]
    fn disconnects_clients_that_complete_no_request() {
        let (mut listener, name) = listener("idle");
        let mut client = connect(&name);
        let start = Instant::now();
        listener.serve(start, status);
        // Bytes that complete no line do not count.
        client.write_all(b"{").unwrap();
        listener.serve(start + IDLE - Duration::from_millis(1), status);
        assert_eq!(listener.clients.len(), 1);
        listener.serve(start + IDLE, status);
        assert!(listener.clients.is_empty());
        assert_eq!(line(&client), "");
    }
}
