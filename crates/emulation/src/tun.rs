//! Creates TUN devices (Linux' `Documentation/networking/tuntap.rst`).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl};

use super::device::{Device, Offload};
use super::offload::header;
use crate::error::{Error, system_error};

/// The device node that creates them.
pub const NODE: &str = "/dev/net/tun";
/// Bytes of a device name, including the terminating zero (`IFNAMSIZ`).
const NAME: usize = 16;

/// `_IOW('T', 202, int)`, `linux/if_tun.h`.
const TUNSETIFF: Opcode = 0x4004_54ca;
/// `_IOW('T', 208, unsigned int)` and `_IOW('T', 216, int)`.
const TUNSETOFFLOAD: Opcode = 0x4004_54d0;
const TUNSETVNETHDRSZ: Opcode = 0x4004_54d8;
/// `linux/sockios.h`.
const SIOCETHTOOL: Opcode = 0x8946;
/// IP packets without an Ethernet header and without packet information.
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
/// Each packet has a header of offloads.
const IFF_VNET_HDR: u16 = 0x4000;
/// Fails if the device exists.
const IFF_TUN_EXCL: u16 = 0x8000;

/// Packets without checksum; segments of TCP over both versions of IP, also with CWR; datagrams of UDP, which the kernel accepts only
/// for both versions of IP.
const CHECKSUM: usize = 0x01;
const SEGMENTS: usize = 0x02 | 0x04 | 0x08;
const DATAGRAMS: usize = 0x20 | 0x40;

/// Requested offloads, best first: Linux before 6.2 does not have those of datagrams.
const REQUESTS: [usize; 3] = [CHECKSUM | SEGMENTS | DATAGRAMS, CHECKSUM | SEGMENTS, CHECKSUM];

/// Offloads that would pass packets larger than the MTU or without checksum (`linux/ethtool.h`).
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

/// Creates the device `name` in the calling thread's namespace. With `offload` the host may pass several segments as one
/// packet, if the kernel supports it; otherwise all packets are complete. Closing the descriptor, which does not block,
/// removes the device.
///
/// # Errors
/// [`Error::Missing`] without `/dev/net/tun`, [`Error::Permission`] without `CAP_NET_ADMIN` or without access to the
/// node, and the system's.
pub fn create(name: &str, offload: bool) -> Result<Device, Error> {
    if offload && let Some(device) = with_offload(name)? {
        return Ok(device);
    }
    let descriptor = open()?;
    set_name(&descriptor, name, 0).map_err(|error| creation_error(name, error))?;
    turn_offloads_off(name).map_err(|error| system_error(format!("turn off offloads of {name}"), error))?;
    Ok(Device::new(descriptor, None))
}

/// Creates a device with as many offloads as the kernel supports; `None` if it has none.
fn with_offload(name: &str) -> Result<Option<Device>, Error> {
    let descriptor = open()?;
    match set_name(&descriptor, name, IFF_VNET_HDR) {
        Ok(()) => {}
        Err(Errno::INVAL) => return Ok(None),
        Err(error) => return Err(creation_error(name, error)),
    }
    let length = header::LENGTH as libc::c_int;
    // SAFETY: the kernel reads an int.
    unsafe { ioctl(&descriptor, Setter::<TUNSETVNETHDRSZ, _>::new(length)) }
        .map_err(|error| system_error(format!("set the length of packet headers of {name}"), error))?;
    let accepts = |flags: &usize| {
        // SAFETY: the request takes a number.
        let request = unsafe { IntegerSetter::<TUNSETOFFLOAD>::new_usize(*flags) };
        // SAFETY: as above.
        unsafe { ioctl(&descriptor, request) }.is_ok()
    };
    let accepted = REQUESTS.into_iter().find(accepts).unwrap_or(0);
    let offload = Offload {
        datagrams: accepted & DATAGRAMS != 0,
    };
    Ok(Some(Device::new(descriptor, Some(offload))))
}

fn open() -> Result<OwnedFd, Error> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::open(NODE, flags, Mode::empty()).map_err(|error| match error {
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
    })
}

/// Creates the device of a new descriptor.
fn set_name(descriptor: &OwnedFd, name: &str, flags: u16) -> Result<(), Errno> {
    let mut request = named(name, IFF_TUN | IFF_NO_PI | IFF_TUN_EXCL | flags);
    // SAFETY: the kernel reads and writes a `struct ifreq`.
    unsafe { ioctl(descriptor, Updater::<TUNSETIFF, _>::new(&mut request)) }
}

fn creation_error(name: &str, error: Errno) -> Error {
    system_error(format!("create the TUN device {name}"), error)
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
