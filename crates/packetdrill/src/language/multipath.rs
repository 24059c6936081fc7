//! Options of multipath TCP, in the notation of multipath-tcp/packetdrill, and the addresses of packets.

mod notation;

use std::net::IpAddr;

use super::ParseError;
use super::cursor::Cursor;
use super::lexer::Token;

/// An option of multipath TCP (RFC 8684). Data sequence numbers are relative to the initial one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MultipathSpec {
    /// `mpcapable v1 flags[flag_h] key[ckey=2, skey] mpcdatalen 100`.
    Capable {
        /// Version.
        version: u8,
        /// Flags A (highest bit) to H.
        flags: u8,
        /// The key of the sender, then that of the receiver.
        keys: Vec<Variable>,
        /// Length of the payload.
        length: Option<u16>,
    },
    /// `mp_join_syn backup=1 address_id=1 token=sha256_32(skey) rand=5`.
    JoinSyn {
        /// Flag B.
        backup: bool,
        /// Address ID.
        address: Option<u8>,
        /// Token.
        token: TokenSpec,
        /// Random number.
        nonce: Option<u32>,
    },
    /// `mp_join_syn_ack address_id=0 sender_hmac=auto`.
    JoinAnswer {
        /// Flag B.
        backup: bool,
        /// Address ID.
        address: Option<u8>,
        /// Random number.
        nonce: Option<u32>,
    },
    /// `mp_join_ack sender_hmac=auto`.
    JoinThird,
    /// `dss dack8=1 dsn4=1 ssn=1 dll=1000 nocs fin`.
    Dss(DssSpec),
    /// `add_address address_id=1 addr[name] port=80 hmac=auto`, or `addr_echo` instead of an HMAC.
    AddAddress {
        /// Address ID.
        id: Option<u8>,
        /// Name of the address.
        address: AddressName,
        /// Port.
        port: Option<u16>,
        /// Whether it is an echo.
        echo: bool,
    },
    /// `remove_address address_id=[1,2]`.
    RemoveAddress {
        /// Address IDs.
        ids: Vec<u8>,
    },
    /// `mp_prio backup=1`; an address ID makes it an option of version 0.
    Priority {
        /// Flag B.
        backup: bool,
        /// Address ID.
        address: Option<u8>,
    },
    /// `mp_fail dsn8=1`.
    Fail {
        /// Data sequence number.
        data: u64,
    },
    /// `mp_fastclose`, with the receiver's key unless one is given.
    FastClose {
        /// The key.
        key: Option<Variable>,
    },
    /// `mp_reset 1 flags[flag_t]`.
    Reset {
        /// Reason code.
        reason: u8,
        /// Flag T.
        transient: bool,
    },
}

/// Parts of a DSS option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DssSpec {
    /// DATA_ACK.
    pub acknowledgement: Option<NumberSpec>,
    /// Data sequence number of the mapping.
    pub data: Option<NumberSpec>,
    /// Subflow sequence number of the mapping.
    pub subflow: Option<u32>,
    /// Length of the mapping, with the DATA_FIN.
    pub length: Option<u16>,
    /// Checksum of the mapping.
    pub checksum: ChecksumSpec,
    /// DATA_FIN.
    pub fin: bool,
}

/// A checksum over a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChecksumSpec {
    /// `nocs`: none.
    #[default]
    Absent,
    /// The correct one, for payload of zeros.
    Correct,
    /// `cksum=N`.
    Value(u16),
}

/// A data sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberSpec {
    /// Whether it has eight bytes.
    pub is_wide: bool,
    /// Its value; `None`: any.
    pub value: Option<u64>,
}

/// A name for a key, with a value when the script assigns one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Option<u64>,
}

/// The token of a join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenSpec {
    /// `auto`: that of the receiver's key.
    Auto,
    /// A number.
    Value(u32),
    /// `sha256_32(name)`: that of a key.
    OfKey(String),
}

/// A name for an address, with a value when the script assigns one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressName {
    /// Name.
    pub name: String,
    /// Value.
    pub value: Option<IpAddr>,
}

/// Source and destination of a packet, where given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Source.
    pub source: Option<AddressName>,
    /// Destination.
    pub destination: Option<AddressName>,
}

/// Parses `addr[a] > addr[b]`, either of them, or nothing.
pub fn route(cursor: &mut Cursor) -> Result<Route, ParseError> {
    let source = name_of_address(cursor)?;
    if source.is_none() && cursor.peek() != Some(&Token::Mark('>')) {
        return Ok(Route::default());
    }
    cursor.expect('>')?;
    let destination = name_of_address(cursor)?;
    Ok(Route { source, destination })
}

