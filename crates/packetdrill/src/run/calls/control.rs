//! Control messages of `recvmsg`: the error queue and `TCP_INQ`.

use foundation::Duration;

use super::{Answer, CallError, CallResult, argument, connection, mismatch, socket, symbols};
use crate::language::{Call, Entry, Expression};
use crate::run::notices::Notice;
use crate::run::world::{START, World};

/// Returns the control messages that a call expects.
fn expected(call: &Call) -> Result<&[Expression], CallError> {
    match argument(call, 1)?.field("msg_control") {
        Some(Expression::List(items)) => Ok(items),
        None => Ok(&[]),
        Some(other) => super::unsupported(format!("the control messages {other}")),
    }
}

/// Level and type of a time stamp.
const STAMP: (&str, &str) = ("SOL_SOCKET", "SCM_TIMESTAMPING");
/// Level and type of an entry of the error queue.
const ERROR: (&str, &str) = ("SOL_IP", "IP_RECVERR");
/// Level and type of the bytes left to read.
const LEFT: (&str, &str) = ("SOL_TCP", "TCP_CM_INQ");

/// A control message of a script.
struct Parts<'a> {
    /// Its level and type.
    kind: (&'a str, &'a str),
    data: &'a Expression,
}

/// Returns the parts of a control message that has all of them and no other.
fn parts(message: &Expression) -> Result<Parts<'_>, CallError> {
    let known = ["cmsg_level", "cmsg_type", "cmsg_data"];
    let fields = known.map(|name| message.field(name));
    let is_known = entries(message)?.len() == known.len();
    match fields {
        [
            Some(Expression::Symbol(level)),
            Some(Expression::Symbol(kind)),
            Some(data),
        ] if is_known => Ok(Parts {
            kind: (level, kind),
            data,
        }),
        _ => unsupported_message(message),
    }
}

/// Returns the fields of a structure.
fn entries(structure: &Expression) -> Result<&[Entry], CallError> {
    match structure {
        Expression::Structure(entries) => Ok(entries),
        other => super::unsupported(format!("the structure {other}")),
    }
}

fn unsupported_message<T>(message: &Expression) -> Result<T, CallError> {
    super::unsupported(format!("the control message {message}"))
}

/// `recvmsg(4, {...}, MSG_ERRQUEUE)`: takes an entry of the error queue and compares it.
pub fn receive_error(world: &mut World, call: &Call) -> CallResult {
    let tolerance = world.settings.tolerance;
    let known = match connection(world, call) {
        Ok((tested, _)) => tested.notices.take(),
        Err(CallError::Errno("ENOTCONN")) => None,
        Err(error) => return Err(error),
    };
    let Some(notice) = known else {
        socket(world, call)?;
        return Ok(Answer::Error("EAGAIN"));
    };
    for message in expected(call)? {
        let parts = parts(message)?;
        match parts.kind {
            STAMP => compare_stamp(notice, parts.data, tolerance)?,
            ERROR => compare_error(notice, parts.data)?,
            _ => return unsupported_message(message),
        }
    }
    Ok(Answer::Value(0))
}

/// Compares a time stamp (`struct scm_timestamping`).
fn compare_stamp(notice: Notice, data: &Expression, tolerance: Duration) -> Result<(), CallError> {
    let Notice::Stamp { at, .. } = notice else {
        return mismatch("a time stamp", describe(notice));
    };
    let mut wanted = START;
    for entry in entries(data)? {
        let limited = u64::try_from(symbols::number(&entry.value)?)
            .unwrap_or(0)
            .min(1_000_000_000);
        wanted += match entry.name.as_str() {
            "scm_sec" => Duration::from_secs(limited),
            "scm_nsec" => Duration::from_nanos(limited),
            name => return super::unsupported(format!("the field {name} of a time stamp")),
        };
    }
    if (at - wanted) + (wanted - at) > tolerance {
        return mismatch(format!("a time stamp of {}", wanted - START), describe(notice));
    }
    Ok(())
}

/// Compares an entry of the error queue (`struct sock_extended_err`).
fn compare_error(notice: Notice, data: &Expression) -> Result<(), CallError> {
    let fields = fields(notice);
    for Entry { name, value } in entries(data)? {
        let Some((_, actual)) = fields.iter().find(|(known, _)| known == name) else {
            return super::unsupported(format!("the field {name} of an error"));
        };
        let same = match symbols::number(actual) {
            Ok(number) => symbols::number(value)? == number,
            Err(_) => value == actual,
        };
        if !same {
            return mismatch(format!("{name}={value}"), format!("{name}={actual}"));
        }
    }
    Ok(())
}

fn describe(notice: Notice) -> String {
    match notice {
        Notice::Completed { first, last } => format!("the completion of calls {first} to {last}"),
        Notice::Stamp { point, at, byte } => format!("{point} of byte {byte} at {}", at - START),
    }
}

/// Returns the fields of an entry (`struct sock_extended_err`).
fn fields(notice: Notice) -> [(&'static str, Expression); 6] {
    let symbol = |name: &str| Expression::Symbol(name.to_owned());
    let number = |number: u64| Expression::Integer(number as i64);
    let (errno, origin, code, info, data) = match notice {
        Notice::Completed { first, last } => (
            number(0),
            symbol("SO_EE_ORIGIN_ZEROCOPY"),
            symbol("SO_EE_CODE_ZEROCOPY_COPIED"),
            number(first),
            number(last),
        ),
        Notice::Stamp { point, byte, .. } => (
            symbol("ENOMSG"),
            symbol("SO_EE_ORIGIN_TIMESTAMPING"),
            number(0),
            symbol(point),
            number(byte),
        ),
    };
    [
        ("ee_errno", errno),
        ("ee_origin", origin),
        ("ee_type", number(0)),
        ("ee_code", code),
        ("ee_info", info),
        ("ee_data", data),
    ]
}

/// Compares the control messages of a call that received data: with `TCP_INQ`, the bytes left; 1 after them for the end of the
/// stream (Linux's `tcp_inq_hint`).
pub fn compare(world: &mut World, call: &Call) -> Result<(), CallError> {
    let inquires = socket(world, call)?.options.inquires;
    let (tested, _) = connection(world, call)?;
    let left = match tested.machine.readable() {
        0 if tested.peer_finished => 1,
        bytes => bytes,
    };
    for message in expected(call)? {
        let Parts { kind, data: wanted } = parts(message)?;
        if kind != LEFT || !inquires {
            return unsupported_message(message);
        }
        if symbols::number(wanted)? != left as i64 {
            return mismatch(format!("TCP_CM_INQ {wanted}"), left.to_string());
        }
    }
    Ok(())
}
