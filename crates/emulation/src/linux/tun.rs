//! TUN devices: reading the descriptor returns packets that the host's kernel sent; writing delivers packets to it
//! (Linux' `Documentation/networking/tuntap.rst`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl};

use crate::error::{Error, system_error};

/// The device node that creates them.
pub const NODE: &str = "/dev/net/tun";
/// Bytes of a device name, including the terminating zero (`IFNAMSIZ`).
const NAME: usize = 16;

/// `_IOW('T', 202, int)`, `linux/if_tun.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
/// `linux/sockios.h`.
const SIOCETHTOOL: Opcode = 0x8946;
/// IP packets without an Ethernet header and without packet information.
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
/// Fails if the device exists.
const IFF_TUN_EXCL: u16 = 0x8000;

/// Offloads that would hand over packets larger than the MTU or without checksum (`linux/ethtool.h`).
const OFFLOADS: &[(&str, u32)] = &[
    ("transmit checksums", 0x17),
    ("scatter-gather", 0x19),
    ("TCP segmentation", 0x1f),
    ("generic segmentation", 0x24),
    ("generic receive", 0x2c),
];

/// `struct ifreq`: a device name and a value.
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

/// Creates the device `name` in the calling thread's namespace, without offloads. Closing the descriptor, which does
/// not block, removes it.
///
/// # Errors
/// [`Error::Missing`] without `/dev/net/tun`, [`Error::Permission`] without `CAP_NET_ADMIN` or without access to the
/// node, and the system's.
pub fn create(name: &str) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let device = rustix::fs::open(NODE, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => Error::Missing {
            what: NODE.into(),
            remedy: "load the kernel's module tun (modprobe tun), or let the container have the device \
                     (--device /dev/net/tun)"
                .into(),
        },
        // File permissions; a missing capability is EPERM.
        Errno::ACCESS => Error::Permission {
            what: format!("open {NODE}"),
            remedy: format!("allow all users, as usual: chmod 666 {NODE}"),
        },
        error => system_error(format!("open {NODE}"), error),
    })?;
    let mut request = named(name, IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL);
    // SAFETY: the kernel reads and writes a `struct ifreq`.
    let made = unsafe { ioctl(&device, Updater::<TUNSETIFF, _>::new(&mut request)) };
    made.map_err(|error| system_error(format!("create the TUN device {name}"), error))?;
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
        // SAFETY: the kernel reads a `struct ifreq` whose pointer leads to a live `struct ethtool_value`.
        let set = unsafe { ioctl(socket.as_fd(), Updater::<SIOCETHTOOL, _>::new(&mut request)) };
        match set {
            // Devices without the feature refuse to set it.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
