//! TCP Fast Open: `MSG_FASTOPEN` and the socket options (RFC 7413; Linux's `tcp_sendmsg_fastopen`).

use transport::tcp::{Opening, TcpConfig};

use super::{Answer, Attempt, CallError, argument, number, socket, symbols, unsupported};
use crate::language::{Call, Expression};
use crate::run::sockets::{Role, SocketOptions};
use crate::run::symbols::{MSG_DONTWAIT, MSG_EOR, MSG_FASTOPEN, MSG_MORE, MSG_ZEROCOPY};
use crate::run::tested::{BlockedWrite, TestedConnection};
use crate::run::world::World;

/// Returns how a client opens a connection with Fast Open.
pub fn opening(world: &mut World, config: &TcpConfig) -> Opening {
    world.apply_peer_updates();
    world
        .settings
        .fast_open
        .opening(world.now, config, &mut world.memory)
}

/// Opens a connection with the data of a sending call. `None`: the connection is established, and the call continues as on
/// any other.
pub fn send(
    world: &mut World,
    call: &Call,
    attempt: &mut Attempt,
    bytes: u64,
    flags: u64,
) -> Result<Option<Answer>, CallError> {
    let wanted = flags & MSG_FASTOPEN != 0;
    let allowed = world.settings.fast_open.has_client() && !is_unspecified(call);
    let Ok(found) = socket(world, call) else {
        return Ok(None);
    };
    if found.multipath && wanted {
        return unsupported("Fast Open with multipath TCP");
    }
    let waits = !found.nonblocking && flags & MSG_DONTWAIT == 0;
    let index = match found.role {
        Role::Deferred => open(world, call, attempt, bytes, flags)?,
        _ if !wanted && !attempt.opened => return Ok(None),
        Role::Fresh if !allowed => return Err(CallError::Errno("EOPNOTSUPP")),
        Role::Fresh => open(world, call, attempt, bytes, flags)?,
        Role::Listening(_) => return Err(CallError::Errno("EISCONN")),
        Role::Connection(index) => index,
    };
    let tested = &mut world.connections[index];
    if let Some(error) = tested.error.take() {
        return Err(CallError::Errno(error));
    }
    if tested.connected {
        attempt.progress += std::mem::take(&mut tested.written);
        let was_owned = std::mem::replace(&mut tested.owned, true);
        return if was_owned && !attempt.opened {
            Err(CallError::Errno("EISCONN"))
        } else {
            Ok(None)
        };
    }
    if !attempt.opened {
        return Err(CallError::Errno("EALREADY"));
    }
    Ok(Some(match attempt.progress {
        sent if waits => {
            tested.waiting = BlockedWrite {
                bytes: bytes - sent,
                zerocopy: flags & MSG_ZEROCOPY != 0,
            };
            if sent < bytes
                && let Some(machine) = tested.machine.tcp_mut()
            {
                machine.expect_write();
            }
            Answer::Blocks(None)
        }
        0 => Answer::Error("EINPROGRESS"),
        sent => Answer::Value(sent as i64),
    }))
}

/// Sends the SYN with as much of the data as fits.
fn open(
    world: &mut World,
    call: &Call,
    attempt: &mut Attempt,
    bytes: u64,
    flags: u64,
) -> Result<usize, CallError> {
    if flags & (MSG_EOR | MSG_MORE) != 0 {
        return unsupported(format!(
            "{}() with MSG_EOR or MSG_MORE that opens a connection",
            call.name
        ));
    }
    let now = world.now;
    let config = world.config_of(number(call, 0)?);
    let opening = opening(world, &config);
    let mut tested = TestedConnection::open(now, &config, opening);
    let room = u64::from(tested.machine.syn_data_capacity());
    attempt.progress = tested.machine.write(now, bytes.min(room));
    attempt.opened = true;
    let found = socket(world, call)?;
    tested.notices.zerocopy = found.options.zerocopy;
    let waits = !found.nonblocking && flags & MSG_DONTWAIT == 0;
    if attempt.progress > 0 {
        let ends = attempt.progress == bytes || !waits;
        tested
            .notices
            .on_written(attempt.progress, flags & MSG_ZEROCOPY != 0, ends);
    }
    let index = world.begin(tested);
    socket(world, call)?.role = Role::Connection(index);
    Ok(index)
}

/// Whether the destination of `sendto` has no address family.
fn is_unspecified(call: &Call) -> bool {
    let address = call.arguments.get(4);
    matches!(address, Some(Expression::Symbol(name)) if name == "AF_UNSPEC")
}

/// `setsockopt(3, SOL_TCP, TCP_FASTOPEN_KEY, "\xf7...", 16)`.
pub fn set_key(options: &mut SocketOptions, call: &Call, value: &Expression) -> Answer {
    let length = argument(call, 4)
        .ok()
        .and_then(|length| symbols::number(length).ok());
    let bytes = match value {
        Expression::Text(text) if length == Some(16) => escaped(text),
        _ => None,
    };
    match bytes.and_then(|bytes| bytes.try_into().ok()) {
        Some(key) => {
            options.fast_open_key = Some(key);
            Answer::Value(0)
        }
        None => Answer::Error("EINVAL"),
    }
}

/// Returns the bytes of a text of `\xNN`.
fn escaped(text: &str) -> Option<Vec<u8>> {
    let digits = text.split("\\x").skip(1);
    digits.map(|digits| u8::from_str_radix(digits, 16).ok()).collect()
}
