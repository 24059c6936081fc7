//! Proxy protocols by which a client names its target: SOCKS5 (RFC 1928) and HTTP CONNECT (RFC 9110, section 9.3.6).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::proxy::Greeting;
use crate::target::Target;

/// Longest head of an HTTP request.
const LONGEST_HEAD: usize = 16 * 1024;
/// Header lines of an HTTP request.
const HEADERS: usize = 64;

// SOCKS5: version, methods, command, address types and replies (RFC 1928, sections 3 to 6).
const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const SUCCEEDED: u8 = 0;
const REFUSED: u8 = 5;
const UNKNOWN_COMMAND: u8 = 7;
const UNKNOWN_ADDRESS: u8 = 8;

/// How a listener finds the target of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Always this one.
    Fixed(Target),
    /// The client names it by SOCKS5, without authentication.
    Socks5,
    /// The client names it by HTTP CONNECT.
    HttpConnect,
}

/// The outcome of a client's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are necessary; the client first receives these.
    More(Vec<u8>),
    /// The client named its target. The last bytes are the first for the target.
    Connect(Target, Greeting, Vec<u8>),
    /// The client receives this answer, and its connection ends.
    Refuse(Vec<u8>),
}

/// A client that has not named its target yet.
#[derive(Debug)]
pub(crate) struct Negotiation {
    is_socks: bool,
    /// Whether a method of SOCKS5 was selected.
    has_method: bool,
    received: Vec<u8>,
}

impl Negotiation {
    pub(crate) const fn new(is_socks: bool) -> Self {
        Self {
            is_socks,
            has_method: false,
            received: Vec::new(),
        }
    }

    /// Handles bytes of the client.
    pub(crate) fn handle(&mut self, bytes: &[u8]) -> Step {
        self.received.extend_from_slice(bytes);
        match self.is_socks {
            true => self.socks(),
            false => self.http(),
        }
    }

    fn socks(&mut self) -> Step {
        let mut answer = Vec::new();
        if !self.has_method {
            match *self.received.as_slice() {
                [] | [VERSION] => return Step::More(answer),
                [VERSION, count, ref methods @ ..] => {
                    let Some(methods) = methods.get(..usize::from(count)) else {
                        return Step::More(answer);
                    };
                    if !methods.contains(&NO_AUTHENTICATION) {
                        return Step::Refuse(vec![VERSION, NO_METHOD]);
                    }
                    self.received.drain(..2 + usize::from(count));
                    self.has_method = true;
                    answer = vec![VERSION, NO_AUTHENTICATION];
                }
                _ => return Step::Refuse(vec![VERSION, NO_METHOD]),
            }
        }
        let refuse = |answer: Vec<u8>, code| Step::Refuse([answer, reply(code)].concat());
        let [version, command, _, kind, ref rest @ ..] = *self.received.as_slice() else {
            return Step::More(answer);
        };
        if (version, command) != (VERSION, CONNECT) {
            return refuse(answer, UNKNOWN_COMMAND);
        }
        let (start, length) = match (kind, rest.first()) {
            (IPV4, _) => (0, 4),
            (IPV6, _) => (0, 16),
            (NAME, Some(&length)) => (1, usize::from(length)),
            (NAME, None) => return Step::More(answer),
            _ => return refuse(answer, UNKNOWN_ADDRESS),
        };
        let end = start + length;
        let Some(&[high, low]) = rest.get(end..end + 2) else {
            return Step::More(answer);
        };
        let port = u16::from_be_bytes([high, low]);
        let address = &rest[start..end];
        let target = if let Ok(octets) = <[u8; 4]>::try_from(address).map(Ipv4Addr::from)
            && kind == IPV4
        {
            Target::Address((octets, port).into())
        } else if let Ok(octets) = <[u8; 16]>::try_from(address).map(Ipv6Addr::from)
            && kind == IPV6
        {
            Target::Address((octets, port).into())
        } else {
            let name = std::str::from_utf8(address).ok();
            match name.and_then(|name| Target::parse(&format!("{name}:{port}"))) {
                Some(target) => target,
                None => return refuse(answer, UNKNOWN_ADDRESS),
            }
        };
        let early = rest[end + 2..].to_vec();
        let greeting = Greeting {
            success: [answer, reply(SUCCEEDED)].concat(),
            failure: reply(REFUSED),
        };
        Step::Connect(target, greeting, early)
    }

