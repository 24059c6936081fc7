//! A position in the tokens of a script, with the operations that all parsers share.

use foundation::Duration;

use super::ParseError;
use super::lexer::{PlacedToken, Token, tokens};

/// The symbols that the runners of google/packetdrill and of the kernel's selftests define for IPv4: cookies that Linux issues
/// with the keys of the scripts, and names of error codes and control messages.
const DEFINED: [&str; 5] = [
    "TFO_COOKIE=\"3021b9d889017eeb\"",
    "TFO_COOKIE_ZERO=\"b7c12350a90dc8f5\"",
    "CODE=host_unreachable",
    "CMSG_LEVEL_IP=SOL_IP",
    "CMSG_TYPE_RECVERR=IP_RECVERR",
];

/// A position in the tokens.
pub struct Cursor {
    tokens: Vec<PlacedToken>,
    at: usize,
}

impl Cursor {
    /// Creates a cursor at the first token.
    pub fn new(tokens: Vec<PlacedToken>) -> Self {
        Self { tokens, at: 0 }
    }

    /// Substitutes the values of `--define=NAME=value` for the names, from here on.
    pub fn define(&mut self, options: &[(String, Option<String>, u32)]) {
        self.substitute(options);
        let defaults = DEFINED.map(|value| ("define".to_owned(), Some(value.to_owned()), 0));
        self.substitute(&defaults);
    }

    fn substitute(&mut self, options: &[(String, Option<String>, u32)]) {
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
            // The digits of a cookie are quoted, so that they are no number.
            let replacement = match &replacement.token {
                Token::Text(digits) if symbol.starts_with("TFO_COOKIE") => Token::Identifier(digits.clone()),
                token => token.clone(),
            };
            for placed in &mut self.tokens[self.at..] {
                if placed.token == Token::Identifier(symbol.to_owned()) {
                    placed.token = replacement.clone();
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

    /// Takes a whole number of at most `limit` after the identifier `name`; `None` without that identifier.
    pub fn named(&mut self, name: &str, what: &str, limit: u64) -> Result<Option<u64>, ParseError> {
        let here = self.eat_identifier(name);
        here.then(|| self.integer(what, limit)).transpose()
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
