//! Parses tokens into a script: options, times and the order of events.

use super::cursor::Cursor;
use super::lexer::{Token, tokens};
use super::script::{Action, Event, Script, Time};
use super::{ParseError, call, options, packet};

/// Parses a script.
///
/// # Errors
/// The first violation of the grammar, or the first unsupported construct.
pub fn parse(text: &str) -> Result<Script, ParseError> {
    let mut cursor = Cursor::new(tokens(text)?);
    let options = options::options(&mut cursor)?;
    cursor.define(&options);
    let setup = command(&mut cursor);
    let mut script = Script {
        options,
        setup,
        events: Vec::new(),
        cleanup: None,
    };
    while cursor.peek().is_some() {
        if let Some(cleanup) = command(&mut cursor) {
            script.cleanup = Some(cleanup);
            if cursor.peek().is_some() {
                return Err(cursor.expected("the end of the script after a command without a time"));
            }
            break;
        }
        script.events.push(event(&mut cursor)?);
    }
    Ok(script)
}

fn command(cursor: &mut Cursor) -> Option<(String, u32)> {
    let line = cursor.line();
    match cursor.peek() {
        Some(Token::Command(text)) => {
            let text = text.clone();
            cursor.next();
            Some((text, line))
        }
        _ => None,
    }
}

fn event(cursor: &mut Cursor) -> Result<Event, ParseError> {
    let time = event_time(cursor)?;
    let line = cursor.last_line();
    let action = match cursor.peek() {
        Some(Token::Mark('<' | '>')) => Action::Packet(Box::new(packet::packet(cursor)?)),
        Some(Token::Ellipsis | Token::Identifier(_)) => Action::Call(call::call(cursor)?),
        Some(Token::Command(text)) => {
            let action = Action::Command(text.clone());
            cursor.next();
            action
        }
        Some(Token::Code(text)) => {
            let action = Action::Code(text.clone());
            cursor.next();
            action
        }
        _ => return Err(cursor.expected("a packet (`<` or `>`), a system call, a command or a code snippet")),
    };
    let outbound = matches!(&action, Action::Packet(packet) if packet.outbound());
    let ranged = matches!(
        time,
        Time::Any | Time::AbsoluteRange(..) | Time::RelativeRange(..)
    );
    if ranged && !outbound {
        let message = "`*` and ranges of times are for outbound packets only".to_owned();
        return Err(ParseError::Syntax { line, message });
    }
    if let Time::AbsoluteRange(from, to) | Time::RelativeRange(from, to) = time
        && to < from
    {
        let message = "the range of times runs backwards".to_owned();
        return Err(ParseError::Syntax { line, message });
    }
    Ok(Event { line, time, action })
}

fn event_time(cursor: &mut Cursor) -> Result<Time, ParseError> {
    if cursor.eat('*') {
        return Ok(Time::Any);
    }
    let relative = cursor.eat('+');
    let from = cursor.time("the time of an event")?;
    if !cursor.eat('~') {
        return Ok(if relative {
            Time::Relative(from)
        } else {
            Time::Absolute(from)
        });
    }
    if relative {
        cursor.expect('+')?;
    }
    let to = cursor.time("the end of a range of times")?;
    Ok(if relative {
        Time::RelativeRange(from, to)
    } else {
        Time::AbsoluteRange(from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, Expression, Payload};
    use super::*;
    use foundation::Duration;
    use transport::tcp::Flags;

    fn one(text: &str) -> Event {
        let script = parse(text).unwrap();
        assert_eq!(script.events.len(), 1, "{text}");
        script.events.into_iter().next().unwrap()
    }

    #[test]
    fn every_kind_of_time() {
        let ms = Duration::from_millis;
        assert_eq!(one("0.1 `x`").time, Time::Absolute(ms(100)));
        assert_eq!(one("+.1 `x`").time, Time::Relative(ms(100)));
        assert_eq!(one("* > . 1:1(0)").time, Time::Any);
        assert_eq!(
            one("0.1~0.2 > . 1:1(0)").time,
            Time::AbsoluteRange(ms(100), ms(200))
        );
        assert_eq!(
            one("+.1~+.2 > . 1:1(0)").time,
            Time::RelativeRange(ms(100), ms(200))
        );
        assert!(parse("0.2~0.1 > . 1:1(0)").is_err());
        assert!(parse("* < . 1:1(0) win 1").is_err());
        assert!(parse("-1 `x`").is_err());
    }

    #[test]
    fn options_commands_and_their_places() {
        let script = parse("--tolerance_usecs=7000\n--v\n`setup`\n+0 `run`\n`cleanup`").unwrap();
        assert_eq!(
            script.options[0],
            ("tolerance_usecs".into(), Some("7000".into()), 1)
        );
        assert_eq!(script.options[1].1, None);
        assert_eq!(script.setup, Some(("setup".into(), 3)));
        assert_eq!(script.events[0].action, Action::Command("run".into()));
        assert_eq!(script.cleanup, Some(("cleanup".into(), 5)));
        assert!(parse("`setup` `again` +0 `x`").is_err());
    }

    #[test]
    fn defined_symbols_are_replaced() {
        let event = one("--define=PORT=8080\n+0 bind(3, PORT, ...) = 0");
        let Action::Call(call) = event.action else {
            panic!()
        };
        assert_eq!(call.arguments[1], Expression::Integer(8080));
    }

    #[test]
    fn packets_with_flags_ranges_and_options() {
        let event = one("+0 > [ect0] SE. 0:0(0) ack 1 win 5 <mss 1460,nop,wscale 8,sackOK>");
        let Action::Packet(packet) = event.action else {
            panic!()
        };
        assert_eq!(packet.direction, Direction::Outbound);
        let Payload::Tcp(tcp) = packet.payload else {
            panic!()
        };
        assert_eq!(tcp.flags, Flags::SYN | Flags::ECE | Flags::ACK);
        assert_eq!((tcp.acknowledgement, tcp.window), (Some(1), Some(5)));
        assert_eq!(tcp.options.unwrap().len(), 4);
    }

    #[test]
    fn syntax_errors_name_their_line() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            message("\n+0 > P. 1:10(8) ack 1").starts_with("line 2: "),
            "{}",
            message("\n+0 > P. 1:10(8)")
        );
        assert!(message("+0 < . 1:1(0) ack 1").contains("win"));
        assert!(message("+0 > Q. 1:1(0)").contains('Q'));
        assert!(message("+0 > ipv4 1.2.3.4 > 5.6.7.8: . 1:1(0)").contains("unsupported"));
        assert!(message("+0 read(3, ...) 5").contains("`=`"));
    }
}