fn name_of_address(cursor: &mut Cursor) -> Result<Option<AddressName>, ParseError> {
    if !cursor.eat_identifier("addr") {
        return Ok(None);
    }
    cursor.expect('[')?;
    let name = cursor.identifier("the name of an address")?;
    let mut value = None;
    if cursor.eat('=') {
        let function = cursor.identifier("`inet_addr` or `inet6_addr`")?;
        if function != "inet_addr" && function != "inet6_addr" {
            return Err(cursor.expected("`inet_addr` or `inet6_addr`"));
        }
        cursor.expect('(')?;
        let address = match cursor.peek() {
            Some(Token::Text(text)) => text.parse().ok(),
            _ => None,
        };
        if address.is_none() {
            return Err(cursor.expected("an address in quotes"));
        }
        value = address;
        cursor.next();
        cursor.expect(')')?;
    }
    cursor.expect(']')?;
    Ok(Some(AddressName { name, value }))
}

/// Parses the option called `name`; `None` if that is no option of multipath TCP.
pub fn option(cursor: &mut Cursor, name: &str) -> Result<Option<MultipathSpec>, ParseError> {
    Ok(Some(match name {
        "mpcapable" => capable(cursor)?,
        "mp_join_syn" => {
            let (backup, address) = (flag(cursor, "backup")?, byte(cursor, "address_id")?);
            let token = token(cursor)?;
            let nonce = word(cursor, "rand")?;
            MultipathSpec::JoinSyn {
                backup,
                address,
                token,
                nonce,
            }
        }
        "mp_join_syn_ack" => {
            let (backup, address) = (flag(cursor, "backup")?, byte(cursor, "address_id")?);
            hmac(cursor, "sender_hmac")?;
            let nonce = word(cursor, "rand")?;
            MultipathSpec::JoinAnswer {
                backup,
                address,
                nonce,
            }
        }
        "mp_join_ack" => {
            hmac(cursor, "sender_hmac")?;
            MultipathSpec::JoinThird
        }
        "dss" => MultipathSpec::Dss(dss(cursor)?),
        "add_address" => {
            let id = byte(cursor, "address_id")?;
            let Some(address) = name_of_address(cursor)? else {
                return Err(cursor.expected("`addr[...]`"));
            };
            let port = assigned(cursor, "port", u64::from(u16::MAX))?.map(|port| port as u16);
            let echo = cursor.eat_identifier("addr_echo");
            if !echo {
                hmac(cursor, "hmac")?;
            }
            MultipathSpec::AddAddress {
                id,
                address,
                port,
                echo,
            }
        }
        "remove_address" => remove_address(cursor)?,
        "mp_prio" => MultipathSpec::Priority {
            backup: flag(cursor, "backup")?,
            address: byte(cursor, "address_id")?,
        },
        "mp_fail" => match assigned(cursor, "dsn8", i64::MAX as u64)? {
            Some(data) => MultipathSpec::Fail { data },
            None => return Err(cursor.expected("`dsn8=` and a number")),
        },
        "mp_fastclose" => {
            let has_key = matches!(cursor.peek(), Some(Token::Identifier(_)));
            let key = if has_key { Some(variable(cursor)?) } else { None };
            MultipathSpec::FastClose { key }
        }
        "mp_reset" => {
            let reason = cursor.integer("a reason code", 255)? as u8;
            let flags = if cursor.eat_identifier("flags") {
                flag_list(cursor, &[("no_flags", 0), ("flag_t", 1)])?
            } else {
                0
            };
            let transient = flags == 1;
            MultipathSpec::Reset { reason, transient }
        }
        "mp_capable" | "mp_capable_no_cs" => {
            return Err(cursor.unsupported(format!("{name}, the notation of version 0")));
        }
        _ => return Ok(None),
    }))
}

const CAPABLE_FLAGS: [(&str, u8); 9] = [
    ("no_flags", 0),
    ("flag_a", 0x80),
    ("flag_b", 0x40),
    ("flag_c", 0x20),
    ("flag_d", 0x10),
    ("flag_e", 0x08),
    ("flag_f", 0x04),
    ("flag_g", 0x02),
    ("flag_h", 0x01),
];

fn capable(cursor: &mut Cursor) -> Result<MultipathSpec, ParseError> {
    let version = if cursor.eat_identifier("v0") {
        0
    } else {
        cursor.eat_identifier("v1");
        1
    };
    if !cursor.eat_identifier("flags") {
        return Err(cursor.expected("`flags`"));
    }
    let flags = match cursor.peek() {
        Some(Token::Mark('[')) => flag_list(cursor, &CAPABLE_FLAGS)?,
        _ => cursor.integer("flags", 255)? as u8,
    };
    let mut keys = Vec::new();
    if cursor.eat_identifier("key") {
        cursor.expect('[')?;
        keys.push(variable(cursor)?);
        if cursor.eat(',') {
            keys.push(variable(cursor)?);
        }
        cursor.expect(']')?;
    } else if !cursor.eat_identifier("nokey") {
        return Err(cursor.expected("`nokey` or `key[...]`"));
    }
    let length = cursor.named("mpcdatalen", "the length of the payload", u64::from(u16::MAX))?;
    if length.is_some() && keys.len() < 2 {
        return Err(cursor.syntax("mpcdatalen needs both keys".to_owned()));
    }
    Ok(MultipathSpec::Capable {
        version,
        flags,
        keys,
        length: length.map(|length| length as u16),
    })
}

