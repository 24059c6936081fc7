//! Packets: `+.1 < S 0:0(0) win 32792 <mss 1000,sackOK>`.

use transport::tcp::fast_open::{Cookie, FastOpen};
use transport::tcp::{ByteCounters, Ecn, Flags};

use super::ParseError;
use super::cursor::Cursor;
use super::lexer::Token;
use super::multipath::{self, MultipathSpec, Route};

/// The direction of a packet, seen from the machine under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `<`: the script injects it.
    Inbound,
    /// `>`: expected from the machine.
    Outbound,
}

/// The ECN bits of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnMark {
    /// `[noecn]`, `[ect0]`, `[ect1]`, `[ce]`.
    Exactly(Ecn),
    /// `[ect01]`: either ECT codepoint.
    AnyEct,
}

/// The names of ECN bits.
const MARKS: [(&str, EcnMark); 5] = [
    ("noecn", EcnMark::Exactly(Ecn::NotEct)),
    ("ect0", EcnMark::Exactly(Ecn::Ect0)),
    ("ect1", EcnMark::Exactly(Ecn::Ect1)),
    ("ect01", EcnMark::AnyEct),
    ("ce", EcnMark::Exactly(Ecn::Ce)),
];

impl EcnMark {
    /// Returns the mark's name in scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = MARKS.iter().find(|(_, mark)| *mark == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A packet of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketSpec {
    /// Its direction.
    pub direction: Direction,
    /// The ECN bits of its IP header, if given.
    pub ecn: Option<EcnMark>,
    /// Its addresses, as far as they are given.
    pub route: Route,
    /// Its payload.
    pub payload: Payload,
}

/// The payload of a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    /// A TCP segment.
    Tcp(TcpSpec),
    /// An ICMP message.
    Icmp(Icmp),
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSpec {
    /// Flags.
    pub flags: Flags,
    /// First sequence number in the script's numbering.
    pub sequence: u32,
    /// Payload bytes.
    pub length: u32,
    /// Acknowledgement number in the script's numbering.
    pub acknowledgement: Option<u32>,
    /// The window field.
    pub window: Option<u16>,
    /// Options; `None` for `<...>`, any options.
    pub options: Option<Vec<OptionSpec>>,
}

/// A TCP option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionSpec {
    /// Padding.
    Nop,
    /// End of list.
    Eol,
    /// Maximum segment size (RFC 9293, section 3.7.1).
    Mss(u16),
    /// Window scale (RFC 7323, section 2.2).
    WindowScale(u8),
    /// SACK permitted (RFC 2018, section 2).
    SackPermitted,
    /// Selective acknowledgement (RFC 2018, section 3).
    Sack(Vec<(u32, u32)>),
    /// Timestamps (RFC 7323, section 3.2): value and echo.
    Timestamps(u32, u32),
    /// Fast Open cookie or cookie request (RFC 7413, section 2), perhaps of the experimental kind (appendix A).
    FastOpen {
        /// The option.
        option: FastOpen,
        /// Whether it has the experimental kind.
        experimental: bool,
    },
    /// Fast Open cookie of an invalid length, which receivers ignore.
    InvalidCookie,
    /// Counters of bytes by code point (RFC 9768, section 3.2.3).
    Counters(ByteCounters),
    /// Multipath TCP (RFC 8684).
    Multipath(MultipathSpec),
}

/// An ICMP message about a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// `unreachable`, `packet_too_big`, ...
    pub kind: String,
    /// `frag_needed`, `host_unreachable`, ...
    pub code: Option<String>,
    /// The MTU of the next hop.
    pub mtu: Option<u32>,
    /// The first sequence number of the quoted segment.
    pub quoted: Option<u32>,
}

/// Letters of the flags in their printing order.
const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('A', Flags::AE),
    ('.', Flags::ACK),
];

