//! Splits text into tokens.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::ParseError;

/// A token of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// Letters, digits and underscores that are not a number.
    Identifier(String),
    /// A decimal number.
    Integer(i64),
    /// A number written with `0x`.
    Hex(i64),
    /// A number with a decimal point, kept as text so that times are parsed exactly.
    Float(String),
    /// A text in double quotes, without them.
    Text(String),
    /// A command in back quotes.
    Command(String),
    /// A code snippet between `%{` and `}%`.
    Code(String),
    /// `--name`.
    Flag(String),
    /// `...`.
    Ellipsis,
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address.
    Ipv6(Ipv6Addr),
    /// Any other character.
    Mark(char),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Identifier(name) => write!(f, "`{name}`"),
            Self::Integer(number) => write!(f, "`{number}`"),
            Self::Hex(number) => write!(f, "`{number:#x}`"),
            Self::Float(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Command(_) => write!(f, "a command in back quotes"),
            Self::Code(_) => write!(f, "a code snippet"),
            Self::Flag(name) => write!(f, "`--{name}`"),
            Self::Ellipsis => write!(f, "`...`"),
            Self::Ipv4(address) => write!(f, "`{address}`"),
            Self::Ipv6(address) => write!(f, "`{address}`"),
            Self::Mark(mark) => write!(f, "`{mark}`"),
        }
    }
}

/// A token with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedToken {
    /// The token.
    pub token: Token,
    /// The line it starts on, from one.
    pub line: u32,
    /// Whether it follows the previous token without a space.
    pub joined: bool,
}

/// Splits `text` into tokens.
pub fn tokens(text: &str) -> Result<Vec<PlacedToken>, ParseError> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        out: Vec::new(),
        joined: false,
    };
    while lexer.step()? {}
    Ok(lexer.out)
}

struct Lexer<'a> {
    rest: &'a str,
    line: u32,
    out: Vec<PlacedToken>,
    joined: bool,
}

impl Lexer<'_> {
    fn step(&mut self) -> Result<bool, ParseError> {
        let Some(first) = self.rest.chars().next() else {
            return Ok(false);
        };
        if first.is_whitespace() {
            self.skip(first.len_utf8());
            return Ok(true);
        }
        if self.rest.starts_with("//") {
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            return Ok(true);
        }
        if self.rest.starts_with("/*") {
            let end = self.enclosed(2, "*/", "comment")?;
            self.skip(end);
            return Ok(true);
        }
        if self.rest.starts_with("%{") {
            let end = self.enclosed(2, "}%", "code snippet")?;
            let code = self.rest[2..end - 2].to_owned();
            self.push(Token::Code(code), end);
            return Ok(true);
        }
        if let Some(length) = self.cookie() {
            self.push(Token::Identifier(self.rest[..length].to_owned()), length);
            return Ok(true);
        }
        let (token, length) = self.token(first)?;
        self.push(token, length);
        Ok(true)
    }

    fn token(&self, first: char) -> Result<(Token, usize), ParseError> {
        let rest = self.rest;
        if rest.starts_with("...") {
            return Ok((Token::Ellipsis, 3));
        }
        if let Some(name) = rest.strip_prefix("--") {
            let length = prefix(name, is_identifier);
            if length > 0 {
                return Ok((Token::Flag(name[..length].to_owned()), length + 2));
            }
        }
        if first == '"' || first == '`' {
            let length =
                quoted(rest, first).ok_or_else(|| self.syntax(format!("missing closing {first}")))?;
            let inner = rest[1..length - 1].to_owned();
            let token = if first == '"' {
                Token::Text(inner)
            } else {
                Token::Command(inner)
            };
            return Ok((token, length));
        }
        if let Some(found) = address(rest) {
            return Ok(found);
        }
        if let Some(length) = float(rest) {
            return Ok((Token::Float(rest[..length].to_owned()), length));
        }
        let sign = usize::from(first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit()));
        let length = sign + prefix(&rest[sign..], is_identifier);
        if length == 0 {
            return Ok((Token::Mark(first), first.len_utf8()));
        }
        let run = &rest[..length];
        if let Some(digits) = run.strip_prefix("0x")
            && let Ok(value) = i64::from_str_radix(digits, 16)
        {
            return Ok((Token::Hex(value), length));
        }
        let digits = sign + prefix(&rest[sign..], |c| c.is_ascii_digit());
        if digits == length || sign == 1 {
            let text = &rest[..digits];
            let value = text
                .parse()
                .map_err(|_| self.syntax(format!("`{text}` is too large")))?;
            return Ok((Token::Integer(value), digits));
        }
        Ok((Token::Identifier(run.to_owned()), length))
    }

    /// Returns the length of the hexadecimal digits after the name of a Fast Open option. They are no number: zeros in front
    /// count.
    fn cookie(&self) -> Option<usize> {
        let last = self.out.last().map(|placed| &placed.token);
        let follows = matches!(last, Some(Token::Identifier(name)) if name == "FO" || name == "FOEXP");
        let length = prefix(self.rest, is_identifier);
        let is_hex = self.rest[..length].chars().all(|c| c.is_ascii_hexdigit());
        (follows && length > 0 && is_hex).then_some(length)
    }

    /// Returns the length of an enclosed token that starts here, including the closing mark.
    fn enclosed(&self, open: usize, close: &str, what: &str) -> Result<usize, ParseError> {
        match self.rest[open..].find(close) {
            Some(at) => Ok(open + at + close.len()),
            None => Err(self.syntax(format!("the {what} that starts here has no end ({close})"))),
        }
    }

    fn push(&mut self, token: Token, length: usize) {
        let placed = PlacedToken {
            token,
            line: self.line,
            joined: self.joined,
        };
        self.out.push(placed);
        self.skip(length);
        self.joined = true;
    }

    fn skip(&mut self, length: usize) {
        let (passed, rest) = self.rest.split_at(length);
        self.line += passed.matches('\n').count() as u32;
        self.rest = rest;
        self.joined = false;
    }

    fn syntax(&self, message: String) -> ParseError {
        ParseError::Syntax {
            line: self.line,
            message,
        }
    }
}

