//! What this process may do of what measurements ask for, and what to do about what it may not.

use std::fs::read_to_string;

use socket2::{Domain, Protocol, Socket, Type};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// What it is.
    pub name: &'static str,
    /// What was found.
    pub detail: String,
    /// What to do about it; `None` where nothing needs to be done.
    pub remedy: Option<String>,
}

/// The bits of `net.ipv4.tcp_fastopen` in this network namespace: 1 for clients, 2 for servers.
#[must_use]
pub fn fast_open() -> u32 {
    let text = read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Whether echo requests can be sent, and by what.
#[must_use]
pub fn echo_requests() -> Right {
    let name = "echo requests";
    let opens = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4)).is_ok();
    let (detail, remedy) = match (opens(Type::DGRAM), opens(Type::RAW)) {
        (true, _) => ("ICMP datagram sockets", None),
        (false, true) => ("raw sockets", None),
        _ => (
            "neither ICMP datagram sockets nor raw ones",
            Some(crate::ping::REMEDY.into()),
        ),
    };
    Right {
        name,
        detail: detail.into(),
        remedy,
    }
}

/// Whether frames can be captured.
#[must_use]
pub fn captures() -> Right {
    let opened = Socket::new(Domain::PACKET, Type::DGRAM, None);
    let (detail, remedy) = match opened {
        Ok(_) => ("AF_PACKET sockets".into(), None),
        Err(error) => (
            format!("no AF_PACKET sockets: {}", error.kind()),
            Some(crate::capture::REMEDY.into()),
        ),
    };
    Right {
        name: "captures",
        detail,
        remedy,
    }
}

/// Whether the kernel stamps what sockets send and receive: asked of a loopback.
#[must_use]
pub fn stamps() -> Right {
    let (detail, remedy) = match stamped() {
        Ok(true) => ("of what is sent and received".to_owned(), None),
        Ok(false) => (
            "none of what is sent".to_owned(),
            Some("round trips are the application's; use a kernel with software time stamps".to_owned()),
        ),
        Err(error) => (
            format!("none: {error}"),
            Some("round trips are the application's; use Linux 3.2 or newer".to_owned()),
        ),
    };
    Right {
        name: "kernel time stamps",
        detail,
        remedy,
    }
}

fn stamped() -> std::io::Result<bool> {
    use std::os::fd::AsFd;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    crate::timestamps::enable(socket.as_fd())?;
    socket.send_to(&[0], socket.local_addr()?)?;
    let (mut buffer, mut control) = ([0; 8], crate::system::Control::default());
    let told = crate::timestamps::take_error(socket.as_fd(), &mut buffer, &mut control)?;
    Ok(matches!(told, Some(crate::timestamps::Queued::Sent { .. })))
}
