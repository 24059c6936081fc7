//! What the kernel tells of a connection of MPTCP and its subflows (`MPTCP_FULL_INFO` of `linux/mptcp.h`, Linux 6.5 and
//! later).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use socket2::SockAddr;

use super::events::Peers;
use crate::tcp_info::{LENGTH, TcpInfo};

/// `SOL_MPTCP` and the options below it.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_FULL_INFO: libc::c_int = 4;

/// The first subflow and at most [`super::MOST_SUBFLOWS`] of the kernel's path manager; one in user space may open more.
const MOST: usize = 64;

/// `struct mptcp_info`, as far as Linux 6.5 has it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    small: [u8; 8],
    flags: u32,
    token: u32,
    write_sequence: u64,
    unacknowledged: u64,
    next_received: u64,
    more: [u64; 7],
}

/// `struct mptcp_full_info`.
#[repr(C)]
struct Full {
    tcp_kernel: u32,
    tcp_user: u32,
    subflow_kernel: u32,
    subflow_user: u32,
    subflows: u32,
    room: u32,
    subflow_array: u64,
    tcp_array: u64,
    connection: Raw,
}

/// `struct mptcp_subflow_info`: a number and the two ends, each as large as the largest address.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ends {
    id: u32,
    gap: u32,
    local: [u8; STORAGE],
    remote: [u8; STORAGE],
}

/// Bytes of `struct sockaddr_storage`.
const STORAGE: usize = size_of::<libc::sockaddr_storage>();

/// One subflow of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Subflow {
    /// Its number in the connection, from 1; it is never given twice.
    pub id: u32,
    /// Its ends.
    pub peers: Peers,
    /// Its TCP.
    pub tcp: TcpInfo,
}

/// A connection of MPTCP as it stands at one moment.
#[derive(Clone, Debug)]
pub struct Connection {
    /// What names it among the host's connections (RFC 8684, section 3.1).
    pub token: u32,
    /// Bytes that the peer has not acknowledged at the level of the connection, the DATA_FIN as one.
    pub unacknowledged: u64,
    /// Subflows that are open, the first one included.
    pub subflows: Vec<Subflow>,
}

impl Connection {
    /// Asks for the connection of a socket; `None` where it is no connection of MPTCP, or none any more: it has fallen back
    /// to plain TCP.
    ///
    /// # Errors
    /// The system's.
    pub fn of(socket: &impl AsFd) -> io::Result<Option<Self>> {
        let mut tcp = vec![TcpInfo::EMPTY; MOST];
        let none = Ends {
            id: 0,
            gap: 0,
            local: [0; STORAGE],
            remote: [0; STORAGE],
        };
        // The kernel writes entries of the size that it is told, in which the number is followed by the ends.
        let mut ends = vec![none; MOST];
        let mut full = Full {
            tcp_kernel: 0,
            tcp_user: LENGTH as u32,
            subflow_kernel: 0,
            subflow_user: size_of::<Ends>() as u32,
            subflows: 0,
            room: MOST as u32,
            subflow_array: ends.as_mut_ptr() as u64,
            tcp_array: tcp.as_mut_ptr() as u64,
            connection: Raw::default(),
        };
        // SAFETY: `full` says where the arrays are, how many entries they have and how large each is; the kernel writes no
        // more. They are borrowed by nobody else until it returns.
        let asked = unsafe { ask(socket, MPTCP_FULL_INFO, &mut full) };
        if let Err(error) = asked {
            return not_mptcp(error);
        }
        let count = (full.subflows as usize).min(MOST);
        let subflows = ends.iter().zip(tcp).take(count);
        Ok(Some(Self {
            token: full.connection.token,
            unacknowledged: full
                .connection
                .write_sequence
                .wrapping_sub(full.connection.unacknowledged),
            subflows: subflows
                .filter_map(|(ends, tcp)| {
                    let (local, remote) = (address(&ends.local)?, address(&ends.remote)?);
                    Some(Subflow {
                        id: ends.id,
                        peers: Peers { local, remote },
                        tcp,
                    })
                })
                .collect(),
        }))
    }

    /// Bytes that the peer has not acknowledged, as in [`Self::unacknowledged`](Connection#structfield.unacknowledged);
    /// `None` as with [`Self::of`].
    ///
    /// # Errors
    /// The system's.
    pub fn unacknowledged(socket: &impl AsFd) -> io::Result<Option<u64>> {
        let mut raw = Raw::default();
        // SAFETY: `Raw` is bytes and integers, which may have any value.
        match unsafe { ask(socket, MPTCP_INFO, &mut raw) } {
            Ok(()) => Ok(Some(raw.write_sequence.wrapping_sub(raw.unacknowledged))),
            Err(error) => not_mptcp(error),
        }
    }

    /// The token of a socket's connection alone; `None` as with [`Self::of`].
    ///
    /// # Errors
    /// The system's.
    pub fn token(socket: &impl AsFd) -> io::Result<Option<u32>> {
        let mut raw = Raw::default();
        // SAFETY: `Raw` is bytes and integers, which may have any value.
        match unsafe { ask(socket, MPTCP_INFO, &mut raw) } {
            Ok(()) => Ok(Some(raw.token)),
            Err(error) => not_mptcp(error),
        }
    }
}

/// What the kernel answers for a socket of plain TCP, or one that has become it, is no error.
fn not_mptcp<T>(error: io::Error) -> io::Result<Option<T>> {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT) => Ok(None),
        _ => Err(error),
    }
}

/// # Safety
/// Every pattern of bytes is a value of `T`, and what it says of further memory is true.
unsafe fn ask<T>(socket: &impl AsFd, option: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel writes at most `length` bytes into `value`, which the caller
    // vouches for.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            SOL_MPTCP,
            option,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn address(bytes: &[u8; STORAGE]) -> Option<SocketAddr> {
    // SAFETY: the storage has the size of all addresses, and its first bytes, the family, say how much of it counts.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), storage.cast::<u8>(), STORAGE);
            *length = STORAGE as libc::socklen_t;
            Ok(())
        })
    }
    .ok()?;
    address.as_socket()
}
