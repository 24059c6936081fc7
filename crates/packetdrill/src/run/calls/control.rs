//! Control messages of `recvmsg`: the error queue and `TCP_INQ`.

use foundation::Duration;

use super::{Answer, CallError, CallResult, argument, connection, mismatch, socket, symbols};
use crate::language::{Call, Expression};
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

/// `recvmsg(4, {...}, MSG_ERRQUEUE)`: takes an entry of the error queue and compares it.
pub fn receive_error(world: &mut World, call: &Call) -> CallResult {
    let (tolerance, start) = (world.settings.tolerance, START);
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
        let data = message.field("cmsg_data");
        let field = |name: &str| data.and_then(|data| data.field(name));
        if let Some(seconds) = field("scm_sec") {
            let Notice::Stamp { at, .. } = notice else {
                return mismatch("a time stamp", describe(notice));
            };
            let nanoseconds = field("scm_nsec").map(symbols::number).transpose()?.unwrap_or(0);
            let limited = |number: i64| u64::try_from(number).unwrap_or(0).min(1_000_000_000);
            let wanted = start
                + Duration::from_secs(limited(symbols::number(seconds)?))
                + Duration::from_nanos(limited(nanoseconds));
            if (at - wanted) + (wanted - at) > tolerance {
                return mismatch(format!("a time stamp of {}", wanted - start), describe(notice));
            }
            continue;
        }
        for (name, actual) in fields(notice) {
            let Some(wanted) = field(name) else { continue };
            let same = match symbols::number(&actual) {
                Ok(number) => symbols::number(wanted)? == number,
                Err(_) => *wanted == actual,
            };
            if !same {
                return mismatch(format!("{name}={wanted}"), format!("{name}={actual}"));
            }
        }
    }
    Ok(Answer::Value(0))
}

fn describe(notice: Notice) -> String {
    match notice {
        Notice::Completed { first, last } => format!("the completion of calls {first} to {last}"),
        Notice::Stamp { point, at, byte } => format!("{point} of byte {byte} at {}", at - START),
    }
}

/// Returns the fields of an entry (`struct sock_extended_err`).
fn fields(notice: Notice) -> [(&'static str, Expression); 5] {
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
        let is_left = message.field("cmsg_type") == Some(&Expression::Symbol("TCP_CM_INQ".to_owned()));
        let Some(wanted) = message.field("cmsg_data").filter(|_| is_left && inquires) else {
            return super::unsupported(format!("the control message {message}"));
        };
        if symbols::number(wanted)? != left as i64 {
            return mismatch(format!("TCP_CM_INQ {wanted}"), left.to_string());
        }
    }
    Ok(())
}
