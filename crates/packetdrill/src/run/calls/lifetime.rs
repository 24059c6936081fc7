//! The lifetime of sockets: socket, bind, listen, accept, connect, close, shutdown.

use transport::tcp::Opening;

use super::{
    Answer, Attempt, CallError, CallResult, argument, blocked, connection, fast_open, flags, number,
    returned, socket as find, symbol, unsupported,
};
use crate::language::{Call, Expression};
use crate::run::sockets::{File, Role, Socket};
use crate::run::tested::TestedConnection;
use crate::run::world::World;

/// `socket(..., SOCK_STREAM, IPPROTO_TCP)`.
pub fn socket(world: &mut World, call: &Call) -> CallResult {
    let number = returned(call)?;
    let kind = argument(call, 1)?.to_string();
    let mut parts = kind.split('|');
    if parts.next() != Some("SOCK_STREAM") {
        return unsupported(format!("sockets of type {kind}"));
    }
    let nonblocking = parts.any(|part| part == "SOCK_NONBLOCK");
    let protocol = argument(call, 2)?;
    let is = |wanted| matches!(protocol, Expression::Symbol(name) if name == wanted);
    let multipath = is("IPPROTO_MPTCP");
    if !multipath && !is("IPPROTO_TCP") && protocol != &Expression::Integer(0) {
        return unsupported(format!("sockets of protocol {protocol}"));
    }
    let socket = Socket {
        nonblocking,
        multipath,
        ..Socket::default()
    };
    world.files.insert(number, File::Socket(Box::new(socket)));
    Ok(Answer::Value(number))
}

/// `bind(3, ..., ...)`: addresses are ignored.
pub fn bind(world: &mut World, call: &Call) -> CallResult {
    find(world, call)?;
    Ok(Answer::Value(0))
}

/// `listen(3, 1)`.
pub fn listen(world: &mut World, call: &Call) -> CallResult {
    // The kernel converts a negative backlog to its maximum.
    let backlog = u64::try_from(number(call, 1)?).unwrap_or(u64::MAX);
    let settings = world.settings.fast_open.clone();
    let socket = find(world, call)?;
    match socket.role {
        Role::Fresh => {
            let options = &mut socket.options;
            options.fast_open_queue = settings.queue_at_listen(options.fast_open_queue, backlog);
            socket.role = Role::Listening(Vec::new());
            world.listens_anew = true;
        }
        Role::Listening(_) => {}
        Role::Connection(_) | Role::Deferred => return Err(CallError::Errno("EINVAL")),
    }
    Ok(Answer::Value(0))
}

/// `accept(3, ..., ...)`.
pub fn accept(world: &mut World, call: &Call) -> CallResult {
    let nonblocking = call.name == "accept4" && {
        let kind = argument(call, 3)?.to_string();
        kind.split('|').any(|part| part == "SOCK_NONBLOCK")
    };
    let socket = find(world, call)?;
    let (options, waits) = (socket.options.clone(), !socket.nonblocking);
    let multipath = socket.multipath;
    let Role::Listening(backlog) = &mut socket.role else {
        return Err(CallError::Errno("EINVAL"));
    };
    let candidates = backlog.clone();
    let connected = |index: &usize| world.connections[*index].connected;
    let Some(place) = candidates.iter().position(connected) else {
        return blocked(waits, "EAGAIN");
    };
    if let Role::Listening(backlog) = &mut find(world, call)?.role {
        backlog.remove(place);
    }
    let index = candidates[place];
    let now = world.now;
    let tested = &mut world.connections[index];
    tested.owned = true;
    tested.notices.zerocopy = options.zerocopy;
    tested.start_manager(now);
    let number = returned(call)?;
    let accepted = Socket {
        role: Role::Connection(index),
        options,
        nonblocking,
        multipath,
    };
    world.files.insert(number, File::Socket(Box::new(accepted)));
    Ok(Answer::Value(number))
}

