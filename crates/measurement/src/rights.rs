//! The privileges of this process that measurements need, with remedies for missing ones.

use std::fs::read_to_string;

use socket2::{Domain, Protocol, Socket, Type};

/// One checked facility.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// Its name.
    pub name: &'static str,
    /// What was found.
    pub detail: String,
    /// How to fix it; `None` if nothing is missing.
    pub remedy: Option<String>,
}

/// Returns the bits of `net.ipv4.tcp_fastopen` in this network namespace: 1 for clients, 2 for servers.
#[must_use]
pub fn fast_open() -> u32 {
    let text = read_to_string("/proc/sys/net/ipv4/tcp_fastopen").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Checks which sockets can send echo requests.
#[must_use]
pub fn echo_requests() -> Right {
    let name = "echo requests";
    let opens = |kind| Socket::new(Domain::IPV4, kind, Some(Protocol::ICMPV4)).is_ok();
    let (detail, remedy) = match (opens(Type::DGRAM), opens(Type::RAW)) {
        (true, _) => ("ICMP datagram sockets", None),
        (false, true) => ("raw sockets", None),
        _ => (
            "neither ICMP datagram sockets nor raw sockets",
            Some(crate::ping::REMEDY.into()),
        ),
    };
    Right {
        name,
        detail: detail.into(),
        remedy,
    }
}

/// Checks whether frames can be captured.
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

/// Checks on loopback whether the kernel stamps sent and received packets.
#[must_use]
pub fn stamps() -> Right {
    let (detail, remedy) = match stamped() {
        Ok(true) => ("sent and received packets".to_owned(), None),
        Ok(false) => (
            "no stamps of sent packets".to_owned(),
            Some(
                "only application round trips are available; use a kernel with software time stamps"
                    .to_owned(),
            ),
        ),
        Err(error) => (
            format!("none: {error}"),
            Some("only application round trips are available; use Linux 3.2 or newer".to_owned()),
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
    let queued = crate::timestamps::take_error(socket.as_fd(), &mut buffer, &mut control)?;
    Ok(matches!(queued, Some(crate::timestamps::Queued::Sent { .. })))
}
