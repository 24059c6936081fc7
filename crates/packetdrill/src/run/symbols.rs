//! Symbols of system calls with Linux's values, so that flags can be combined and compared.

use crate::language::Expression;

/// `MSG_MORE`: more follows at once.
pub const MSG_MORE: u64 = 0x8000;
/// `MSG_DONTWAIT`: do not block.
pub const MSG_DONTWAIT: u64 = 0x40;
/// `MSG_PEEK`: keep the data in the buffer.
pub const MSG_PEEK: u64 = 0x02;
/// `MSG_TRUNC`: discard the data.
pub const MSG_TRUNC: u64 = 0x20;
/// `MSG_WAITALL`: wait for the full length.
pub const MSG_WAITALL: u64 = 0x100;
/// `MSG_NOSIGNAL`: no SIGPIPE.
pub const MSG_NOSIGNAL: u64 = 0x4000;
/// `MSG_EOR`: the end of a record.
pub const MSG_EOR: u64 = 0x80;
/// `MSG_ERRQUEUE`: read the error queue.
pub const MSG_ERRQUEUE: u64 = 0x2000;
/// `MSG_ZEROCOPY`: report when the buffer is free.
pub const MSG_ZEROCOPY: u64 = 0x400_0000;
/// `MSG_FASTOPEN`: open the connection with this data.
pub const MSG_FASTOPEN: u64 = 0x2000_0000;
/// `O_NONBLOCK`: calls on the file never block.
pub const O_NONBLOCK: u64 = 0x800;
/// `EPOLLIN` and `POLLIN`: readable.
pub const IN: u64 = 0x001;
/// `EPOLLOUT`: writable.
pub const OUT: u64 = 0x004;
/// `EPOLLERR`: an error is pending.
pub const ERR: u64 = 0x008;
/// `EPOLLHUP`: closed in both directions.
pub const HUP: u64 = 0x010;
/// `EPOLLRDHUP`: the peer has finished.
pub const RDHUP: u64 = 0x2000;
/// `EPOLLONESHOT`: report once.
pub const ONESHOT: u64 = 1 << 30;
/// `EPOLLET`: report changes instead of states.
pub const EDGE: u64 = 1 << 31;

const VALUES: [(&str, u64); 57] = [
    ("MSG_MORE", MSG_MORE),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_TRUNC", MSG_TRUNC),
    ("MSG_WAITALL", MSG_WAITALL),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_EOR", MSG_EOR),
    ("MSG_OOB", 0x01),
    ("MSG_ERRQUEUE", MSG_ERRQUEUE),
    ("MSG_FASTOPEN", MSG_FASTOPEN),
    ("MSG_ZEROCOPY", MSG_ZEROCOPY),
    ("O_RDONLY", 0),
    ("O_WRONLY", 1),
    ("O_RDWR", 2),
    ("O_NONBLOCK", O_NONBLOCK),
    ("O_TRUNC", 0x200),
    ("O_CREAT", 0x40),
    ("EPOLLIN", IN),
    ("EPOLLPRI", 0x002),
    ("EPOLLOUT", OUT),
    ("EPOLLERR", ERR),
    ("EPOLLHUP", HUP),
    ("EPOLLRDHUP", RDHUP),
    ("EPOLLONESHOT", ONESHOT),
    ("EPOLLET", EDGE),
    ("POLLIN", IN),
    ("POLLPRI", 0x002),
    ("POLLOUT", OUT),
    ("POLLERR", ERR),
    ("POLLHUP", HUP),
    ("POLLRDHUP", RDHUP),
    ("POLLRDNORM", 0x040),
    ("POLLWRNORM", 0x100),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("NULL", 0),
    ("SOMAXCONN", 4096),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("SIOCINQ", 0x541b),
    ("FIONREAD", 0x541b),
    ("SIOCOUTQ", 0x5411),
    ("SIOCOUTQNSD", 0x894b),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("IP_PMTUDISC_DONT", 0),
    ("EPOLLEXCLUSIVE", 1 << 28),
    ("SOF_TIMESTAMPING_TX_SCHED", 0x100),
    ("SOF_TIMESTAMPING_TX_SOFTWARE", 0x2),
    ("SOF_TIMESTAMPING_TX_ACK", 0x200),
    ("SOF_TIMESTAMPING_SOFTWARE", 0x10),
    ("SOF_TIMESTAMPING_OPT_ID", 0x80),
];

/// The states of connections as numbered in `tcp_info`.
const STATES: [(&str, u64); 11] = [
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
];

/// Returns all symbols with their values.
pub fn all() -> impl Iterator<Item = (&'static str, u64)> {
    VALUES.iter().chain(&STATES).copied()
}

/// Returns the value of a symbol.
pub fn value(name: &str) -> Option<u64> {
    all().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Evaluates numbers, symbols, and both combined with `|`.
pub fn number(expression: &Expression) -> Result<i64, String> {
    match expression {
        Expression::Integer(number) => Ok(*number),
        Expression::Symbol(name) => match value(name) {
            Some(value) => Ok(value as i64),
            None => Err(format!("the symbol {name}")),
        },
        Expression::Or(left, right) => Ok(number(left)? | number(right)?),
        Expression::List(items) if items.len() == 1 => number(&items[0]),
        other => Err(format!("`{other}` as a number")),
    }
}

/// Formats poll flags as in scripts.
pub fn poll_flags(flags: u64) -> String {
    let names = ["EPOLLIN", "EPOLLOUT", "EPOLLERR", "EPOLLHUP", "EPOLLRDHUP"];
    let set: Vec<&str> = names
        .into_iter()
        .filter(|name| value(name).is_some_and(|bit| flags & bit != 0))
        .collect();
    if set.is_empty() {
        "0".to_owned()
    } else {
        set.join("|")
    }
}
