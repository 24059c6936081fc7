//! Targets of connections.

use std::fmt;
use std::net::SocketAddr;

/// Where a connection leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An address.
    Address(SocketAddr),
    /// A host name and a port. It is resolved for each connection.
    Name(String, u16),
}

impl Target {
    /// Returns the port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        match self {
            Self::Address(address) => address.port(),
            Self::Name(_, port) => *port,
        }
    }

    /// Reads `HOST:PORT`; `None` for other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Address(address));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_name = !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']);
        let port = port.parse().ok().filter(|_| is_name)?;
        Some(Self::Name(host.to_owned(), port))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_addresses_and_names() {
        assert_eq!(
            Target::parse("127.0.0.1:80"),
            Some(Target::Address(([127, 0, 0, 1], 80).into()))
        );
        assert_eq!(
            Target::parse("[::1]:80").map(|target| target.to_string()),
            Some("[::1]:80".into())
        );
        let name = Target::parse("db.example:5432");
        assert_eq!(name, Some(Target::Name("db.example".into(), 5432)));
        for text in ["", "80", ":80", "host", "host:", "host:70000", "::1:80", "a b:1"] {
            assert_eq!(Target::parse(text), None, "{text}");
        }
    }
}
