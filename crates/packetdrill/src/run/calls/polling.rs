//! Waiting for files: poll and epoll.

use foundation::{Duration, Instant};

use super::{
    Answer, Attempt, CallError, CallResult, argument, files, mismatch, number, returned, symbol, unsupported,
};
use crate::language::{Call, Expression};
use crate::run::sockets::{File, Role, Watch};
use crate::run::symbols::{self, EDGE, ERR, HUP, IN, ONESHOT, OUT, RDHUP, poll_flags};
use crate::run::world::World;

/// Returns the events that are ready on a file.
fn readiness(world: &World, number: i64) -> u64 {
    let Some(File::Socket(socket)) = world.files.get(&number) else {
        return 0;
    };
    match &socket.role {
        Role::Fresh => OUT | HUP,
        Role::Deferred => OUT,
        Role::Listening(backlog) => {
            let ready = backlog.iter().any(|index| world.connections[*index].connected);
            if ready { IN } else { 0 }
        }
        Role::Connection(index) => {
            let tested = &world.connections[*index];
            let ended = tested.peer_finished || tested.read_shut || tested.gone;
            let both = tested.gone || (ended && tested.write_shut);
            let mut ready = 0;
            for (holds, flag) in [
                (tested.machine.readable() > 0 || ended, IN),
                (
                    both || tested.write_shut || (tested.connected && tested.machine.writable() > 0),
                    OUT,
                ),
                (tested.error.is_some() || !tested.notices.is_empty(), ERR),
                (both, HUP),
                (ended, RDHUP),
            ] {
                if holds {
                    ready |= flag;
                }
            }
            ready
        }
    }
}

/// Returns when a wait of `timeout` milliseconds ends; `None` for an unlimited wait.
fn deadline(attempt: &Attempt, timeout: i64) -> Option<Instant> {
    u64::try_from(timeout)
        .ok()
        .map(|ms| attempt.started + Duration::from_millis(ms))
}

/// Keeps waiting, or returns 0 after the timeout.
fn nothing(world: &World, attempt: &Attempt, timeout: i64) -> Answer {
    let until = deadline(attempt, timeout);
    if until.is_some_and(|until| world.now >= until) {
        Answer::Value(0)
    } else {
        Answer::Blocks(until)
    }
}

fn field(record: &Expression, name: &str) -> Result<Option<i64>, CallError> {
    Ok(record.field(name).map(symbols::number).transpose()?)
}

/// `poll([{fd=4, events=POLLOUT, revents=POLLOUT}], 1, 0)`.
pub fn poll(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    let Expression::List(items) = argument(call, 0)? else {
        return unsupported("poll() without a list");
    };
    let mut found = Vec::new();
    for item in items {
        let file = field(item, "fd")?.unwrap_or(-1);
        let events = field(item, "events")?.unwrap_or(0) as u64;
        found.push(readiness(world, file) & (events | ERR | HUP));
    }
    let count = found.iter().filter(|ready| **ready != 0).count();
    if count == 0 {
        let answer = nothing(world, attempt, number(call, 2)?);
        if let Answer::Blocks(_) = answer {
            return Ok(answer);
        }
    }
    for (item, ready) in items.iter().zip(&found) {
        let wanted = field(item, "revents")?.unwrap_or(0) as u64;
        if wanted != *ready {
            return differs(wanted, *ready);
        }
    }
    Ok(Answer::Value(count as i64))
}

fn differs(wanted: u64, ready: u64) -> CallResult {
    mismatch(format!("the events {}", poll_flags(wanted)), poll_flags(ready))
}

/// `epoll_create(1)`.
pub fn create(world: &mut World, call: &Call) -> CallResult {
    let number = returned(call)?;
    world.files.insert(number, File::Epoll(Vec::new()));
    Ok(Answer::Value(number))
}

