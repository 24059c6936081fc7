//! An emulated host: a namespace with one TUN device for each way to other hosts.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use network::HostId;

use super::default_controller::{self, Selection};
use super::device::Device;
use super::namespace::Namespace;
use super::netlink::{self, DeviceConfig, Netlink, Route};
use super::offload::burst;
use super::sysctl::{self, Settings};
use super::tun;
use crate::address::{Block, PREFIX_BITS, to_ipv6};
use crate::error::{Error, system_error};
use crate::options::{KernelOptions, Sysctl};

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

/// Sysctls that emulation needs at every host (Linux' `Documentation/networking/ip-sysctl.rst`). They do not affect
/// other namespaces.
const SYSCTLS: &[(&str, &str)] = &[
    // No rate limit for ICMP errors.
    ("net/ipv4/icmp_ratelimit", "0"),
    // With several ways, the way back may differ.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
];

/// Sysctls of hosts with IPv6: packets are those of programs only.
const WITH_IPV6: &[(&str, &str)] = &[
    ("net/ipv6/conf/all/disable_ipv6", "0"),
    ("net/ipv6/conf/default/disable_ipv6", "0"),
    // No addresses besides those of the emulation, and no search for routers and duplicate addresses.
    ("net/ipv6/conf/default/addr_gen_mode", "1"),
    ("net/ipv6/conf/default/accept_ra", "0"),
    ("net/ipv6/conf/default/autoconf", "0"),
    ("net/ipv6/conf/default/router_solicitations", "0"),
    ("net/ipv6/conf/default/dad_transmits", "0"),
    // No rate limit for ICMP errors.
    ("net/ipv6/icmp/ratelimit", "0"),
];

/// Sysctls of hosts without IPv6.
const WITHOUT_IPV6: &[(&str, &str)] = &[
    // No neighbor discovery: it would add packets.
    ("net/ipv6/conf/all/disable_ipv6", "1"),
    ("net/ipv6/conf/default/disable_ipv6", "1"),
];

/// Linux's initial time to live (RFC 1700): paths with more links need a larger one.
const USUAL_HOPS: u8 = 64;

/// All groups may open ping sockets; in a user namespace only existing groups are valid.
fn allow_pings() -> Result<(), Error> {
    const NAME: &str = "net/ipv4/ping_group_range";
    let own = rustix::process::getgid().as_raw();
    sysctl::set(NAME, "0 2147483647").or_else(|_| sysctl::set(NAME, &format!("{own} {own}")))
}

/// The kernel's settings of one host.
pub(crate) struct HostKernel<'a> {
    /// Settings that differ from those of a new namespace.
    pub(crate) inherited: &'a Settings,
    pub(crate) options: &'a KernelOptions,
    /// The host's name.
    pub(crate) name: &'a str,
}

impl HostKernel<'_> {
    /// The requested settings of this host.
    pub(crate) fn requested(&self) -> impl Iterator<Item = &Sysctl> {
        let sysctls = self.options.sysctls.iter();
        sysctls.filter(|sysctl| sysctl.host.as_deref().is_none_or(|host| host == self.name))
    }

    /// Applies the settings in the calling thread's namespace, before it has devices; returns how the requested
    /// congestion controller is selected. `links`: of the longest route.
    fn apply(&self, links: u8) -> Result<Option<Selection>, Error> {
        self.inherited.apply();
        let of_ipv6 = if self.options.has_ipv6 {
            WITH_IPV6
        } else {
            WITHOUT_IPV6
        };
        for (name, value) in SYSCTLS.iter().chain(of_ipv6) {
            sysctl::set(name, value)?;
        }
        if links > USUAL_HOPS {
            sysctl::set("net/ipv4/ip_default_ttl", "255")?;
            sysctl::set("net/ipv6/conf/default/hop_limit", "255")?;
        }
        allow_pings()?;
        for requested in self.requested() {
            sysctl::set_requested(requested)?;
        }
        let congestion = self.options.congestion.as_deref();
        congestion.map(default_controller::select).transpose()
    }
}

/// A host's namespace and its TUN devices, by way.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) ports: Vec<Device>,
    /// How the host selects the requested congestion controller.
    pub(crate) selection: Option<Selection>,
}

impl Host {
    /// Whether hosts with this MTU can have IPv6, which requires 1280 bytes (RFC 8200, section 5).
    pub(crate) fn can_have_ipv6(mtu: u32) -> bool {
        mtu >= 1280 && std::path::Path::new("/proc/sys/net/ipv6/conf").exists()
    }

