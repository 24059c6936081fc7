//! TCP Fast Open (RFC 7413): a client that shows a cookie which the server gave it before sends data in its SYN, and the
//! server answers it before the handshake ends.

mod cache;
mod cookie;
mod pending;

pub use cache::CookieCache;
pub use cookie::{Cookie, CookieKeys, CookieStatus, FastOpen};
pub use pending::PendingOpens;
