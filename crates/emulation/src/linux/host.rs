//! An emulated host: a namespace with one TUN device for each way to other hosts.

use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;

use network::HostId;

use super::device::Device;
use super::namespace::Namespace;
use super::netlink::{self, DeviceConfig, Netlink, Route};
use super::offload::burst;
use super::tun;
use crate::address::Block;
use crate::error::{Error, system_error};

/// The first device of every host.
pub const DEVICE: &str = "longfat0";
/// The prefix of all our devices.
pub const DEVICE_PREFIX: &str = "longfat";
/// Transmit queue of a device in packets: 50 ms at 200,000 packets a second.
const QUEUE: u32 = 10_000;

/// Properties of the devices of all hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceOptions {
    /// The MTU in bytes.
    pub(crate) mtu: u32,
    /// The most bytes that a host passes as one packet; less than two packets: hosts send segments one by one.
    pub(crate) burst: u32,
}

impl DeviceOptions {
    /// Segments that a host passes as one packet.
    fn segments(self) -> u32 {
        burst::packets(self.burst, self.mtu)
    }

    fn create(self, name: &str) -> Result<Device, Error> {
        tun::create(name, self.segments() > 1)
    }
}

/// Sysctls of every namespace (Linux' `Documentation/networking/ip-sysctl.rst`). They do not affect other namespaces.
const SYSCTLS: &[(&str, &str)] = &[
    // No neighbor discovery: it would add packets.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
    // Connections must not learn from earlier ones.
    ("net/ipv4/tcp_no_metrics_save", "1"),
    // Minimum, default and maximum bytes: enough for 1 Gbit/s over 250 ms.
    ("net/ipv4/tcp_rmem", "4096 131072 67108864"),
    ("net/ipv4/tcp_wmem", "4096 16384 67108864"),
    // No rate limit for ICMP errors.
    ("net/ipv4/icmp_ratelimit", "0"),
    // With several ways, the way back may differ.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
];

/// Linux's initial time to live (RFC 1700): paths with more links need a larger one.
const USUAL_HOPS: u8 = 64;

/// All groups may open ping sockets; in a user namespace only existing groups are valid.
const PINGERS: (&str, [&str; 2]) = ("net/ipv4/ping_group_range", ["0 2147483647", "0 0"]);

/// A host's namespace and its TUN devices, by way.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) ports: Vec<Device>,
}

impl Host {
    /// Creates a namespace with `ways` devices. Packets from a way's address, and packets to other hosts' addresses of
    /// that way, use its device; all others use the first one. `loopback`: MTU of the loopback device, if not the
    /// kernel's.
    pub(crate) fn create(
        block: Block,
        host: HostId,
        (ways, links): (u8, u8),
        options: DeviceOptions,
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
                let port = options.create(&name)?;
                let destination = (way > 0).then(|| block.way(way));
                connect(&name, source, destination, &port, options)?;
                ports.push(port);
                if way > 0 {
                    choose_by_source(&name, source, way)?;
                }
            }
            let config = loopback.map(|mtu| DeviceConfig {
                mtu,
                queue: QUEUE,
                segments: 1,
            });
            let up = Netlink::open().and_then(|link| link.set_up(netlink::device("lo")?, config));
            up.map_err(|error| system_error("set up the loopback device", error))?;
            Ok(ports)
        })?;
        Ok(Self { namespace, ports })
    }

    /// Adds a device at `address` to a namespace of another emulation, with a route to `block`. That host forwards
    /// packets between its devices.
    pub(crate) fn join(
        namespace: Namespace,
        address: Ipv4Addr,
        block: Block,
        options: DeviceOptions,
    ) -> Result<Self, Error> {
        let ports = within(&namespace, || {
            set("net/ipv4/ip_forward", "1")?;
            let name = (1..=255)
                .map(device_name)
                .find(|name| netlink::device(name).is_err())
                .unwrap_or_else(|| DEVICE.into());
            let port = options.create(&name)?;
            connect(&name, address, Some(block.whole()), &port, options)?;
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

/// The device of a way.
pub(crate) fn device_name(way: u8) -> String {
    format!("{DEVICE_PREFIX}{way}")
}

/// Routes all packets from `source` through the device.
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
    port: &Device,
    options: DeviceOptions,
) -> Result<(), Error> {
    let config = DeviceConfig {
        mtu: options.mtu,
        queue: QUEUE,
        // Without offload the kernel would split segments itself, after passing them at once.
        segments: if port.has_offload() { options.segments() } else { 1 },
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

/// Sets a sysctl of the calling thread's network namespace. Ignores one that the kernel does not have.
pub(crate) fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/{name}");
    match std::fs::write(&path, value) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(system_error(format!("write {value:?} to {path}"), error))
        }
        _ => Ok(()),
    }
}

/// The nesting depth of the emulated host that the calling thread is in; `None` outside.
pub(crate) fn depth_here() -> Option<u8> {
    use std::net::{SocketAddr, UdpSocket};
    netlink::device(DEVICE).ok()?;
    // The default route uses the host's own address. Connecting a UDP socket sends no packet.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Block::nested(0).anonymous(), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(own) => Block::depth_of(*own.ip()),
        SocketAddr::V6(_) => None,
    }
}