    /// Creates a namespace with `ways` devices. Packets from a way's address, and packets to other hosts' addresses of
    /// that way, use its device; all others use the first one. `loopback`: MTU of the loopback device, if not the
    /// kernel's.
    pub(crate) fn create(
        block: Block,
        host: HostId,
        (ways, links): (u8, u8),
        options: DeviceOptions,
        loopback: Option<u32>,
        kernel: &HostKernel<'_>,
    ) -> Result<Self, Error> {
        let namespace = Namespace::create()?;
        let (ports, selection) = within(&namespace, || {
            let selection = kernel.apply(links)?;
            let congestion = kernel
                .options
                .congestion
                .as_deref()
                .filter(|_| selection == Some(Selection::Routes));
            let has_ipv6 = kernel.options.has_ipv6 && Self::can_have_ipv6(options.mtu);
            let mut ports = Vec::new();
            for way in 0..ways {
                let (name, source) = (device_name(way), block.on_way(host, way));
                let port = options.create(&name)?;
                let destination = (way > 0).then(|| block.way(way));
                set_up(&name, &port, options)?;
                for (source, destination) in versions(source, destination, has_ipv6) {
                    connect(&name, source, destination, congestion)?;
                    if way > 0 {
                        choose_by_source(&name, source, way, congestion)?;
                    }
                }
                ports.push(port);
            }
            let config = loopback.map(|mtu| DeviceConfig {
                mtu,
                queue: QUEUE,
                segments: 1,
            });
            let up = Netlink::open().and_then(|link| link.set_up(netlink::device("lo")?, config));
            up.map_err(|error| system_error("set up the loopback device", error))?;
            Ok((ports, selection))
        })?;
        Ok(Self {
            namespace,
            ports,
            selection,
        })
    }

    /// Adds a device at `address` to a namespace of another emulation, with a route to `block`. That host forwards
    /// packets between its devices.
    pub(crate) fn join(
        namespace: Namespace,
        address: Ipv4Addr,
        block: Block,
        options: DeviceOptions,
        has_ipv6: bool,
    ) -> Result<Self, Error> {
        let ports = within(&namespace, || {
            sysctl::set("net/ipv4/ip_forward", "1")?;
            let has_ipv6 = has_ipv6 && Self::can_have_ipv6(options.mtu);
            if has_ipv6 {
                sysctl::set("net/ipv6/conf/all/forwarding", "1")?;
            }
            let name = (1..=255)
                .map(device_name)
                .find(|name| netlink::device(name).is_err())
                .unwrap_or_else(|| DEVICE.into());
            let port = options.create(&name)?;
            set_up(&name, &port, options)?;
            for (source, destination) in versions(address, Some(block.whole()), has_ipv6) {
                connect(&name, source, destination, None)?;
            }
            Ok(vec![port])
        })?;
        Ok(Self {
            namespace,
            ports,
            selection: None,
        })
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
fn choose_by_source(name: &str, source: IpAddr, way: u8, congestion: Option<&str>) -> Result<(), Error> {
    let chosen = || -> io::Result<()> {
        let link = Netlink::open()?;
        let route = Route {
            device: netlink::device(name)?,
            destination: None,
            source,
            table: Some(way),
            congestion,
        };
        link.add_route(route)?;
        link.add_rule(source, way)
    };
    chosen().map_err(|error| system_error(format!("route by the source {source}"), error))
}

/// An address, and the destinations that its device leads to.
type Connected = (IpAddr, Option<(IpAddr, u8)>);

/// The same address and destinations in each version of IP.
fn versions(
    address: Ipv4Addr,
    destination: Option<(Ipv4Addr, u8)>,
    has_ipv6: bool,
) -> impl Iterator<Item = Connected> {
    let v4 = (
        address.into(),
        destination.map(|(first, length)| (first.into(), length)),
    );
    let embedded = |(first, length)| (to_ipv6(first).into(), PREFIX_BITS + length);
    let v6 = has_ipv6.then(|| (to_ipv6(address).into(), destination.map(embedded)));
    std::iter::once(v4).chain(v6)
}

fn set_up(name: &str, port: &Device, options: DeviceOptions) -> Result<(), Error> {
    let config = DeviceConfig {
        mtu: options.mtu,
        queue: QUEUE,
        // Without offload the kernel would split segments itself, after passing them at once.
        segments: if port.has_offload() { options.segments() } else { 1 },
    };
    let up = Netlink::open().and_then(|link| link.set_up(netlink::device(name)?, Some(config)));
    up.map_err(|error| system_error(format!("set up {name}"), error))
}

fn connect(
    name: &str,
    address: IpAddr,
    destination: Option<(IpAddr, u8)>,
    congestion: Option<&str>,
) -> Result<(), Error> {
    let connected = || -> io::Result<()> {
        let (link, device) = (Netlink::open()?, netlink::device(name)?);
        link.add_address(device, address)?;
        let route = Route {
            device,
            destination,
            source: address,
            table: None,
            congestion,
        };
        link.add_route(route)
    };
    connected().map_err(|error| system_error(format!("set up {name} at {address}"), error))
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
