//! TUN devices: what a host's kernel sends out of one is read from its descriptor, and what is written there has arrived
//! at the host. Linux' `Documentation/networking/tuntap.rst`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::error::{Error, system_error};

/// The node that devices are made with.
pub const NODE: &str = "/dev/net/tun";
/// Bytes of a device's name, with the zero that ends it (`IFNAMSIZ`).
const NAME: usize = 16;

/// `_IOW('T', 202, int)`, `linux/if_tun.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
/// `linux/sockios.h`.
const SIOCETHTOOL: Opcode = 0x8946;
/// IP packets, without an Ethernet header and without information before them.
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
/// Only a device that does not exist yet.
const IFF_TUN_EXCL: u16 = 0x8000;

/// Features that would let the kernel hand over packets larger than the MTU, or without checksum (`linux/ethtool.h`).
const OFFLOADS: &[(&str, u32)] = &[
    ("transmit checksums", 0x17),
    ("scatter-gather", 0x19),
    ("TCP segmentation", 0x1f),
    ("generic segmentation", 0x24),
    ("generic receive", 0x2c),
];

/// `struct ifreq`: a device's name, and what is asked or told of it.
#[repr(C)]
struct Request<T> {
    name: [u8; NAME],
    value: T,
    rest: [u8; 24],
}

/// `struct ethtool_value`.
#[repr(C)]
struct Feature {
    command: u32,
    value: u32,
}

/// Makes the device `name` in the namespace of the calling thread, whose offloads are off. It lives as long as
/// the descriptor, which does not block.
///
/// # Errors
/// [`Error::Missing`] without `/dev/net/tun`, [`Error::Permission`] without `CAP_NET_ADMIN` or where the node is
/// closed to this user, and the system's.
pub fn create(name: &str) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = rustix::fs::open(NODE, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => Error::Missing {
            what: NODE.into(),
            remedy: "load the kernel's module tun (modprobe tun), or let the container have the device \
                     (--device /dev/net/tun)"
                .into(),
        },
        // The node's own permissions, and not a capability, which is EPERM.
        Errno::ACCESS => Error::Permission {
            what: format!("open {NODE}"),
            remedy: format!("let everybody, as is usual: chmod 666 {NODE}"),
        },
        error => system_error(format!("open {NODE}"), error),
    })?;
    let mut request = named(name, IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL);
    // SAFETY: the kernel reads and writes a `struct ifreq`, which this is.
    let made = unsafe { ioctl(&device, Updater::<TUNSETIFF, _>::new(&mut request)) };
    made.map_err(|error| system_error(format!("make the TUN device {name}"), error))?;
    turn_offloads_off(name).map_err(|error| system_error(format!("turn off offloads of {name}"), error))?;
    Ok(device)
}

fn named<T>(name: &str, value: T) -> Request<T> {
    let mut request = Request {
        name: [0; NAME],
        value,
        rest: [0; 24],
    };
    let length = name.len().min(NAME - 1);
    request.name[..length].copy_from_slice(&name.as_bytes()[..length]);
    request
}

fn turn_offloads_off(name: &str) -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    for &(_, command) in OFFLOADS {
        let mut feature = Feature { command, value: 0 };
        let mut request = named(name, std::ptr::from_mut(&mut feature));
        // SAFETY: the kernel reads a `struct ifreq` whose pointer leads to a `struct ethtool_value`, which lives.
        let set = unsafe { ioctl(socket.as_fd(), Updater::<SIOCETHTOOL, _>::new(&mut request)) };
        match set {
            // A device that never had the feature does not let it be set.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