/// Returns flags as scripts write them.
#[must_use]
pub fn letters(flags: Flags) -> String {
    let set = LETTERS.iter().filter(|(_, flag)| flags.contains(*flag));
    let text: String = set.map(|(letter, _)| letter).collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

impl PacketSpec {
    /// Whether the packet is expected from the machine.
    #[must_use]
    pub fn outbound(&self) -> bool {
        self.direction == Direction::Outbound
    }
}

/// Parses a packet.
pub fn packet(cursor: &mut Cursor) -> Result<PacketSpec, ParseError> {
    let outbound = cursor.next() == Some(Token::Mark('>'));
    let direction = if outbound {
        Direction::Outbound
    } else {
        Direction::Inbound
    };
    encapsulation(cursor)?;
    let ecn = ip_header(cursor)?;
    if ecn == Some(EcnMark::AnyEct) && !outbound {
        return Err(cursor.syntax("[ect01] is for outbound packets only".to_owned()));
    }
    encapsulation(cursor)?;
    let route = multipath::route(cursor)?;
    if matches!(cursor.peek(), Some(Token::Identifier(name)) if name == "udp") {
        return Err(cursor.unsupported("UDP packets"));
    }
    let payload = if cursor.eat_identifier("icmp") {
        Payload::Icmp(icmp(cursor)?)
    } else {
        Payload::Tcp(tcp(cursor, outbound)?)
    };
    Ok(PacketSpec {
        direction,
        ecn,
        route,
        payload,
    })
}

/// Rejects headers around the packet, which are not supported.
fn encapsulation(cursor: &Cursor) -> Result<(), ParseError> {
    const OUTER: [&str; 6] = ["ipv4", "ipv6", "gre", "GREv0", "mpls", "encap"];
    match cursor.peek() {
        Some(Token::Identifier(name)) if OUTER.contains(&name.as_str()) => {
            Err(cursor.unsupported(format!("encapsulated packets ({name})")))
        }
        _ => Ok(()),
    }
}

/// Parses `[ect0]`, `(tos 0x2)`, or nothing.
fn ip_header(cursor: &mut Cursor) -> Result<Option<EcnMark>, ParseError> {
    let close = match cursor.peek() {
        Some(Token::Mark('[')) => ']',
        Some(Token::Mark('(')) => ')',
        _ => return Ok(None),
    };
    cursor.next();
    let name = cursor.identifier("a name about the IP header (noecn, ect0, ect1, ect01, ce, tos)")?;
    let ecn = match name.as_str() {
        "tos" => EcnMark::Exactly(match cursor.integer("the type of service", 255)? {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            3 => Ecn::Ce,
            tos => return Err(cursor.unsupported(format!("the type of service {tos:#x}"))),
        }),
        "flowlabel" => return Err(cursor.unsupported("IPv6 flow labels")),
        "ttl" => return Err(cursor.unsupported("the time to live of packets")),
        other => match MARKS.iter().find(|(name, _)| *name == other) {
            Some((_, mark)) => *mark,
            None => return Err(cursor.syntax(format!("`{other}` is not an IP header field"))),
        },
    };
    if cursor.peek() == Some(&Token::Mark(',')) {
        return Err(cursor.unsupported("IPv6 flow labels"));
    }
    cursor.expect(close)?;
    Ok(Some(ecn))
}

fn icmp(cursor: &mut Cursor) -> Result<Icmp, ParseError> {
    let kind = cursor.identifier("the type of an ICMP message")?;
    let code = match cursor.peek() {
        Some(Token::Identifier(name)) if name != "mtu" && name != "id" => cursor.identifier("the code").ok(),
        _ => None,
    };
    let mtu = cursor.named("mtu", "an MTU", u64::from(u16::MAX))?;
    let mtu = mtu.map(|mtu| mtu as u32);
    if cursor.eat_identifier("id") {
        return Err(cursor.unsupported("ICMP echo"));
    }
    let mut quoted = None;
    if cursor.eat('[') {
        if matches!(cursor.peek(), Some(Token::Identifier(_))) {
            return Err(cursor.unsupported("ICMP messages about packets other than TCP"));
        }
        quoted = Some(range(cursor)?.0);
        cursor.expect(']')?;
    }
    Ok(Icmp {
        kind,
        code,
        mtu,
        quoted,
    })
}

fn tcp(cursor: &mut Cursor, outbound: bool) -> Result<TcpSpec, ParseError> {
    if matches!(cursor.peek(), Some(Token::Integer(_))) && cursor.peek_second() == Some(&Token::Mark('>')) {
        cursor.integer("a port", 65_535)?;
        cursor.expect('>')?;
        cursor.integer("a port", 65_535)?;
    }
    let flags = flags(cursor)?;
    let (sequence, length) = range(cursor)?;
    let acknowledgement = cursor.named("ack", "an acknowledgement number", U32)?;
    let window = cursor.named("win", "a window", 65_535)?;
    if cursor.eat_identifier("urg") {
        return Err(cursor.unsupported("urgent data"));
    }
    if window.is_none() && !outbound {
        return Err(cursor.expected("`win` and a window: inbound packets must have one"));
    }
    let options = options(cursor)?;
    if options.is_none() && !outbound {
        return Err(cursor.syntax("`<...>` is for outbound packets only".to_owned()));
    }
    Ok(TcpSpec {
        flags,
        sequence,
        length,
        acknowledgement: acknowledgement.map(|number| number as u32),
        window: window.map(|window| window as u16),
        options,
    })
}

const U32: u64 = u32::MAX as u64;
const U24: u32 = (1 << 24) - 1;

/// Parses `S.`, `FP.`, `.`, or `-` for no flags. A digit is the value of the ACE field (RFC 9768): `P5.`, `P.5`, `.5`.
fn flags(cursor: &mut Cursor) -> Result<Flags, ParseError> {
    let mut text = String::new();
    match cursor.peek().cloned() {
        Some(Token::Mark('-')) => {
            cursor.next();
            return Ok(Flags::NONE);
        }
        Some(Token::Float(ace)) => {
            text.push_str(&ace);
            cursor.next();
        }
        Some(Token::Identifier(name)) => {
            text.push_str(&name);
            cursor.next();
            if let Some(Token::Float(ace)) = cursor.peek().cloned().filter(|_| cursor.joined()) {
                text.push_str(&ace);
                cursor.next();
            }
        }
        Some(Token::Mark('.')) => {}
        _ => return Err(cursor.expected("TCP flags")),
    }
    if cursor.eat('.') {
        text.push('.');
    }
    let mut flags = Flags::NONE;
    for letter in text.chars() {
        let known = LETTERS.iter().find(|(name, _)| *name == letter);
        match (known, letter) {
            (Some((_, flag)), _) => flags |= *flag,
            (None, '0'..='7') => flags |= Flags::from_ace(letter as u8 - b'0'),
            (None, 'U') => return Err(cursor.unsupported("urgent data")),
            (None, _) => {
                return Err(cursor.syntax(format!("`{letter}` is not a TCP flag (S F R P E W A .)")));
            }
        }
    }
    Ok(flags)
}

/// Parses `1:1001(1000)`.
fn range(cursor: &mut Cursor) -> Result<(u32, u32), ParseError> {
    let from = cursor.integer("a sequence number", U32)? as u32;
    cursor.expect(':')?;
    let to = cursor.integer("a sequence number", U32)? as u32;
    cursor.expect('(')?;
    let length = cursor.integer("a payload length", 65_535)? as u32;
    cursor.expect(')')?;
    if from.wrapping_add(length) != to {
        return Err(cursor.syntax(format!("{from}:{to} is not {length} bytes long")));
    }
    Ok((from, length))
}

/// Parses `<mss 1460,sackOK>`; `None` for `<...>`.
fn options(cursor: &mut Cursor) -> Result<Option<Vec<OptionSpec>>, ParseError> {
    let mut options = Vec::new();
    if !cursor.eat('<') {
        return Ok(Some(options));
    }
    if cursor.peek() == Some(&Token::Ellipsis) {
        cursor.next();
        cursor.expect('>')?;
        return Ok(None);
    }
    loop {
        options.push(option(cursor)?);
        if cursor.eat('>') {
            return Ok(Some(options));
        }
        cursor.expect(',')?;
    }
}

/// Parses the hexadecimal digits of a cookie, or none.
fn fast_open(cursor: &mut Cursor, experimental: bool) -> Result<OptionSpec, ParseError> {
    let Some(Token::Identifier(digits)) = cursor.peek().cloned() else {
        let option = FastOpen::Request;
        return Ok(OptionSpec::FastOpen { option, experimental });
    };
    let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
    let Some(bytes) = bytes else {
        return Err(cursor.expected("the hexadecimal digits of a cookie"));
    };
    cursor.next();
    Ok(match Cookie::new(&bytes) {
        Some(cookie) => OptionSpec::FastOpen {
            option: FastOpen::Cookie(cookie),
            experimental,
        },
        None => OptionSpec::InvalidCookie,
    })
}

/// Parses `e1b 1 ceb 0 e0b 1` or the reverse order, or its beginning.
fn counters(cursor: &mut Cursor) -> Result<ByteCounters, ParseError> {
    const ORDERS: [(bool, [&str; 3]); 2] = [(false, ["e1b", "ceb", "e0b"]), (true, ["e0b", "ceb", "e1b"])];
    let starts =
        |names: &[&str; 3]| matches!(cursor.peek(), Some(Token::Identifier(name)) if name == names[0]);
    let found = ORDERS.into_iter().find(|(_, names)| starts(names));
    let Some((ect0_first, names)) = found else {
        return Ok(ByteCounters::new(false, &[]));
    };
    let mut values = Vec::new();
    for name in names {
        let Some(value) = cursor.named(name, "a counter", u64::from(U24))? else {
            break;
        };
        values.push(value as u32);
    }
    Ok(ByteCounters::new(ect0_first, &values))
}

fn option(cursor: &mut Cursor) -> Result<OptionSpec, ParseError> {
    let name = cursor.identifier("a TCP option (mss, wscale, sackOK, sack, TS, FO, FOEXP, ECN, nop, eol)")?;
    Ok(match name.as_str() {
        "nop" => OptionSpec::Nop,
        "eol" => OptionSpec::Eol,
        "mss" => OptionSpec::Mss(cursor.integer("a segment size", 65_535)? as u16),
        "wscale" => OptionSpec::WindowScale(cursor.integer("a window scale", 255)? as u8),
        "sackOK" => OptionSpec::SackPermitted,
        "sack" => {
            let mut blocks = Vec::new();
            while matches!(cursor.peek(), Some(Token::Integer(_))) {
                let left = cursor.integer("the left edge of a block", U32)? as u32;
                cursor.expect(':')?;
                blocks.push((left, cursor.integer("the right edge of a block", U32)? as u32));
            }
            OptionSpec::Sack(blocks)
        }
        "TS" => {
            if !cursor.eat_identifier("val") {
                return Err(cursor.expected("`val`"));
            }
            let value = cursor.integer("a timestamp", U32)? as u32;
            if !cursor.eat_identifier("ecr") {
                return Err(cursor.expected("`ecr`"));
            }
            OptionSpec::Timestamps(value, cursor.integer("an echoed timestamp", U32)? as u32)
        }
        "FO" => fast_open(cursor, false)?,
        "FOEXP" => fast_open(cursor, true)?,
        "md5" => return Err(cursor.unsupported("the MD5 option (RFC 2385)")),
        "ECN" => OptionSpec::Counters(counters(cursor)?),
        other => match multipath::option(cursor, other)? {
            Some(spec) => OptionSpec::Multipath(spec),
            None => return Err(cursor.syntax(format!("`{other}` is not a TCP option"))),
        },
    })
}
