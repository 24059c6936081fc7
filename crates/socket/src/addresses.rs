//! Addresses as text.

use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::error::Error;
use crate::system_error::plain;

/// Parses and resolves "192.0.2.1:9000", "[2001:db8::1]:9000" or "host.example:9000": at least one address.
///
/// # Errors
/// [`Error::Abandoned`] with a line about what is missing.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, Error> {
    let wrong = |what: String| Error::Abandoned(format!("{text:?} is not an address: {what}"));
    if let Ok(address) = text.parse() {
        return Ok(vec![address]);
    }
    if text
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.parse::<u16>().is_err())
    {
        return Err(wrong("expected HOST:PORT, such as 127.0.0.1:9000".to_owned()));
    }
    let found: Vec<SocketAddr> = text
        .to_socket_addrs()
        .map_err(|error| wrong(plain(&error)))?
        .collect();
    match found.is_empty() {
        true => Err(wrong("the host has no address".to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_resolved_or_explained() {
        assert_eq!(
            resolve("127.0.0.1:9000").unwrap(),
            [([127, 0, 0, 1], 9000).into()]
        );
        let all = resolve("localhost:9000").unwrap();
        assert!(!all.is_empty() && all.iter().all(|address| address.port() == 9000));
        for text in ["", "127.0.0.1", "localhost", "localhost:x", "[::1]"] {
            let message = resolve(text).unwrap_err().to_string();
            assert!(message.contains("HOST:PORT"), "{message}");
        }
    }
}
