//! User-space TCP and T/TCP at both ends, with their packets in UDP datagrams: `longfat transact` with `longfat echo`.
//!
//! All protocols of a comparison then run on the same stack, and none needs a privilege. The inner addresses are the
//! same for all clients, because the server has one stack for each source of datagrams.

pub mod carriage;
pub(crate) mod client;
pub mod peers;

use std::net::{IpAddr, Ipv4Addr};

use foundation::Size;
use transport::tcp::{Profile, TcpConfig};

/// The inner addresses, and the server's port.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 7;

/// Largest request in bytes.
pub const MOST: usize = 65_536;

/// Returns the settings of both ends: RFC TCP whose first segment has room for 1400 bytes next to its options (the
/// largest request in Stevens' figures). Full datagrams then exceed an Ethernet frame by a few bytes and travel in two
/// fragments.
fn config(ttcp: bool) -> TcpConfig {
    TcpConfig {
        ttcp,
        mss: Some(Size::from_bytes(1440)),
        timestamps: Some(false),
        send_buffer: Some(Size::from_bytes(2 * MOST as u64)),
        receive_buffer: Some(Size::from_bytes(MOST as u64)),
        ..TcpConfig::new(Profile::Rfc)
    }
}
