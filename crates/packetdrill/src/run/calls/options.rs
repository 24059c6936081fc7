//! Socket options.

use foundation::Duration;

use super::{Answer, CallError, CallResult, argument, fast_open, mismatch, socket, symbol, unsupported};
use crate::language::{Call, Expression};
use crate::run::fast_open::FastOpenSettings;
use crate::run::settings::controller;
use crate::run::sockets::{Role, SocketOptions};
use crate::run::symbols;
use crate::run::world::World;

/// Options without an effect on the machine: addresses, routes, marks and priorities.
const WITHOUT_EFFECT: [&str; 9] = [
    "SO_REUSEADDR",
    "SO_REUSEPORT",
    "SO_PRIORITY",
    "SO_MARK",
    "SO_BINDTODEVICE",
    "SO_DONTROUTE",
    "IP_MTU_DISCOVER",
    "IP_TTL",
    "TCP_QUICKACK",
];

fn level_known(level: &str) -> bool {
    ["SOL_SOCKET", "SOL_TCP", "IPPROTO_TCP", "SOL_IP", "IPPROTO_IP"].contains(&level)
}

/// `setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4)`.
pub fn set(world: &mut World, call: &Call) -> CallResult {
    let (level, name) = (symbol(call, 1)?.to_owned(), symbol(call, 2)?.to_owned());
    let unknown = || CallError::from(format!("the socket option {name}"));
    if !level_known(&level) {
        return Err(unknown());
    }
    let value = argument(call, 3)?;
    let now = world.now;
    let has_client = world.settings.fast_open.has_client();
    let socket = socket(world, call)?;
    let connects = matches!(socket.role, Role::Connection(_)) || name.starts_with("TCP_FASTOPEN");
    if socket.multipath && connects && !WITHOUT_EFFECT.contains(&name.as_str()) && name != "SO_LINGER" {
        return unsupported(format!("{name} on a connection of multipath TCP"));
    }
    let options = &mut socket.options;
    if name == "TCP_CONGESTION" {
        let text = match value {
            Expression::Text(text) => text.clone(),
            other => other.to_string(),
        };
        let unknown = || format!("the congestion controller {text}");
        options.congestion = Some(controller(&text).ok_or_else(unknown)?);
        if !matches!(socket.role, Role::Fresh | Role::Listening(_)) {
            return unsupported("another congestion controller on a connection that lives");
        }
        return Ok(Answer::Value(0));
    }
    if name == "SO_LINGER" {
        return linger(options, value);
    }
    if name == "TCP_FASTOPEN_KEY" {
        return Ok(fast_open::set_key(options, call, value));
    }
    let number = symbols::number(value)?;
    let size = u64::try_from(number).unwrap_or(0);
    let connected = matches!(socket.role, Role::Connection(_));
    match name.as_str() {
        "TCP_NODELAY" => options.no_delay = number != 0,
        "TCP_CORK" => options.cork = number != 0,
        "TCP_MAXSEG" if connected => {
            return unsupported("TCP_MAXSEG on a connection that lives");
        }
        "TCP_MAXSEG" => match u32::try_from(number) {
            Ok(bytes) if (88..=32_767).contains(&bytes) => options.mss = Some(bytes),
            _ => return Ok(Answer::Error("EINVAL")),
        },
        "TCP_USER_TIMEOUT" if number < 0 => return Ok(Answer::Error("EINVAL")),
        "TCP_USER_TIMEOUT" => {
            options.user_timeout = Some(Duration::from_millis(size)).filter(|t| !t.is_zero())
        }
        "TCP_SYNCNT" => options.syn_retries = u32::try_from(number).ok(),
        "SO_KEEPALIVE" if connected && number != 0 => {
            return unsupported("SO_KEEPALIVE on a connection that lives");
        }
        "SO_KEEPALIVE" => options.keep_alive = number != 0,
        "TCP_KEEPIDLE" => options.keep_alive_after = Some(Duration::from_secs(size)),
        "SO_ZEROCOPY" => options.zerocopy = number != 0,
        "TCP_INQ" => options.inquires = number != 0,
        "SO_TIMESTAMPING" => {
            let Role::Connection(index) = socket.role else {
                return unsupported("SO_TIMESTAMPING before the connection is open");
            };
            world.connections[index].notices.request_stamps(size);
            return Ok(Answer::Value(0));
        }
        "TCP_FASTOPEN" if connected || number < 0 => return Ok(Answer::Error("EINVAL")),
        "TCP_FASTOPEN" => options.fast_open_queue = FastOpenSettings::limited(size),
        "TCP_FASTOPEN_CONNECT" if !has_client => return Ok(Answer::Error("EOPNOTSUPP")),
        "TCP_FASTOPEN_CONNECT" if connected => return Ok(Answer::Error("EINVAL")),
        "TCP_FASTOPEN_CONNECT" => options.fast_open_connect = number != 0,
        "SO_SNDBUF" => options.send_buffer = Some(2 * size),
        "SO_RCVBUF" if connected => {
            return unsupported("SO_RCVBUF on a connection that lives");
        }
        "SO_RCVBUF" => options.receive_buffer = Some(size),
        // TCP itself sets the ECN bits of the type of service.
        "IP_TOS" => store(options, &name, number),
        known if WITHOUT_EFFECT.contains(&known) => store(options, &name, number),
        _ => return Err(unknown()),
    }
    let options = options.clone();
    if let Role::Connection(index) = socket.role {
        options.apply(now, &mut world.connections[index]);
    }
    Ok(Answer::Value(0))
}

