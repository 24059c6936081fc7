//! System calls on virtual time.

mod control;
mod fast_open;
mod files;
mod lifetime;
mod options;
mod polling;
mod transfer;

use foundation::Instant;

use super::sockets::{File, Role, Socket};
use super::symbols;
use super::tested::TestedConnection;
use super::world::World;
use crate::language::{Call, Expression};

/// The current result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call returned this value.
    Value(i64),
    /// The call returned -1 with this error.
    Error(&'static str),
    /// The call blocks, at most until the given time.
    Blocks(Option<Instant>),
}

/// Why a script stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The script uses an unsupported feature.
    Unsupported(String),
    /// The behaviour differs from the script.
    Mismatch {
        /// The script's text.
        expected: String,
        /// The observed behaviour.
        seen: String,
    },
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Unsupported(what)
    }
}

/// Why a handler has no answer.
enum CallError {
    /// The call fails with this error.
    Errno(&'static str),
    /// The script stops.
    Stop(Stop),
}

impl<T: Into<Stop>> From<T> for CallError {
    fn from(stop: T) -> Self {
        Self::Stop(stop.into())
    }
}

/// Returns the error of a difference from the script.
pub fn mismatch<T, E: From<Stop>>(expected: impl Into<String>, seen: impl Into<String>) -> Result<T, E> {
    let (expected, seen) = (expected.into(), seen.into());
    Err(Stop::Mismatch { expected, seen }.into())
}

/// Returns the error of something that is not supported.
fn unsupported<T>(what: impl Into<String>) -> Result<T, CallError> {
    Err(what.into().into())
}

/// A call that may need several attempts.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// When it started.
    pub started: Instant,
    /// Bytes moved so far, or 1 once a connection attempt has started.
    pub progress: u64,
    /// Whether this call opened the connection with Fast Open.
    pub opened: bool,
}

/// The result of a handler.
type CallResult = Result<Answer, CallError>;

/// Runs or retries a call.
pub fn attempt(world: &mut World, call: &Call, attempt: &mut Attempt) -> Result<Answer, Stop> {
    match handle(world, call, attempt) {
        Ok(answer) => Ok(answer),
        Err(CallError::Errno(error)) => Ok(Answer::Error(error)),
        Err(CallError::Stop(stop)) => Err(stop),
    }
}

fn handle(world: &mut World, call: &Call, attempt: &mut Attempt) -> CallResult {
    match call.name.as_str() {
        "socket" => lifetime::socket(world, call),
        "bind" => lifetime::bind(world, call),
        "listen" => lifetime::listen(world, call),
        "accept" | "accept4" => lifetime::accept(world, call),
        "connect" => lifetime::connect(world, call, attempt),
        "close" => lifetime::close(world, call),
        "shutdown" => lifetime::shutdown(world, call),
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
        other => unsupported(format!("the system call {other}()")),
    }
}

/// Returns the answer of a call that cannot complete now: it waits, or fails with `error`.
fn blocked(waits: bool, error: &'static str) -> CallResult {
    if waits {
        Ok(Answer::Blocks(None))
    } else {
        Err(CallError::Errno(error))
    }
}

/// Returns argument `index` of a call.
fn argument(call: &Call, index: usize) -> Result<&Expression, CallError> {
    let missing = || format!("{}() with {} arguments", call.name, call.arguments.len());
    Ok(call.arguments.get(index).ok_or_else(missing)?)
}

/// Returns argument `index` as a number.
fn number(call: &Call, index: usize) -> Result<i64, CallError> {
    Ok(symbols::number(argument(call, index)?)?)
}

/// Returns argument `index` as flags; a missing argument and `...` count as none.
fn flags(call: &Call, index: usize) -> Result<u64, CallError> {
    match call.arguments.get(index) {
        None | Some(Expression::Ellipsis) => Ok(0),
        Some(value) => Ok(symbols::number(value)? as u64),
    }
}

/// Returns argument `index` as a symbol.
fn symbol(call: &Call, index: usize) -> Result<&str, CallError> {
    match argument(call, index)? {
        Expression::Symbol(name) => Ok(name),
        other => unsupported(format!("{}() with {other}", call.name)),
    }
}

/// Returns the file number that a call returns in the script's numbering.
fn returned(call: &Call) -> Result<i64, CallError> {
    match symbols::number(&call.result) {
        Ok(number) if number >= 0 => Ok(number),
        _ => unsupported(format!("{}() that is to fail with {}", call.name, call.result)),
    }
}

/// Returns the socket in argument 0.
fn socket<'a>(world: &'a mut World, call: &Call) -> Result<&'a mut Socket, CallError> {
    let number = number(call, 0).unwrap_or(-1);
    match world.files.get_mut(&number) {
        Some(File::Socket(socket)) => Ok(socket),
        Some(_) => Err(CallError::Errno("ENOTSOCK")),
        None => Err(CallError::Errno("EBADF")),
    }
}

/// Returns the connection of the socket in argument 0, and whether the socket is nonblocking.
fn connection<'a>(world: &'a mut World, call: &Call) -> Result<(&'a mut TestedConnection, bool), CallError> {
    let socket = socket(world, call)?;
    let nonblocking = socket.nonblocking;
    match socket.role {
        Role::Connection(index) => Ok((&mut world.connections[index], nonblocking)),
        _ => Err(CallError::Errno("ENOTCONN")),
    }
}
