//! Transfer of data: read, write and related calls.

use super::{
    Answer, Attempt, CallError, CallResult, argument, blocked, connection, control, fast_open, flags, number,
    socket, unsupported,
};
use crate::language::{Call, Expression};
use crate::run::sockets::Role;
use crate::run::symbols::{
    self, MSG_DONTWAIT, MSG_EOR, MSG_ERRQUEUE, MSG_FASTOPEN, MSG_MORE, MSG_NOSIGNAL, MSG_PEEK, MSG_TRUNC,
    MSG_WAITALL, MSG_ZEROCOPY,
};
use crate::run::world::World;

/// Number of buffers that a packet can hold without copies (`MAX_SKB_FRAGS`).
const MAX_FRAGMENTS: usize = 17;

/// Returns the total size of the buffers in `[{..., 100}, {..., 200}]`.
fn vector(list: &Expression) -> Result<u64, CallError> {
    Ok(sizes(list)?.into_iter().sum())
}

/// Returns the sizes of the buffers in `[{..., 100}, {..., 200}]`.
fn sizes(list: &Expression) -> Result<Vec<u64>, CallError> {
    let unknown = || CallError::from(format!("the buffers {list}"));
    let Expression::List(items) = list else {
        return Err(unknown());
    };
    let mut all = Vec::new();
    for item in items {
        let Expression::Structure(entries) = item else {
            return Err(unknown());
        };
        let size = entries.last().map(|entry| symbols::number(&entry.value));
        match size {
            Some(Ok(size)) => all.push(size as u64),
            _ => return Err(unknown()),
        }
    }
    Ok(all)
}

/// Returns the position in the data of a call up to which the packet at `position` extends at most: a packet without copies holds
/// a limited number of buffers. `u64::MAX` without that limit.
fn end_of_fragments(call: &Call, flags: u64, position: u64) -> Result<u64, CallError> {
    let message = call.arguments.get(1).and_then(|message| message.field("msg_iov"));
    let Some(buffers) = message.filter(|_| flags & MSG_ZEROCOPY != 0 && call.name == "sendmsg") else {
        return Ok(u64::MAX);
    };
    let mut end = 0;
    for packet in sizes(buffers)?.chunks(MAX_FRAGMENTS) {
        end += packet.iter().sum::<u64>();
        if end > position {
            break;
        }
    }
    Ok(end)
}

/// Returns the length and the flags of a call; `None` if the buffer is a null pointer.
fn amount(call: &Call) -> Result<Option<(u64, u64)>, CallError> {
    let null = matches!(argument(call, 1)?, Expression::Symbol(name) if name == "NULL");
    let plain = |flags| -> Result<Option<(u64, u64)>, CallError> {
        let bytes = u64::try_from(number(call, 2)?).unwrap_or(0);
        Ok(Some((bytes, flags)).filter(|_| !null || bytes == 0))
    };
    match call.name.as_str() {
        "read" | "write" => plain(0),
        "recv" | "send" | "recvfrom" | "sendto" => plain(flags(call, 3)?),
        "readv" | "writev" => Ok(Some((vector(argument(call, 1)?)?, 0))),
        _ => {
            let message = argument(call, 1)?;
            if call.name == "sendmsg" && message.field("msg_control").is_some() {
                return unsupported("control messages of sendmsg()");
            }
            let buffers = message.field("msg_iov");
            let buffers = buffers.ok_or_else(|| format!("the message {message}"))?;
            Ok(Some((vector(buffers)?, flags(call, 2)?)))
        }
    }
}

