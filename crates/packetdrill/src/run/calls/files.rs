//! Calls on any file: fcntl, ioctl, open.

use super::{
    Answer, CallError, CallResult, argument, connection, flags, mismatch, number, returned, socket, symbol,
    unsupported,
};
use crate::language::{Call, Expression};
use crate::run::sockets::File;
use crate::run::symbols::{self, O_NONBLOCK};
use crate::run::world::World;

/// `fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK)`.
pub fn fcntl(world: &mut World, call: &Call) -> CallResult {
    let command = symbol(call, 1)?.to_owned();
    let wanted = flags(call, 2)?;
    let socket = socket(world, call)?;
    match command.as_str() {
        "F_GETFL" => Ok(Answer::Value(
            2 | if socket.nonblocking { O_NONBLOCK as i64 } else { 0 },
        )),
        "F_SETFL" => {
            socket.nonblocking = wanted & O_NONBLOCK != 0;
            Ok(Answer::Value(0))
        }
        _ => unsupported(format!("fcntl({command})")),
    }
}

/// `ioctl(4, SIOCINQ, [1000])`: compares the value in brackets.
pub fn ioctl(world: &mut World, call: &Call) -> CallResult {
    let request = symbol(call, 1)?.to_owned();
    let (tested, _) = connection(world, call)?;
    let actual = match request.as_str() {
        // A FIN behind the data does not count.
        "SIOCINQ" | "FIONREAD" => tested.machine.readable(),
        _ => return unsupported(format!("ioctl({request})")),
    };
    let expected = argument(call, 2)?;
    if expected == &Expression::Ellipsis {
        return Ok(Answer::Value(0));
    }
    let figure = symbols::number(expected)?;
    if figure != actual as i64 {
        return mismatch(format!("{request} [{figure}]"), format!("[{actual}]"));
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
pub fn opened(world: &World, call: &Call, index: usize) -> Result<Option<i64>, CallError> {
    let number = number(call, index)?;
    Ok(world.files.contains_key(&number).then_some(number))
}