fn store(options: &mut SocketOptions, name: &str, number: i64) {
    options.others.retain(|(known, _)| known != name);
    options.others.push((name.to_owned(), number));
}

/// `{onoff=1, linger=0}`.
fn linger(options: &mut SocketOptions, value: &Expression) -> CallResult {
    let record = match value {
        Expression::List(items) if items.len() == 1 => &items[0],
        other => other,
    };
    let field = |name| record.field(name).and_then(|value| symbols::number(value).ok());
    let (Some(on), Some(seconds)) = (field("onoff"), field("linger")) else {
        return unsupported(format!("SO_LINGER with {value}"));
    };
    if on != 0 && seconds != 0 {
        return unsupported("SO_LINGER with a time: a close that waits");
    }
    options.linger = (on != 0).then_some(0);
    Ok(Answer::Value(0))
}

/// `getsockopt(4, SOL_TCP, TCP_MAXSEG, [1100], [4])`: compares the value in brackets.
pub fn get(world: &mut World, call: &Call) -> CallResult {
    let (level, name) = (symbol(call, 1)?.to_owned(), symbol(call, 2)?.to_owned());
    let unsupported = || CallError::from(format!("reading the socket option {name}"));
    if !level_known(&level) {
        return Err(unsupported());
    }
    let (default_mss, tcp) = (world.settings.mss(), world.settings.tcp.clone());
    let socket = socket(world, call)?;
    let options = socket.options.clone();
    let index = match socket.role {
        Role::Connection(index) => Some(index),
        _ => None,
    };
    let tested = index.map(|index| &mut world.connections[index]);
    let flag = |set: bool| u64::from(set).to_string();
    let actual = match name.as_str() {
        "SO_ERROR" => tested
            .and_then(|tested| tested.error.take())
            .unwrap_or("0")
            .to_owned(),
        "TCP_MAXSEG" => match tested {
            Some(tested) if tested.connected => match tested.machine.tcp() {
                Some(machine) => machine.info().segment.to_string(),
                None => return Err(unsupported()),
            },
            _ => options.mss.unwrap_or(default_mss).to_string(),
        },
        "TCP_NODELAY" => flag(options.no_delay),
        "TCP_CORK" => flag(options.cork),
        "SO_KEEPALIVE" => flag(options.keep_alive),
        "SO_SNDBUF" => match options.send_buffer {
            Some(bytes) => bytes.to_string(),
            None => return Err(unsupported()),
        },
        "TCP_USER_TIMEOUT" => options
            .user_timeout
            .map_or(0, |time| time.as_nanos() / 1_000_000)
            .to_string(),
        "TCP_CONGESTION" => options
            .congestion
            .as_ref()
            .unwrap_or(tcp.congestion())
            .name()
            .to_owned(),
        _ => match options.others.iter().find(|(known, _)| *known == name) {
            Some((_, number)) => number.to_string(),
            None => return Err(unsupported()),
        },
    };
    let expected = match argument(call, 3)? {
        Expression::Ellipsis => return Ok(Answer::Value(0)),
        Expression::List(items) if items.len() == 1 => items[0].to_string(),
        Expression::Text(text) => text.clone(),
        other => other.to_string(),
    };
    if expected != actual {
        return mismatch(format!("{name} [{expected}]"), format!("[{actual}]"));
    }
    Ok(Answer::Value(0))
}