fn is_identifier(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn prefix(text: &str, of: impl Fn(char) -> bool) -> usize {
    text.find(|c| !of(c)).unwrap_or(text.len())
}

/// Returns the length of the quoted text at the start; a backslash escapes the next character.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    None
}

/// Matches `1.5`, `.5`, `-0.5`: at least one digit follows the point.
fn float(text: &str) -> Option<usize> {
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + prefix(&text[sign..], |c| c.is_ascii_digit());
    let rest = text[whole..].strip_prefix('.')?;
    let digits = prefix(rest, |c| c.is_ascii_digit());
    (digits > 0).then_some(whole + 1 + digits)
}

/// Matches an address. Addresses resemble numbers and sequence ranges; four dotted groups or a `::` identify them.
fn address(text: &str) -> Option<(Token, usize)> {
    let length = prefix(text, |c| c.is_ascii_digit() || c == '.');
    if let Ok(address) = text[..length].parse() {
        return Some((Token::Ipv4(address), length));
    }
    let length = prefix(text, |c| c.is_ascii_hexdigit() || c == ':' || c == '.');
    let run = text[..length].trim_end_matches('.');
    // A route may be written as "fd00::1:" before a packet.
    [run, run.strip_suffix(':').unwrap_or(run)]
        .into_iter()
        .find_map(|candidate| Some((Token::Ipv6(candidate.parse().ok()?), candidate.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Token> {
        tokens(text)
            .unwrap()
            .into_iter()
            .map(|placed| placed.token)
            .collect()
    }

    #[test]
    fn separates_times_and_ranges() {
        let mark = Token::Mark;
        let float = |text: &str| Token::Float(text.into());
        assert_eq!(
            read("+.3~+.310 > ."),
            [
                mark('+'),
                float(".3"),
                mark('~'),
                mark('+'),
                float(".310"),
                mark('>'),
                mark('.')
            ]
        );
        assert_eq!(
            read("+0...0.010"),
            [mark('+'), Token::Integer(0), Token::Ellipsis, float("0.010")]
        );
        assert_eq!(read("1:1001(1000)").len(), 6);
        assert_eq!(read("P. 1:1(0)")[..2], [Token::Identifier("P".into()), mark('.')]);
    }

    #[test]
    fn quotes_comments_and_code_keep_their_lines() {
        let placed = tokens("// a\n`x\ny` /* b\n */ %{ z }%\n\"q\\\"r\"").unwrap();
        let lines: Vec<u32> = placed.iter().map(|p| p.line).collect();
        assert_eq!(lines, [2, 4, 5]);
        assert_eq!(placed[1].token, Token::Code(" z ".into()));
        assert_eq!(placed[2].token, Token::Text("q\\\"r".into()));
    }

    #[test]
    fn numbers_addresses_and_identifiers() {
        assert_eq!(
            read("-1 0x10 4096kb 192.0.2.1 2001:db8::1 ::"),
            [
                Token::Integer(-1),
                Token::Hex(16),
                Token::Identifier("4096kb".into()),
                Token::Ipv4(Ipv4Addr::new(192, 0, 2, 1)),
                Token::Ipv6("2001:db8::1".parse().unwrap()),
                Token::Ipv6("::".parse().unwrap()),
            ]
        );
        assert!(tokens("`open").is_err());
        assert!(tokens("99999999999999999999").is_err());
    }
}
