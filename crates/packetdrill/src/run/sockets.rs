//! Files that a script opens, and what it sets on sockets.

use foundation::{Duration, Instant, Size};
use transport::congestion::CongestionConfig;
use transport::tcp::TcpConfig;

use super::link::Link;

/// A file.
#[derive(Debug)]
pub enum File {
    /// A socket.
    Socket(Box<Socket>),
    /// An epoll instance.
    Epoll(Vec<Watch>),
    /// A file on disk, to be sent from.
    Plain,
}

/// A TCP socket.
#[derive(Debug, Default)]
pub struct Socket {
    /// What it is for.
    pub role: Role,
    /// What was set on it.
    pub options: SocketOptions,
    /// `O_NONBLOCK`.
    pub nonblocking: bool,
}

/// What a socket is for.
#[derive(Debug, Default)]
pub enum Role {
    /// Nothing yet.
    #[default]
    Fresh,
    /// Listening; connections that wait to be accepted.
    Listening(Vec<usize>),
    /// One connection.
    Connection(usize),
}

/// One file that an epoll instance watches.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The file.
    pub number: i64,
    /// What to report, with `EPOLLET` and `EPOLLONESHOT`.
    pub events: u64,
    /// What identifies the file in reports.
    pub name: String,
    /// What was reported last, and the counts of arrivals and openings at that time.
    pub reported: Option<(u64, u64, u64)>,
    /// Whether a one-shot report was given.
    pub spent: bool,
}

/// What was set on a socket.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `TCP_CORK`.
    pub cork: bool,
    /// `TCP_MAXSEG`.
    pub mss: Option<u32>,
    /// `TCP_USER_TIMEOUT`.
    pub user_timeout: Option<Duration>,
    /// `SO_SNDBUF`, doubled as Linux does.
    pub send_buffer: Option<u64>,
    /// `SO_RCVBUF`, doubled as Linux does.
    pub receive_buffer: Option<u64>,
    /// `SO_LINGER`: seconds, if on.
    pub linger: Option<u64>,
    /// `SO_KEEPALIVE`.
    pub keep_alive: bool,
    /// `TCP_KEEPIDLE`.
    pub keep_alive_after: Option<Duration>,
    /// `TCP_CONGESTION`.
    pub congestion: Option<CongestionConfig>,
    /// `TCP_SYNCNT`.
    pub syn_retries: Option<u32>,
    /// Other figures, as they were set, for `getsockopt`.
    pub others: Vec<(String, i64)>,
}

/// How long Linux waits before it probes a silent peer, where a socket asks for probes and not for a time.
const KEEP_ALIVE: Duration = Duration::from_secs(7200);

impl SocketOptions {
    /// Sets what concerns a connection from its beginning.
    pub fn configure(&self, config: &mut TcpConfig) {
        if let Some(bytes) = self.send_buffer {
            // A buffer whose size was set does not grow (`SOCK_SNDBUF_LOCK`).
            config.send_buffer = Some(Size::from_bytes(bytes));
            config.send_autotuning = Some(false);
        }
        if let Some(bytes) = self.receive_buffer {
            config.receive_buffer = Some(Size::from_bytes(bytes));
            config.receive_autotuning = Some(false);
        }
        if let Some(retries) = self.syn_retries {
            config.syn_retries = Some(retries);
        }
        if let Some(congestion) = &self.congestion {
            config.congestion = Some(congestion.clone());
        }
        if let Some(timeout) = self.user_timeout {
            config.user_timeout = Some(timeout);
        }
        if self.no_delay {
            config.nagle = Some(false);
        }
        if self.keep_alive {
            config.keep_alive = Some(self.keep_alive_after.unwrap_or(KEEP_ALIVE));
        }
    }

    /// Sets what can change while a connection lives.
    pub fn apply(&self, now: Instant, link: &mut Link) {
        if link.gone {
            return;
        }
        link.machine.set_nodelay(self.no_delay);
        link.machine.set_cork(self.cork);
        if let Some(timeout) = self.user_timeout {
            link.machine.set_user_timeout(timeout);
        }
        if let Some(bytes) = self.send_buffer {
            link.machine.set_send_buffer(bytes);
        }
        link.settle(now);
    }
}
