//! System calls on virtual time.

mod files;
mod opening;
mod options;
mod polling;
mod transfer;

use foundation::Instant;

use super::link::Link;
use super::sockets::{File, Role, Socket};
use super::symbols;
use super::world::World;
use crate::language::{Call, Expression};

/// What a call gives for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It returned this.
    Value(i64),
    /// It returned -1 and set this error.
    Error(&'static str),
    /// It waits; until then at the latest, where a time is given.
    Blocks(Option<Instant>),
}

/// Why a script cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It needs what this program does not know.
    Unsupported(String),
    /// The machine did something else.
    Departs {
        /// What the script says.
        expected: String,
        /// What happened.
        seen: String,
    },
}

/// A call that may need several attempts.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// When it began.
    pub started: Instant,
    /// Bytes moved so far, or 1 once a connection attempt has begun.
    pub progress: u64,
}

/// The result of a handler.
pub type Handled = Result<Answer, Stop>;

/// Tries to get on with a call.
pub fn attempt(world: &mut World, call: &Call, attempt: &mut Attempt) -> Handled {
    match call.name.as_str() {
        "socket" => opening::socket(world, call),
        "bind" => opening::bind(world, call),
        "listen" => opening::listen(world, call),
        "accept" | "accept4" => opening::accept(world, call),
        "connect" => opening::connect(world, call, attempt),
        "close" => opening::close(world, call),
        "shutdown" => opening::shutdown(world, call),
        "read" | "recv" | "recvfrom" | "readv" | "recvmsg" => transfer::receive(world, call),
        "write" | "send" | "sendto" | "writev" | "sendmsg" => transfer::send(world, call, attempt),
        "sendfile" => transfer::send_file(world, call, attempt),
        "setsockopt" => options::set(world, call),
        "getsockopt" => options::get(world, call),
        "fcntl" => files::fcntl(world, call),
        "ioctl" => files::ioctl(world, call),
        "open" => files::open(world, call),
        "poll" => polling::poll(world, call, attempt),
        "epoll_create" | "epoll_create1" => polling::create(world, call),
        "epoll_ctl" => polling::control(world, call),
        "epoll_wait" => polling::wait(world, call, attempt),
        other => Err(Stop::Unsupported(format!("the system call {other}()"))),
    }
}

/// Argument `index` of a call.
fn argument(call: &Call, index: usize) -> Result<&Expression, Stop> {
    let missing = || Stop::Unsupported(format!("{}() with {} arguments", call.name, call.arguments.len()));
    call.arguments.get(index).ok_or_else(missing)
}

/// Argument `index` as a number.
fn number(call: &Call, index: usize) -> Result<i64, Stop> {
    symbols::number(argument(call, index)?).map_err(Stop::Unsupported)
}

/// Argument `index` as flags; absent ones and `...` are none.
fn flags(call: &Call, index: usize) -> Result<u64, Stop> {
    match call.arguments.get(index) {
        None | Some(Expression::Ellipsis) => Ok(0),
        Some(value) => symbols::number(value)
            .map(|value| value as u64)
            .map_err(Stop::Unsupported),
    }
}

/// Argument `index` as a word.
fn word(call: &Call, index: usize) -> Result<&str, Stop> {
    match argument(call, index)? {
        Expression::Word(word) => Ok(word),
        other => Err(Stop::Unsupported(format!("{}() with {other}", call.name))),
    }
}

/// The number of the file that a call returns, as the script calls it.
fn returned(call: &Call) -> Result<i64, Stop> {
    match symbols::number(&call.result) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(Stop::Unsupported(format!(
            "{}() that is to fail with {}",
            call.name, call.result
        ))),
    }
}

/// The socket that argument 0 names.
fn socket<'a>(world: &'a mut World, call: &Call) -> Result<&'a mut Socket, Answer> {
    let number = number(call, 0).unwrap_or(-1);
    match world.files.get_mut(&number) {
        Some(File::Socket(socket)) => Ok(socket),
        Some(_) => Err(Answer::Error("ENOTSOCK")),
        None => Err(Answer::Error("EBADF")),
    }
}

/// The connection of the socket that argument 0 names, and whether the socket never blocks.
fn connection<'a>(world: &'a mut World, call: &Call) -> Result<(&'a mut Link, bool), Answer> {
    let socket = socket(world, call)?;
    let nonblocking = socket.nonblocking;
    match socket.role {
        Role::Connection(index) => Ok((&mut world.links[index], nonblocking)),
        _ => Err(Answer::Error("ENOTCONN")),
    }
}
