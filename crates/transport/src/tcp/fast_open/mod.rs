//! TCP Fast Open (RFC 7413): a client with a cookie of the server sends data in its SYN, and the server responds before the
//! end of the handshake.

mod cache;
mod cookie;
mod pending;
mod siphash;

pub use cache::{CookieCache, SynAckFinding, SynOption};
pub use cookie::{Cookie, CookieKey, CookieKeys, CookieStatus, FastOpen};
pub use pending::PendingOpens;
