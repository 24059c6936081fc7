//! Two hosts with three paths between them, for the kernel's MPTCP.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use emulation::Emulation;
use kernel::mptcp::{self, ConnectionInfo, Manager};
use network::Topology;

use super::{FAR, Requirement, options, skip, start, topology};

/// Two hosts and three paths of 20 Mbit/s; the second has the smallest delay.
pub fn three_paths() -> Topology {
    let link = |from: &str, to: &str, delay: &str| {
        format!(r#"{{"from": "{from}", "to": "{to}", "rate": "20Mbit/s", "delay": "{delay}"}}"#)
    };
    let links = [
        link("a", "x", "30ms"),
        link("x", "b", "1ms"),
        link("a", "y", "5ms"),
        link("y", "b", "1ms"),
        link("a", "z", "20ms"),
        link("z", "b", "1ms"),
    ];
    topology(&format!(
        r#"{{"kind": "free", "hosts": ["a", "b"], "routers": ["x", "y", "z"], "links": [{}]}}"#,
        links.join(", ")
    ))
}

/// Starts the network; `None`, with a printed reason, if the system lacks something.
pub fn network() -> Option<Emulation> {
    if mptcp::is_enabled() != Some(true) || mptcp::path_manager().is_err() {
        skip(
            Requirement::Mptcp,
            "the kernel has no MPTCP with a path manager in user space",
        );
        return None;
    }
    start(options(three_paths()))
}

/// A timeout beyond all expected durations.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A listener at the far host that reads everything in a thread and then closes.
pub fn sink(emulation: &Emulation) -> SocketAddr {
    let listener: TcpListener = emulation.in_host(FAR, || {
        Manager::open().unwrap().set_limits(8, 8).unwrap();
        mptcp::listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).unwrap()
    });
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            std::thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while socket.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
    SocketAddr::from((emulation.host_address(FAR), port))
}

/// A listener at the far host that answers the first byte of each connection with `bytes` bytes.
pub fn source(emulation: &Emulation, bytes: usize) -> SocketAddr {
    let listener: TcpListener = emulation.in_host(FAR, || {
        Manager::open().unwrap().set_limits(8, 8).unwrap();
        mptcp::listen(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))).unwrap()
    });
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut socket, _)) = listener.accept() {
            // The client may have gone.
            let _ = socket
                .read(&mut [0])
                .and_then(|_| socket.write_all(&vec![7; bytes]));
        }
    });
    SocketAddr::from((emulation.host_address(FAR), port))
}

/// Packets so far on each path, in the direction of the data.
pub fn packets(emulation: &Emulation) -> [u64; 3] {
    emulation.with_network(|network, _| {
        ["a-x", "a-y", "a-z"].map(|name| {
            let link = network
                .links()
                .find(|&link| network.link_name(link) == name)
                .unwrap();
            network.counters(link).delivered.packets
        })
    })
}

/// Sends bytes and waits until the peer has read them.
pub fn send(mut socket: TcpStream, bytes: usize) {
    socket.write_all(&vec![7; bytes]).unwrap();
    // Linux refuses subflows of a connection that this end has closed.
    while ConnectionInfo::of_socket(&socket)
        .unwrap()
        .unwrap()
        .unacknowledged
        > 0
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}
