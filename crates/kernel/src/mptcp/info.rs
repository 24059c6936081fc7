//! State of an MPTCP connection and its subflows (`MPTCP_FULL_INFO` of `linux/mptcp.h`, Linux 6.5 and later).

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::SockAddr;

use super::events::SocketPair;
use crate::socket_options::read_option;
use crate::tcp_info::{LENGTH, TcpInfo};

/// `SOL_MPTCP` and its options.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_FULL_INFO: libc::c_int = 4;

/// Subflows that a read returns at most. The kernel's path manager opens at most [`super::MOST_SUBFLOWS`] besides the first;
/// one in user space may open more.
const MOST: usize = 64;

/// `struct mptcp_info` of Linux 6.5.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct MptcpInfo {
    small: [u8; 8],
    flags: u32,
    token: u32,
    write_sequence: u64,
    unacknowledged: u64,
    next_received: u64,
    more: [u64; 7],
}

impl MptcpInfo {
    const fn outstanding(&self) -> u64 {
        self.write_sequence.wrapping_sub(self.unacknowledged)
    }
}

/// `struct mptcp_full_info`.
#[repr(C)]
struct FullInfo {
    tcp_kernel: u32,
    tcp_user: u32,
    subflow_kernel: u32,
    subflow_user: u32,
    subflows: u32,
    room: u32,
    subflow_array: u64,
    tcp_array: u64,
    connection: MptcpInfo,
}

/// `struct mptcp_subflow_info`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawSubflow {
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
    /// Its number in the connection, from 1, never reused.
    pub id: u32,
    /// Its ends.
    pub pair: SocketPair,
    /// Its TCP state.
    pub tcp: TcpInfo,
}

/// A snapshot of an MPTCP connection.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// Identifies it among the host's connections (RFC 8684, section 3.1).
    pub token: u32,
    /// Bytes without a DATA_ACK; the DATA_FIN counts as one.
    pub unacknowledged: u64,
    /// Open subflows, including the first one.
    pub subflows: Vec<Subflow>,
}

impl ConnectionInfo {
    /// Reads the connection of a socket; `None` for plain TCP, also after a fallback from MPTCP.
    ///
    /// # Errors
    /// The system's.
    pub fn of_socket(socket: &impl AsFd) -> io::Result<Option<Self>> {
        let mut tcp = vec![TcpInfo::EMPTY; MOST];
        let none = RawSubflow {
            id: 0,
            gap: 0,
            local: [0; STORAGE],
            remote: [0; STORAGE],
        };
        // The kernel writes entries of `subflow_user` bytes: the number, then the ends.
        let mut raw = vec![none; MOST];
        let mut full = FullInfo {
            tcp_kernel: 0,
            tcp_user: LENGTH as u32,
            subflow_kernel: 0,
            subflow_user: size_of::<RawSubflow>() as u32,
            subflows: 0,
            room: MOST as u32,
            subflow_array: raw.as_mut_ptr() as u64,
            tcp_array: tcp.as_mut_ptr() as u64,
            connection: MptcpInfo::default(),
        };
        // SAFETY: `full` has the address, length and entry size of both arrays, which nothing else borrows during the call.
        if unsafe { get_option(socket, MPTCP_FULL_INFO, &mut full) }?.is_none() {
            return Ok(None);
        }
        let count = (full.subflows as usize).min(MOST);
        let subflows = raw.iter().zip(tcp).take(count).filter_map(|(raw, tcp)| {
            let (local, remote) = (address(&raw.local)?, address(&raw.remote)?);
            Some(Subflow {
                id: raw.id,
                pair: SocketPair { local, remote },
                tcp,
            })
        });
        Ok(Some(Self {
            token: full.connection.token,
            unacknowledged: full.connection.outstanding(),
            subflows: subflows.collect(),
        }))
    }

    /// Reads only [`Self::unacknowledged`](ConnectionInfo#structfield.unacknowledged).
    ///
    /// # Errors
    /// The system's.
    pub fn unacknowledged(socket: &impl AsFd) -> io::Result<Option<u64>> {
        Ok(mptcp_info(socket)?.map(|info| info.outstanding()))
    }

    /// Reads only the token.
    ///
    /// # Errors
    /// The system's.
    pub fn token(socket: &impl AsFd) -> io::Result<Option<u32>> {
        Ok(mptcp_info(socket)?.map(|info| info.token))
    }
}

fn mptcp_info(socket: &impl AsFd) -> io::Result<Option<MptcpInfo>> {
    let mut info = MptcpInfo::default();
    // SAFETY: the structure consists of integers.
    let found = unsafe { get_option(socket, MPTCP_INFO, &mut info) }?;
    Ok(found.map(|()| info))
}

/// Reads an option of level `SOL_MPTCP`; `None` for plain TCP.
///
/// # Safety
/// As [`read_option`].
unsafe fn get_option<T>(socket: &impl AsFd, option: libc::c_int, value: &mut T) -> io::Result<Option<()>> {
    // SAFETY: the caller's.
    match unsafe { read_option(socket, SOL_MPTCP, option, value) } {
        Ok(()) => Ok(Some(())),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn address(bytes: &[u8; STORAGE]) -> Option<SocketAddr> {
    // SAFETY: the storage has room for every address family; its first bytes hold the family.
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
