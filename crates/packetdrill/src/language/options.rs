//! The `--name=value` lines at the start of a script.

use super::ParseError;
use super::cursor::Cursor;
use super::lexer::Token;

/// Parses all options, each with its line.
pub fn options(cursor: &mut Cursor) -> Result<Vec<(String, Option<String>, u32)>, ParseError> {
    let mut found = Vec::new();
    while let Some(Token::Flag(name)) = cursor.peek().cloned() {
        let line = cursor.line();
        cursor.next();
        let value = if cursor.eat('=') {
            Some(value(cursor)?)
        } else {
            None
        };
        found.push((name, value, line));
    }
    Ok(found)
}

fn value(cursor: &mut Cursor) -> Result<String, ParseError> {
    let text = |token: Option<Token>| match token {
        Some(Token::Identifier(text) | Token::Float(text)) => Some(text),
        Some(Token::Text(text)) => Some(text),
        Some(Token::Integer(number)) => Some(number.to_string()),
        Some(Token::Hex(number)) => Some(format!("{number:#x}")),
        Some(Token::Ipv4(address)) => Some(address.to_string()),
        Some(Token::Ipv6(address)) => Some(address.to_string()),
        _ => None,
    };
    let Some(first) = text(cursor.peek().cloned()) else {
        return Err(cursor.expected("the value of an option"));
    };
    cursor.next();
    if !cursor.eat('=') {
        return Ok(first);
    }
    let second = match cursor.peek().cloned() {
        Some(Token::Text(inner)) => Some(format!("\"{inner}\"")),
        Some(Token::Command(inner)) => Some(format!("`{inner}`")),
        token => text(token),
    };
    let Some(second) = second else {
        return Err(cursor.expected("the value of a symbol"));
    };
    cursor.next();
    Ok(format!("{first}={second}"))
}
