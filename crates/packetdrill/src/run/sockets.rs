//! The files that a script opens, and socket options.

use foundation::{Duration, Instant, Size};
use transport::congestion::CongestionConfig;
use transport::tcp::TcpConfig;

use super::tested::TestedConnection;

/// An open file.
#[derive(Debug)]
pub enum File {
    /// A socket.
    Socket(Box<Socket>),
    /// An epoll instance.
    Epoll(Vec<Watch>),
    /// A regular file, the source of `sendfile`.
    Plain,
}

/// A TCP socket.
#[derive(Debug, Default)]
pub struct Socket {
    /// Its state.
    pub role: Role,
    /// Its options.
    pub options: SocketOptions,
    /// `O_NONBLOCK`.
    pub nonblocking: bool,
    /// `IPPROTO_MPTCP`.
    pub multipath: bool,
}

/// The state of a socket.
#[derive(Debug, Default)]
pub enum Role {
    /// Neither listening nor connected.
    #[default]
    Fresh,
    /// `connect` with `TCP_FASTOPEN_CONNECT` and a cookie: the SYN waits for the first write.
    Deferred,
    /// Listening, with the connections that wait to be accepted.
    Listening(Vec<usize>),
    /// One connection.
    Connection(usize),
}

/// One file in an epoll instance.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The file.
    pub number: i64,
    /// Events to report, with `EPOLLET` and `EPOLLONESHOT`.
    pub events: u64,
    /// The identity of the file in reports.
    pub name: String,
    /// The last report, and the counts of arrivals and openings at that time.
    pub reported: Option<(u64, u64, u64)>,
    /// Whether a one-shot report was given.
    pub spent: bool,
}

/// Options of a socket.
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
    /// `SO_RCVBUF`: Linux doubles it and uses half of that as window.
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
    /// `SO_ZEROCOPY`.
    pub zerocopy: bool,
    /// `TCP_INQ`.
    pub inquires: bool,
    /// `TCP_FASTOPEN`: the limit of pending connections, 0 without Fast Open.
    pub fast_open_queue: u64,
    /// `TCP_FASTOPEN_CONNECT`.
    pub fast_open_connect: bool,
    /// `TCP_FASTOPEN_KEY`.
    pub fast_open_key: Option<[u8; 16]>,
    /// Other options, stored for `getsockopt`.
    pub others: Vec<(String, i64)>,
}

/// Linux's default idle time before keep-alive probes.
const KEEP_ALIVE: Duration = Duration::from_secs(7200);

impl SocketOptions {
    /// Applies the options that take effect when a connection is opened.
    pub fn configure(&self, config: &mut TcpConfig) {
        if let Some(bytes) = self.send_buffer {
            // A buffer with an explicit size does not grow (`SOCK_SNDBUF_LOCK`).
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

    /// Applies the options that can change on an open connection.
    pub fn apply(&self, now: Instant, tested: &mut TestedConnection) {
        if tested.gone {
            return;
        }
        tested.notices.zerocopy = self.zerocopy;
        if let Some(machine) = tested.machine.tcp_mut() {
            machine.set_nodelay(self.no_delay);
            machine.set_cork(self.cork);
            if let Some(retries) = self.syn_retries {
                machine.set_syn_retries(retries);
            }
            if let Some(timeout) = self.user_timeout {
                machine.set_user_timeout(timeout);
            }
            if let Some(bytes) = self.send_buffer {
                machine.set_send_buffer(bytes);
            }
        }
        tested.collect(now);
    }
}
