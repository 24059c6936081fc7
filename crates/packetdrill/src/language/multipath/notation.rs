//! Options of multipath TCP as scripts write them.

use std::fmt::{Display, Formatter, Result};

use super::{ChecksumSpec, DssSpec, MultipathSpec, Variable};

impl Display for MultipathSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Capable {
                version,
                flags,
                keys,
                length,
            } => {
                write!(f, "mpcapable v{version} flags {flags:#x}")?;
                match keys.as_slice() {
                    [] => write!(f, " nokey")?,
                    [one] => write!(f, " key[{one}]")?,
                    [one, other, ..] => write!(f, " key[{one}, {other}]")?,
                }
                length.map_or(Ok(()), |length| write!(f, " mpcdatalen {length}"))
            }
            Self::JoinSyn { backup, address, .. } => write!(f, "mp_join_syn{}", join(*backup, *address)),
            Self::JoinAnswer { backup, address, .. } => {
                write!(f, "mp_join_syn_ack{}", join(*backup, *address))
            }
            Self::JoinThird => write!(f, "mp_join_ack"),
            Self::Dss(dss) => write!(f, "{dss}"),
            Self::AddAddress {
                id,
                address,
                port,
                echo,
            } => {
                write!(f, "add_address")?;
                id.map_or(Ok(()), |id| write!(f, " address_id={id}"))?;
                match address.value {
                    Some(value) => write!(f, " addr[{value}]")?,
                    None => write!(f, " addr[{}]", address.name)?,
                }
                port.map_or(Ok(()), |port| write!(f, " port={port}"))?;
                write!(f, "{}", if *echo { " addr_echo" } else { " hmac" })
            }
            Self::RemoveAddress { ids } => write!(f, "remove_address address_id={ids:?}"),
            Self::Priority { backup, .. } => write!(f, "mp_prio backup={}", u8::from(*backup)),
            Self::Fail { data } => write!(f, "mp_fail dsn8={data}"),
            Self::FastClose { .. } => write!(f, "mp_fastclose"),
            Self::Reset { reason, transient } => {
                write!(
                    f,
                    "mp_reset {reason}{}",
                    if *transient { " flags[flag_t]" } else { "" }
                )
            }
        }
    }
}

fn join(backup: bool, address: Option<u8>) -> String {
    let backup = if backup { " backup=1" } else { "" };
    let address = address.map_or_else(String::new, |address| format!(" address_id={address}"));
    format!("{backup}{address}")
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.value {
            Some(value) => write!(f, "{value:#x}"),
            None => write!(f, "{}", self.name),
        }
    }
}

impl Display for DssSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "dss")?;
        for (name, number) in [("dack", self.acknowledgement), ("dsn", self.data)] {
            let Some(number) = number else { continue };
            let bytes = if number.is_wide { 8 } else { 4 };
            match number.value {
                Some(value) => write!(f, " {name}{bytes}={value}")?,
                None => write!(f, " {name}{bytes}")?,
            }
        }
        if self.data.is_some() {
            self.subflow
                .map_or(Ok(()), |subflow| write!(f, " ssn={subflow}"))?;
            self.length.map_or(Ok(()), |length| write!(f, " dll={length}"))?;
            match self.checksum {
                ChecksumSpec::Absent => write!(f, " nocs")?,
                ChecksumSpec::Correct => {}
                ChecksumSpec::Value(value) => write!(f, " cksum={value}")?,
            }
        }
        write!(f, "{}", if self.fin { " fin" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use crate::language::{Action, OptionSpec, Payload, parse};

    fn options_of(text: &str) -> String {
        let script = parse(&format!("+0 < . 1:1(0) win 5 <{text}>")).unwrap();
        let Action::Packet(packet) = &script.events[0].action else {
            panic!()
        };
        let Payload::Tcp(tcp) = &packet.payload else {
            panic!()
        };
        let options = tcp.options.as_ref().unwrap().iter();
        let texts: Vec<String> = options
            .map(|option| match option {
                OptionSpec::Multipath(spec) => spec.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        texts.join(", ")
    }

    #[test]
    fn options_are_written_as_they_are_read() {
        for text in [
            "mpcapable v1 flags 0x1 nokey",
            "mpcapable v0 flags 0x41 key[0x2, skey] mpcdatalen 100",
            "mp_join_syn backup=1 address_id=1",
            "mp_join_syn_ack address_id=0",
            "mp_join_ack",
            "dss dack8=1 dsn4=1 ssn=1 dll=1000 nocs fin",
            "dss dack4=5",
            "dss dsn8=1 ssn=1 dll=10 cksum=7",
            "dss dsn8=1 dll=10",
            "remove_address address_id=[1, 2]",
            "mp_fail dsn8=7",
            "mp_fastclose",
            "mp_reset 1 flags[flag_t]",
        ] {
            let token = if text.starts_with("mp_join_syn ") {
                " token=5"
            } else {
                ""
            };
            let hmac = if text.contains("_ack") {
                " sender_hmac=auto"
            } else {
                ""
            };
            let key = text.replace("0x2", "ckey=2");
            assert_eq!(options_of(&format!("{key}{token}{hmac}")), text);
        }
        assert_eq!(
            options_of(
                "add_address address_id=1 addr[a=inet_addr(\"192.0.2.9\")] hmac=auto, dss dack4=1 dll=0 nocs"
            ),
            "add_address address_id=1 addr[192.0.2.9] hmac, dss dack4=1"
        );
        assert_eq!(options_of("mp_prio backup=1 address_id=1"), "mp_prio backup=1");
    }

    #[test]
    fn routes_name_either_address() {
        for (text, source, destination) in [
            ("addr[a] > addr[b] ", Some("a"), Some("b")),
            ("> addr[b] ", None, Some("b")),
            ("addr[a] > ", Some("a"), None),
            ("", None, None),
        ] {
            let script = parse(&format!("+0 > {text}S 0:0(0)")).unwrap();
            let Action::Packet(packet) = &script.events[0].action else {
                panic!()
            };
            let name = |of: &Option<crate::language::AddressName>| of.as_ref().map(|of| of.name.clone());
            assert_eq!(name(&packet.route.source).as_deref(), source, "{text}");
            assert_eq!(name(&packet.route.destination).as_deref(), destination, "{text}");
        }
        assert!(parse("+0 < . 1:1(0) win 5 <mpcapable v1 flags[flag_z] nokey>").is_err());
    }
}