/// `read(4, ..., 1000)` and related calls.
pub fn receive(world: &mut World, call: &Call) -> CallResult {
    let now = world.now;
    let Some((wanted, flags)) = amount(call)? else {
        return Ok(Answer::Error("EFAULT"));
    };
    if flags & MSG_ERRQUEUE != 0 {
        return control::receive_error(world, call);
    }
    if flags & !(MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC | MSG_WAITALL | MSG_NOSIGNAL) != 0 {
        return unsupported(format!("{}() with flags {flags:#x}", call.name));
    }
    if let Role::Deferred = socket(world, call)?.role {
        return Ok(Answer::Error("EAGAIN"));
    }
    let (tested, nonblocking) = connection(world, call)?;
    let there = tested.machine.readable();
    let ended = tested.peer_finished || tested.read_shut || tested.gone;
    let all = flags & MSG_WAITALL != 0 && !ended && there < wanted;
    if there > 0 && !all {
        let bytes = there.min(wanted);
        if flags & MSG_PEEK == 0 {
            tested.machine.read(now, bytes);
            tested.collect(now);
        }
        if call.name == "recvmsg" {
            control::compare(world, call)?;
        }
        return Ok(Answer::Value(bytes as i64));
    }
    if let Some(error) = tested.error.take() {
        return Ok(Answer::Error(error));
    }
    if ended || wanted == 0 {
        return Ok(Answer::Value(0));
    }
    blocked(!nonblocking && flags & MSG_DONTWAIT == 0, "EAGAIN")
}

/// `write(4, ..., 1000)` and related calls.
pub fn send(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    let Some((bytes, flags)) = amount(call)? else {
        return Ok(Answer::Error("EFAULT"));
    };
    if flags & !(MSG_DONTWAIT | MSG_MORE | MSG_NOSIGNAL | MSG_FASTOPEN | MSG_EOR | MSG_ZEROCOPY) != 0 {
        return unsupported(format!("{}() with flags {flags:#x}", call.name));
    }
    if let Some(answer) = fast_open::send(world, call, attempt, bytes, flags)? {
        return Ok(answer);
    }
    put(world, call, attempt, bytes, flags)
}

/// `sendfile(4, 5, [0], 1000)`.
pub fn send_file(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    let bytes = u64::try_from(number(call, 3)?).unwrap_or(0);
    put(world, call, attempt, bytes, 0)
}

fn put(world: &mut World, call: &Call, attempt: &mut Attempt, bytes: u64, flags: u64) -> CallResult {
    let now = world.now;
    let (tested, nonblocking) = match connection(world, call) {
        Ok(found) => found,
        Err(CallError::Errno("ENOTCONN")) => return Err(CallError::Errno("EPIPE")),
        Err(error) => return Err(error),
    };
    let moved = |progress: u64, otherwise| {
        if progress > 0 {
            Answer::Value(progress as i64)
        } else {
            otherwise
        }
    };
    if let Some(error) = tested.error.filter(|_| attempt.progress == 0) {
        tested.error = None;
        return Ok(Answer::Error(error));
    }
    if !tested.may_write() {
        return Ok(moved(attempt.progress, Answer::Error("EPIPE")));
    }
    if tested.connected {
        let before = attempt.progress;
        while attempt.progress < bytes {
            let end = end_of_fragments(call, flags, attempt.progress)?.min(bytes);
            let left = end - attempt.progress;
            let written = if flags & MSG_MORE == 0 {
                tested.machine.write(now, left)
            } else {
                tested.machine.write_more(now, left)
            };
            attempt.progress += written;
            if written < left {
                break;
            }
            if end < bytes {
                tested.machine.end_record();
            }
        }
        let taken = attempt.progress - before;
        let ends = attempt.progress == bytes || nonblocking || flags & MSG_DONTWAIT != 0;
        if taken > 0 {
            tested.notices.on_written(taken, flags & MSG_ZEROCOPY != 0, ends);
        }
        if flags & MSG_EOR != 0 && attempt.progress == bytes {
            tested.machine.end_record();
        }
        tested.collect(now);
    }
    if attempt.progress == bytes {
        return Ok(Answer::Value(bytes as i64));
    }
    if nonblocking || flags & MSG_DONTWAIT != 0 {
        return Ok(moved(attempt.progress, Answer::Error("EAGAIN")));
    }
    Ok(Answer::Blocks(None))
}
