//! Calls on any file: fcntl, ioctl, open.

use super::{Answer, CallResult, Stop, argument, connection, flags, number, returned, socket, symbol};
use crate::language::{Call, Expression};
use crate::run::sockets::File;
use crate::run::symbols::{self, O_NONBLOCK};
use crate::run::world::World;

/// `fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK)`.
pub fn fcntl(world: &mut World, call: &Call) -> CallResult {
    let command = symbol(call, 1)?.to_owned();
    let wanted = flags(call, 2)?;
    let socket = match socket(world, call) {
        Ok(socket) => socket,
        Err(answer) => return Ok(answer),
    };
    match command.as_str() {
        "F_GETFL" => Ok(Answer::Value(
            2 | if socket.nonblocking { O_NONBLOCK as i64 } else { 0 },
        )),
        "F_SETFL" => {
            socket.nonblocking = wanted & O_NONBLOCK != 0;
            Ok(Answer::Value(0))
        }
        _ => Err(Stop::Unsupported(format!("fcntl({command})"))),
    }
}

/// `ioctl(4, SIOCINQ, [1000])`: compares the value in brackets.
pub fn ioctl(world: &mut World, call: &Call) -> CallResult {
    let request = symbol(call, 1)?.to_owned();
    let tested = match connection(world, call) {
        Ok((tested, _)) => tested,
        Err(answer) => return Ok(answer),
    };
    let actual = match request.as_str() {
        // A FIN behind the data does not count.
        "SIOCINQ" | "FIONREAD" => tested.machine.readable(),
        _ => return Err(Stop::Unsupported(format!("ioctl({request})"))),
    };
    let expected = argument(call, 2)?;
    if expected == &Expression::Ellipsis {
        return Ok(Answer::Value(0));
    }
    let figure = symbols::number(expected).map_err(Stop::Unsupported)?;
    if figure != actual as i64 {
        return Err(Stop::Mismatch {
            expected: format!("{request} [{figure}]"),
            seen: format!("[{actual}]"),
        });
    }
    Ok(Answer::Value(0))
}

/// `open("/some/file", O_RDONLY)`: opens a file with sufficient contents.
pub fn open(world: &mut World, call: &Call) -> CallResult {
    let number = returned(call)?;
    world.files.insert(number, File::Plain);
    Ok(Answer::Value(number))
}

/// Returns the number of a file; `None` if it is not open.
pub fn opened(world: &World, call: &Call, index: usize) -> Result<Option<i64>, Stop> {
    let number = number(call, index)?;
    Ok(world.files.contains_key(&number).then_some(number))
}
