//! TCP extensions for transactions (T/TCP, RFC 1644): hosts number their connections, and a server with a client's last
//! count in its cache accepts a SYN with a higher count as new without a handshake.
//!
//! RFC 6247 declares T/TCP historic: an attacker who guesses a count can forge a transaction from any address. It is
//! included for comparisons.

mod cache;
mod count;

pub use cache::{CountCache, TaoTest};
pub use count::{Count, Counter};