/// `connect(3, ..., ...)`.
pub fn connect(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    let now = world.now;
    let config = world.config_of(number(call, 0)?);
    let socket = find(world, call)?;
    let (nonblocking, role) = (socket.nonblocking, &socket.role);
    let index = match role {
        Role::Listening(_) | Role::Deferred => return Ok(Answer::Error("EISCONN")),
        Role::Connection(index) => *index,
        Role::Fresh => {
            let opening = if socket.options.fast_open_connect {
                fast_open::opening(world, &config)
            } else {
                Opening::default()
            };
            let multipath = find(world, call)?.multipath;
            let tested = if multipath {
                world.open_multipath(&config)
            } else {
                TestedConnection::open(now, &config, opening)
            };
            if tested.machine.syn_data_capacity() > 0 {
                // A cookie is known: the SYN waits for data.
                find(world, call)?.role = Role::Deferred;
                return Ok(Answer::Value(0));
            }
            let zerocopy = find(world, call)?.options.zerocopy;
            let index = world.begin(tested);
            world.connections[index].notices.zerocopy = zerocopy;
            find(world, call)?.role = Role::Connection(index);
            attempt.progress = 1;
            if nonblocking {
                return Ok(Answer::Error("EINPROGRESS"));
            }
            index
        }
    };
    let tested = &mut world.connections[index];
    if let Some(error) = tested.error.take() {
        return Ok(Answer::Error(error));
    }
    if tested.connected {
        let first = !std::mem::replace(&mut tested.owned, true);
        return if first {
            Ok(Answer::Value(0))
        } else {
            Err(CallError::Errno("EISCONN"))
        };
    }
    if tested.gone {
        return Ok(Answer::Error("ECONNABORTED"));
    }
    let waits = attempt.progress == 1 || !nonblocking;
    blocked(waits, "EALREADY")
}

/// `close(4)`.
pub fn close(world: &mut World, call: &Call) -> CallResult {
    let now = world.now;
    let number = number(call, 0)?;
    let Some(file) = world.files.remove(&number) else {
        return Ok(Answer::Error("EBADF"));
    };
    for other in world.files.values_mut() {
        if let File::Epoll(watches) = other {
            watches.retain(|watch| watch.number != number);
        }
    }
    let File::Socket(socket) = file else {
        return Ok(Answer::Value(0));
    };
    match socket.role {
        Role::Fresh | Role::Deferred => {}
        Role::Listening(backlog) => {
            for index in backlog {
                abort(world, index);
            }
        }
        Role::Connection(index) if socket.options.linger == Some(0) => abort(world, index),
        Role::Connection(index) => {
            let tested = &mut world.connections[index];
            tested.write_shut = true;
            if !tested.gone {
                tested.machine.close(now);
                tested.collect(now);
            }
        }
    }
    Ok(Answer::Value(0))
}

fn abort(world: &mut World, index: usize) {
    let now = world.now;
    let tested = &mut world.connections[index];
    if !tested.gone {
        tested.machine.abort(now);
        tested.collect(now);
        tested.error = None;
    }
}

/// `shutdown(4, SHUT_WR)`.
pub fn shutdown(world: &mut World, call: &Call) -> CallResult {
    let now = world.now;
    let how = symbol(call, 1)?.to_owned();
    let direction = flags(call, 1)?;
    let (tested, _) = connection(world, call)?;
    if direction > 2 {
        return unsupported(format!("shutdown({how})"));
    }
    if !tested.gone && !tested.connected {
        // A handshake in progress is given up, without an error (`inet_shutdown`).
        tested.write_shut = true;
        tested.machine.abort(now);
        tested.collect(now);
        tested.error = None;
        return Ok(Answer::Value(0));
    }
    if tested.gone {
        return Ok(Answer::Error("ENOTCONN"));
    }
    tested.read_shut |= direction != 1;
    if direction != 0 && !std::mem::replace(&mut tested.write_shut, true) {
        tested.machine.finish(now);
        tested.collect(now);
    }
    Ok(Answer::Value(0))
}
