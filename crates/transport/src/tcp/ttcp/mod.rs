//! TCP extensions for transactions (T/TCP, RFC 1644): hosts count their connections, and a server that remembers a
//! client's last count takes a higher one for new without a handshake.
//!
//! RFC 6247 declares it historic: whoever can guess a count can forge a whole transaction from any address. It is here for
//! comparisons.

mod cache;
mod count;

pub use cache::{CountCache, TaoTest};
pub use count::{Count, Counter};
