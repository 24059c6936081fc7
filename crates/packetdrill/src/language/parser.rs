//! Parses tokens into a script: options, times and the order of events.

use foundation::Duration;

use super::lexer::{PlacedToken, Token, tokens};
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

/// A position in the tokens.
pub struct Cursor {
    tokens: Vec<PlacedToken>,
    at: usize,
}

impl Cursor {
    fn new(tokens: Vec<PlacedToken>) -> Self {
        Self { tokens, at: 0 }
    }

    /// Substitutes the values of `--define=NAME=value` for the names, from here on.
    fn define(&mut self, options: &[(String, Option<String>, u32)]) {
        for (name, value, _) in options {
            let Some((symbol, value)) = value.as_ref().and_then(|value| value.split_once('=')) else {
                continue;
            };
            if name != "define" {
                continue;
            }
            let Ok(replacement) = tokens(value) else { continue };
            let [replacement] = replacement.as_slice() else {
                continue;
            };
            for placed in &mut self.tokens[self.at..] {
                if placed.token == Token::Identifier(symbol.to_owned()) {
                    placed.token = replacement.token.clone();
                }
            }
        }
    }

    /// Returns the current token.
    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    /// Returns the token after the current one.
    pub fn peek_second(&self) -> Option<&Token> {
        self.tokens.get(self.at + 1).map(|placed| &placed.token)
    }

    /// Whether the current token follows the previous one without a space.
    pub fn joined(&self) -> bool {
        self.tokens.get(self.at).is_some_and(|placed| placed.joined)
    }

    /// Takes the current token.
    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += usize::from(token.is_some());
        token
    }

    /// Returns the line of the current token; at the end, of the last one.
    pub fn line(&self) -> u32 {
        let placed = self.tokens.get(self.at).or(self.tokens.last());
        placed.map_or(1, |placed| placed.line)
    }

    /// Returns the line of the token taken last.
    pub fn last_line(&self) -> u32 {
        let placed = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        placed.map_or(1, |placed| placed.line)
    }

    /// Takes `mark` if it is the current token.
    pub fn eat(&mut self, mark: char) -> bool {
        let here = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(here);
        here
    }

    /// Takes the identifier `name` if it is the current token.
    pub fn eat_identifier(&mut self, name: &str) -> bool {
        let here = matches!(self.peek(), Some(Token::Identifier(found)) if found == name);
        self.at += usize::from(here);
        here
    }

    /// Takes `mark`; an error if it is not the current token.
    pub fn expect(&mut self, mark: char) -> Result<(), ParseError> {
        if self.eat(mark) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{mark}`")))
        }
    }

    /// Takes a whole number of at most `limit`.
    pub fn integer(&mut self, what: &str, limit: u64) -> Result<u64, ParseError> {
        let (Some(Token::Integer(value)) | Some(Token::Hex(value))) = self.peek() else {
            return Err(self.expected(what));
        };
        match u64::try_from(*value) {
            Ok(value) if value <= limit => {
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.syntax(format!("{what} must be 0 to {limit}, not {value}"))),
        }
    }

    /// Takes an identifier.
    pub fn identifier(&mut self, what: &str) -> Result<String, ParseError> {
        match self.peek() {
            Some(Token::Identifier(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a number of seconds, truncated to whole microseconds like packetdrill's.
    pub fn time(&mut self, what: &str) -> Result<Duration, ParseError> {
        let seconds = match self.peek() {
            Some(Token::Float(text)) => text.parse::<f64>().ok(),
            Some(Token::Integer(value)) => Some(*value as f64),
            _ => None,
        };
        let Some(seconds) = seconds else {
            return Err(self.expected(what));
        };
        if !(0.0..=1e9).contains(&seconds) {
            return Err(self.syntax(format!("{what} cannot be {seconds}")));
        }
        self.at += 1;
        Ok(Duration::from_micros((seconds * 1e6).round() as u64))
    }

    /// Returns the error of an unexpected token.
    pub fn expected(&self, what: &str) -> ParseError {
        let found = self
            .peek()
            .map_or("the end of the script".to_owned(), ToString::to_string);
        self.syntax(format!("expected {what}, found {found}"))
    }

    /// Returns a syntax error at the current token.
    pub fn syntax(&self, message: String) -> ParseError {
        ParseError::Syntax {
            line: self.line(),
            message,
        }
    }

    /// Returns the error of an unsupported construct at the current token.
    pub fn unsupported(&self, what: impl Into<String>) -> ParseError {
        ParseError::Unsupported {
            line: self.line(),
            what: what.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Direction, Expression, Payload, TcpFlags};
    use super::*;

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
        assert_eq!(tcp.flags, TcpFlags::SYN | TcpFlags::ECE | TcpFlags::ACK);
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