fn dss(cursor: &mut Cursor) -> Result<DssSpec, ParseError> {
    let mut spec = DssSpec {
        acknowledgement: number(cursor, "dack4", "dack8")?,
        data: number(cursor, "dsn4", "dsn8")?,
        subflow: word(cursor, "ssn")?,
        length: assigned(cursor, "dll", u64::from(u16::MAX))?.map(|length| length as u16),
        ..DssSpec::default()
    };
    if !cursor.eat_identifier("nocs") && spec.data.is_some() {
        let value = assigned(cursor, "cksum", u64::from(u16::MAX))?;
        spec.checksum = value.map_or(ChecksumSpec::Correct, |value| ChecksumSpec::Value(value as u16));
    }
    spec.fin = cursor.eat_identifier("fin");
    if spec.acknowledgement.is_none() && spec.data.is_none() {
        return Err(cursor.unsupported("a DSS option without numbers"));
    }
    Ok(spec)
}

/// Parses `dack4=1`, `dack8=1`, `dack4`, or nothing.
fn number(cursor: &mut Cursor, short: &str, long: &str) -> Result<Option<NumberSpec>, ParseError> {
    for (name, is_wide) in [(short, false), (long, true)] {
        if cursor.eat_identifier(name) {
            let value = if cursor.eat('=') {
                Some(cursor.integer("a data sequence number", i64::MAX as u64)?)
            } else {
                None
            };
            return Ok(Some(NumberSpec { is_wide, value }));
        }
    }
    Ok(None)
}

fn remove_address(cursor: &mut Cursor) -> Result<MultipathSpec, ParseError> {
    if !cursor.eat_identifier("address_id") {
        return Err(cursor.expected("`address_id=[...]`"));
    }
    cursor.expect('=')?;
    cursor.expect('[')?;
    let mut ids = Vec::new();
    loop {
        ids.push(cursor.integer("an address ID", 255)? as u8);
        if cursor.eat(']') {
            return Ok(MultipathSpec::RemoveAddress { ids });
        }
        cursor.expect(',')?;
    }
}

fn token(cursor: &mut Cursor) -> Result<TokenSpec, ParseError> {
    if !cursor.eat_identifier("token") {
        return Err(cursor.expected("`token=`"));
    }
    cursor.expect('=')?;
    if cursor.eat_identifier("auto") {
        return Ok(TokenSpec::Auto);
    }
    if cursor.eat_identifier("sha256_32") {
        cursor.expect('(')?;
        let name = cursor.identifier("the name of a key")?;
        cursor.expect(')')?;
        return Ok(TokenSpec::OfKey(name));
    }
    if matches!(cursor.peek(), Some(Token::Identifier(_))) {
        return Err(cursor.unsupported("a token of version 0"));
    }
    Ok(TokenSpec::Value(
        cursor.integer("a token", u64::from(u32::MAX))? as u32
    ))
}

/// Parses `name=auto`; other HMACs are not supported.
fn hmac(cursor: &mut Cursor, name: &str) -> Result<(), ParseError> {
    if !cursor.eat_identifier(name) {
        return Err(cursor.expected(&format!("`{name}=auto`")));
    }
    cursor.expect('=')?;
    if !cursor.eat_identifier("auto") {
        return Err(cursor.unsupported("an HMAC that the script chooses"));
    }
    Ok(())
}

fn variable(cursor: &mut Cursor) -> Result<Variable, ParseError> {
    let name = cursor.identifier("the name of a key")?;
    let value = if cursor.eat('=') {
        Some(cursor.integer("a key", i64::MAX as u64)?)
    } else {
        None
    };
    Ok(Variable { name, value })
}

/// Parses `[flag_a, flag_b]`.
fn flag_list(cursor: &mut Cursor, known: &[(&str, u8)]) -> Result<u8, ParseError> {
    cursor.expect('[')?;
    let mut flags = 0;
    loop {
        let name = cursor.identifier("a flag")?;
        match known.iter().find(|(flag, _)| *flag == name) {
            Some((_, bit)) => flags |= bit,
            None => return Err(cursor.syntax(format!("`{name}` is not a flag of this option"))),
        }
        if cursor.eat(']') {
            return Ok(flags);
        }
        cursor.expect(',')?;
    }
}

/// Parses `name=5`, or nothing.
fn assigned(cursor: &mut Cursor, name: &str, limit: u64) -> Result<Option<u64>, ParseError> {
    if !cursor.eat_identifier(name) {
        return Ok(None);
    }
    cursor.expect('=')?;
    if cursor.eat_identifier("auto") {
        return Ok(None);
    }
    cursor.integer(&format!("the value of {name}"), limit).map(Some)
}

fn byte(cursor: &mut Cursor, name: &str) -> Result<Option<u8>, ParseError> {
    Ok(assigned(cursor, name, 255)?.map(|value| value as u8))
}

fn word(cursor: &mut Cursor, name: &str) -> Result<Option<u32>, ParseError> {
    Ok(assigned(cursor, name, u64::from(u32::MAX))?.map(|value| value as u32))
}

fn flag(cursor: &mut Cursor, name: &str) -> Result<bool, ParseError> {
    Ok(assigned(cursor, name, 1)? == Some(1))
}