/// `epoll_ctl(5, EPOLL_CTL_ADD, 4, {events=EPOLLIN, fd=4})`.
pub fn control(world: &mut World, call: &Call) -> CallResult {
    let action = symbol(call, 1)?.to_owned();
    let Some(target) = files::opened(world, call, 2)? else {
        return Ok(Answer::Error("EBADF"));
    };
    let watch = match call.arguments.get(3) {
        Some(event @ Expression::Structure(_)) => Watch {
            number: target,
            events: field(event, "events")?.unwrap_or(0) as u64,
            name: identity(event),
            reported: None,
            spent: false,
        },
        _ => Watch {
            number: target,
            events: 0,
            name: String::new(),
            reported: None,
            spent: false,
        },
    };
    let Some(File::Epoll(watches)) = world.files.get_mut(&number(call, 0)?) else {
        return Ok(Answer::Error("EBADF"));
    };
    let place = watches.iter().position(|watch| watch.number == target);
    Ok(match (action.as_str(), place) {
        ("EPOLL_CTL_ADD", None) => {
            watches.push(watch);
            Answer::Value(0)
        }
        ("EPOLL_CTL_ADD", Some(_)) => Answer::Error("EEXIST"),
        ("EPOLL_CTL_MOD", Some(place)) => {
            watches[place] = watch;
            Answer::Value(0)
        }
        ("EPOLL_CTL_DEL", Some(place)) => {
            watches.remove(place);
            Answer::Value(0)
        }
        (_, None) => Answer::Error("ENOENT"),
        _ => return unsupported(format!("epoll_ctl({action})")),
    })
}

/// Returns the identity of a file in reports: `fd=4`, `ptr=0x7`.
fn identity(event: &Expression) -> String {
    let names = ["fd", "ptr", "u32", "u64"];
    let found = names
        .into_iter()
        .find_map(|name| Some(format!("{name}={}", event.field(name)?)));
    found.unwrap_or_default()
}

/// `epoll_wait(5, {events=EPOLLIN, fd=4}, 1, 0)`.
pub fn wait(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    let epoll = number(call, 0)?;
    let most = number(call, 2)?;
    let Some(File::Epoll(watches)) = world.files.get(&epoll) else {
        return Ok(Answer::Error("EBADF"));
    };
    let mut watches = watches.clone();
    let mut found = Vec::new();
    for watch in &mut watches {
        let ready = readiness(world, watch.number) & (watch.events | ERR | HUP);
        let counts = counts(world, watch.number);
        let state = (ready, counts.0, counts.1);
        let unchanged = watch.events & EDGE != 0 && watch.reported.is_some_and(|last| !news(last, state));
        if ready == 0 || unchanged || watch.spent || found.len() as i64 >= most {
            continue;
        }
        watch.reported = Some(state);
        watch.spent = watch.events & ONESHOT != 0;
        found.push((ready, watch.name.clone()));
    }
    if found.is_empty() {
        let answer = nothing(world, attempt, number(call, 3)?);
        if let Answer::Blocks(_) = answer {
            return Ok(answer);
        }
    }
    world.files.insert(epoll, File::Epoll(watches));
    let expected = argument(call, 1)?;
    let expected = match expected {
        Expression::List(items) => items.as_slice(),
        single => std::slice::from_ref(single),
    };
    for (item, (ready, name)) in expected.iter().zip(&found) {
        let wanted = field(item, "events")?.unwrap_or(0) as u64;
        if wanted != *ready {
            return differs(wanted, *ready);
        }
        let wanted = identity(item);
        if wanted != *name {
            return mismatch(format!("an event of {wanted}"), name);
        }
    }
    Ok(Answer::Value(found.len() as i64))
}

/// Returns the numbers of arrivals and of send-buffer openings, whose increments are edges.
fn counts(world: &World, number: i64) -> (u64, u64) {
    match world.files.get(&number) {
        Some(File::Socket(socket)) => match &socket.role {
            Role::Connection(index) => (
                world.connections[*index].arrivals,
                world.connections[*index].openings,
            ),
            Role::Listening(backlog) => (backlog.len() as u64, 0),
            Role::Fresh | Role::Deferred => (0, 0),
        },
        _ => (0, 0),
    }
}

/// Whether an edge occurred since the last report.
fn news(last: (u64, u64, u64), now: (u64, u64, u64)) -> bool {
    now.1 != last.1 || now.2 != last.2 || now.0 & !last.0 & !(IN | OUT) != 0
}
