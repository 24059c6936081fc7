//! TCP and T/TCP in user space at both ends, their packets carried in UDP datagrams: `longfat transact` with `longfat echo`.
//!
//! Every protocol of one comparison so runs on one stack, and none takes a privilege. The addresses inside are the same for
//! everybody, since each source of datagrams has a stack of its own at the server.

pub mod carriage;
#[cfg(target_os = "linux")]
pub(crate) mod client;
pub mod peers;

use std::net::{IpAddr, Ipv4Addr};

use foundation::Size;
use transport::tcp::{Profile, TcpConfig};

/// The addresses inside, and the server's port.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 7;

/// Bytes of the largest request.
pub const MOST: usize = 65_536;

/// The settings of both ends: RFC TCP whose first segment has room for 1400 bytes beside its options (the largest request of
/// Stevens' figures). Full datagrams are then a few bytes larger than an Ethernet carries, and go in two fragments there.
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
