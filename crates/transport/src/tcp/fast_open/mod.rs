//! TCP Fast Open (RFC 7413): a client with a cookie of the server sends data in its SYN, and the server responds before the
//! end of the handshake.

mod cache;
mod cookie;
mod pending;

pub use cache::CookieCache;
pub use cookie::{Cookie, CookieKeys, CookieStatus, FastOpen};
pub use pending::PendingOpens;