    fn http(&self) -> Step {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(&self.received) {
            Ok(httparse::Status::Complete(length)) => length,
            Ok(httparse::Status::Partial) if self.received.len() < LONGEST_HEAD => {
                return Step::More(Vec::new());
            }
            Ok(httparse::Status::Partial) => {
                return Step::Refuse(response("431 Request Header Fields Too Large", ""));
            }
            Err(_) => return Step::Refuse(response("400 Bad Request", "")),
        };
        if request.method != Some("CONNECT") {
            let hint = "this proxy opens tunnels: use CONNECT (curl --proxytunnel)";
            return Step::Refuse(response("405 Method Not Allowed", hint));
        }
        let Some(target) = request.path.and_then(Target::parse) else {
            return Step::Refuse(response("400 Bad Request", "write CONNECT HOST:PORT"));
        };
        let greeting = Greeting {
            success: b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
            failure: response("502 Bad Gateway", &format!("{target} cannot be reached")),
        };
        Step::Connect(target, greeting, self.received[length..].to_vec())
    }
}

/// Returns a reply of SOCKS5 with an unspecified address.
fn reply(code: u8) -> Vec<u8> {
    vec![VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

fn response(status: &str, text: &str) -> Vec<u8> {
    let text = match text {
        "" => String::new(),
        text => format!("longfat: {text}\n"),
    };
    let length = text.len();
    format!("HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}")
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes bytes in pieces of `size`; returns the answers so far and the last step.
    fn run(is_socks: bool, bytes: &[u8], size: usize) -> (Vec<u8>, Step) {
        let mut negotiation = Negotiation::new(is_socks);
        let mut answers = Vec::new();
        for piece in bytes.chunks(size) {
            match negotiation.handle(piece) {
                Step::More(answer) => answers.extend(answer),
                step => return (answers, step),
            }
        }
        (answers, Step::More(Vec::new()))
    }

    fn target(step: Step) -> (String, Vec<u8>, Vec<u8>) {
        match step {
            Step::Connect(target, greeting, early) => (target.to_string(), greeting.success, early),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_socks5_requests_in_any_pieces() {
        let name = [
            b"\x05\x02\x01\x00\x05\x01\x00\x03\x0bexample.com".as_slice(),
            &[1, 187],
        ]
        .concat();
        let v4 = [5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80];
        for size in 1..=name.len() {
            for (bytes, expected) in [(&name[..], "example.com:443"), (&v4[..], "127.0.0.1:80")] {
                let (answers, step) = run(true, bytes, size);
                let (found, success, early) = target(step);
                assert_eq!(found, expected);
                assert_eq!([answers, success].concat(), [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
                assert_eq!(early, b"");
            }
        }
        let (_, step) = run(true, &[&v4[..], b"early"].concat(), 100);
        assert_eq!(target(step).2, b"early");
        let mut v6 = vec![5, 1, 0, 5, 1, 0, 4];
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        v6.extend([0, 80]);
        assert_eq!(target(run(true, &v6, 3).1).0, "[::1]:80");
    }

    #[test]
    fn refuses_other_versions_methods_and_commands() {
        assert_eq!(run(true, &[4, 1], 9).1, Step::Refuse(vec![5, 0xff]));
        assert_eq!(run(true, &[5, 1, 2], 9).1, Step::Refuse(vec![5, 0xff]));
        let bind = [5, 1, 0, 5, 2, 0, 1, 127, 0, 0, 1, 0, 80];
        let Step::Refuse(answer) = run(true, &bind, 3).1 else {
            panic!()
        };
        assert_eq!(answer, reply(UNKNOWN_COMMAND));
    }

    #[test]
    fn reads_http_connect() {
        let head = b"CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\nhello";
        for size in 1..head.len() {
            let (_, step) = run(false, head, size);
            let (found, success, early) = target(step);
            assert_eq!(found, "db.example:5432");
            assert!(success.starts_with(b"HTTP/1.1 200 "));
            assert!(b"hello".starts_with(&early[..]));
        }
        let refused = |bytes: &[u8]| match run(false, bytes, 4096).1 {
            Step::Refuse(answer) => String::from_utf8(answer).unwrap(),
            other => panic!("{other:?}"),
        };
        assert!(refused(b"GET http://x/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(refused(b"CONNECT x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
        assert!(refused(b"\x16\x03\x01 \x00\x00\r\n").starts_with("HTTP/1.1 400 "));
        let long = [b"CONNECT x:1 HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 20_000]].concat();
        assert!(refused(&long).starts_with("HTTP/1.1 431 "));
    }
}
