//! Requests of applications to a path manager: one JSON object per line over an abstract Unix socket (`unix(7)`), which
//! belongs to the network namespace and leaves no file. It serves root and the path manager's own user.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr as InternetAddress};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use serde::{Deserialize, Serialize};

use super::access;
use crate::error::{self, Error};

/// The default socket name.
pub const NAME: &str = "longfat/mptcp";

/// The longest line in bytes, and the most clients: more are not an honest use.
const LONGEST: usize = 4096;
const MOST: usize = 256;
/// Time after which a client without a complete request is disconnected.
const IDLE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Registers a connection that the application will open; the reply has its source address.
    Open {
        /// The peer.
        to: IpAddr,
        /// Bytes to send, if known.
        size: Option<u64>,
    },
    /// Names the connection that the application opened.
    Begin {
        /// The number from the reply.
        opening: u64,
        /// The token of the connection (`MPTCP_INFO`).
        token: u32,
        /// The peer's port.
        port: u16,
    },
    /// Requests all peers and connections.
    Status {},
}

/// A path in a status reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathStatus {
    /// Its address at this host.
    pub address: IpAddr,
    /// Its address at the peer.
    pub remote: IpAddr,
    /// The last smoothed RTT in milliseconds; null without a sample.
    pub rtt_ms: Option<f64>,
    /// The minimum RTT in milliseconds.
    pub base_rtt_ms: Option<f64>,
    /// Bytes in flight.
    pub unfinished: u64,
    /// Bytes acknowledged in total.
    pub acknowledged: u64,
    /// Open subflows.
    pub subflows: u32,
}

/// A peer in a status reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerStatus {
    /// Its address.
    pub address: IpAddr,
    /// The paths to it.
    pub paths: Vec<PathStatus>,
}

/// A connection in a status reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionStatus {
    /// Its token.
    pub token: u32,
    /// The peer.
    pub to: IpAddr,
    /// Bytes to send; null if unknown.
    pub size: Option<u64>,
    /// Acknowledged bytes by address of this host.
    pub bytes: Vec<(IpAddr, u64)>,
    /// Received bytes by address of this host.
    pub received: Vec<(IpAddr, u64)>,
    /// Its subflows.
    pub subflows: Vec<SubflowStatus>,
}

/// A subflow in a status reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubflowStatus {
    /// Address and port at this host.
    pub local: InternetAddress,
    /// Address and port at the peer.
    pub remote: InternetAddress,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Accepts a registration.
    Opening {
        /// The number to name in [`Request::Begin`].
        opening: u64,
        /// The source address to connect from.
        from: IpAddr,
    },
    /// The connection is managed.
    Begun {
        /// The token.
        token: u32,
    },
    /// All peers and connections.
    Status {
        /// The kind of the path policy.
        policy: String,
        /// Hosts with connections.
        peers: Vec<PeerStatus>,
        /// Open connections.
        connections: Vec<ConnectionStatus>,
    },
    /// The request failed.
    Error(String),
}

impl Reply {
    fn line(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// The socket and its clients.
pub(super) struct Listener {
    socket: UnixListener,
    clients: Vec<Client>,
}

struct Client {
    socket: UnixStream,
    line: Vec<u8>,
    /// Time of the connection or of the last complete request.
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
            ErrorKind::AddrInUse => Error::system(
                format!("serve @{name}: another path manager runs in this network namespace"),
                error,
            ),
            _ => error::mptcp(format!("serve @{name}"), error),
        })?;
        Ok(Self {
            socket,
            clients: Vec::new(),
        })
    }

    /// Descriptors to poll.
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
                // The client may have gone already.
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
    /// Answers the complete requests; returns false once the client is gone or misbehaves.
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
            // A client that does not read its replies is disconnected.
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

    /// The user "nobody".
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
            policy: "all".into(),
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
        assert_eq!(
            line(&client),
            "{\"status\":{\"policy\":\"all\",\"peers\":[],\"connections\":[]}}\n"
        );
    }

    #[test]
    fn refuses_other_users_without_reading_their_requests() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can become another user");
            return;
        }
        let (mut listener, name) = listener("other");
        // Credentials belong to the thread, which ends here.
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
        // An incomplete line does not count.
        client.write_all(b"{").unwrap();
        listener.serve(start + IDLE - Duration::from_millis(1), status);
        assert_eq!(listener.clients.len(), 1);
        listener.serve(start + IDLE, status);
        assert!(listener.clients.is_empty());
        assert_eq!(line(&client), "");
    }
}
