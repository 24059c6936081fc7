//! One emulated host: a namespace whose only ways out are TUN ports, one for each way that leads to others.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use network::HostId;

use super::namespace::Namespace;
use super::netlink::{self, DeviceConfig, Netlink, Route};
use super::tun;
use crate::address::Block;
use crate::error::{Error, system_error};

/// The name of the device at every host.
pub const DEVICE: &str = "longfat0";
/// What the names of all our devices begin with.
pub const DEVICE_PREFIX: &str = "longfat";
/// Packets that may wait at a device until the emulator reads them: as many as come in 50 ms at 200,000 a second.
const QUEUE: u32 = 10_000;
/// TCP hands over one segment at a time. As many as it likes at once would reach the emulated link in one burst, where
/// simulated hosts (and pacing) send one after another.
const SEGMENTS: u32 = 1;

/// What every namespace is set to, before its devices are up. Each of them is the namespace's own: nothing outside
/// changes. Linux' `Documentation/networking/ip-sysctl.rst` has their meaning.
const SYSCTLS: &[(&str, &str)] = &[
    // Neighbour discovery and its like would be packets nobody has sent.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // A connection must not begin with what one before it has learnt of the path.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Least, default and most bytes: enough for a window of 1 Gbit/s over 250 ms.
    ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
    ("net/ipv4/tcp_wmem", "4096 16384 67108864"),
    // ICMP errors are answers of the emulation: none is held back.
    ("net/ipv4/icmp_ratelimit", "0"),
    // Of several ways any may be the way back.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
];

/// The time to live that Linux gives packets (RFC 1700): they pass as many links.
const USUAL_HOPS: u8 = 64;

/// Everybody may ping; or, in a user namespace, the groups that exist in it.
const PINGERS: (&str, [&str; 2]) = ("net/ipv4/ping_group_range", ["0 2147483647", "0 0"]);

/// A host's namespace, and the descriptors of its TUN devices, one a way.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) ports: Vec<OwnedFd>,
}

impl Host {
    /// A namespace of its own with one device for each of so many `ways`. What leaves from the address of a way goes
    /// that way, and so does what goes to another host's address of the way; the rest goes the first way. `loopback`: the
    /// MTU of its loopback interface, where it is not the kernel's.
    pub(crate) fn create(
        block: Block,
        host: HostId,
        (ways, links): (u8, u8),
        mtu: u32,
        loopback: Option<u32>,
    ) -> Result<Self, Error> {
        let namespace = Namespace::create()?;
        let ports = within(&namespace, || {
            for (name, value) in SYSCTLS {
                set(name, value)?;
            }
            if links > USUAL_HOPS {
                set("net/ipv4/ip_default_ttl", "255")?;
            }
            let (name, [all, some]) = PINGERS;
            set(name, all).or_else(|_| set(name, some))?;
            let mut ports = Vec::new();
            for way in 0..ways {
                let (name, source) = (device_name(way), block.on_way(host, way));
                ports.push(tun::create(&name)?);
                let destination = (way > 0).then(|| block.way(way));
                connect(&name, source, destination, mtu)?;
                if way > 0 {
                    choose_by_source(&name, source, way)?;
                }
            }
            let config = loopback.map(|mtu| DeviceConfig {
                mtu,
                queue: QUEUE,
                segments: SEGMENTS,
            });
            let up = Netlink::open().and_then(|link| link.set_up(netlink::device("lo")?, config));
            up.map_err(|error| system_error("set up the loopback device", error))?;
            Ok(ports)
        })?;
        Ok(Self { namespace, ports })
    }

    /// A further device at `address` in a namespace that another emulation has made, into which the route to the
    /// addresses of `block` leads. That host passes packets on between its devices.
    pub(crate) fn join(
        namespace: Namespace,
        address: Ipv4Addr,
        block: Block,
        mtu: u32,
    ) -> Result<Self, Error> {
        let ports = within(&namespace, || {
            set("net/ipv4/ip_forward", "1")?;
            let name = (1..=255)
                .map(device_name)
                .find(|name| netlink::device(name).is_err())
                .unwrap_or_else(|| DEVICE.into());
            let port = tun::create(&name)?;
            connect(&name, address, Some(block.whole()), mtu)?;
            Ok(vec![port])
        })?;
        Ok(Self { namespace, ports })
    }
}

fn within<T: Send>(namespace: &Namespace, f: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    namespace
        .run(f)
        .map_err(|error| system_error("enter a network namespace", error))?
}

/// The name of the device of a way.
pub(crate) fn device_name(way: u8) -> String {
    format!("{DEVICE_PREFIX}{way}")
}

/// What leaves from `source` goes into the device, wherever it goes.
fn choose_by_source(name: &str, source: Ipv4Addr, way: u8) -> Result<(), Error> {
    let chosen = || -> io::Result<()> {
        let link = Netlink::open()?;
        let route = Route {
            device: netlink::device(name)?,
            destination: None,
            source,
            table: Some(way),
        };
        link.add_route(route)?;
        link.add_rule(source, way)
    };
    chosen().map_err(|error| system_error(format!("route by the source {source}"), error))
}

fn connect(
    name: &str,
    address: Ipv4Addr,
    destination: Option<(Ipv4Addr, u8)>,
    mtu: u32,
) -> Result<(), Error> {
    let config = DeviceConfig {
        mtu,
        queue: QUEUE,
        segments: SEGMENTS,
    };
    let connected = || -> io::Result<()> {
        let (link, device) = (Netlink::open()?, netlink::device(name)?);
        link.set_up(device, Some(config))?;
        link.add_address(device, address)?;
        let route = Route {
            device,
            destination,
            source: address,
            table: None,
        };
        link.add_route(route)
    };
    connected().map_err(|error| system_error(format!("set up {name} at {address}"), error))
}

/// Sets a sysctl of the calling thread's network namespace. A kernel without it does not do what it is about.
pub(crate) fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/{name}");
    match std::fs::write(&path, value) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(system_error(format!("write {value:?} to {path}"), error))
        }
        _ => Ok(()),
    }
}

/// How many emulations the host is inside that the calling thread is at; `None` outside of all hosts.
pub(crate) fn depth_here() -> Option<u8> {
    use std::net::{SocketAddr, UdpSocket};
    netlink::device(DEVICE).ok()?;
    // Towards anywhere the host's own address is used. Connecting a datagram socket sends nothing.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Block::nested(0).anonymous(), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(own) => Block::depth_of(*own.ip()),
        SocketAddr::V6(_) => None,
    }
}
