//! System calls: `+0 write(4, ..., 1000) = 1000`.

use super::ParseError;
use super::cursor::Cursor;
use super::expression::{Entry, Expression};
use super::lexer::Token;
use super::script::Call;

/// Parses a call.
pub fn call(cursor: &mut Cursor) -> Result<Call, ParseError> {
    let end = match cursor.peek() {
        Some(Token::Ellipsis) => {
            cursor.next();
            Some(cursor.time("the time at which the call returns")?)
        }
        _ => None,
    };
    let name = cursor.identifier("the name of a system call")?;
    cursor.expect('(')?;
    let arguments = list(cursor, ')')?;
    cursor.expect('=')?;
    let result = expression(cursor)?;
    let errno = errno(cursor)?;
    Ok(Call {
        end,
        name,
        arguments,
        result,
        errno,
    })
}

/// Parses `EAGAIN (Resource temporarily unavailable)`, a note alone, or nothing.
fn errno(cursor: &mut Cursor) -> Result<Option<String>, ParseError> {
    let name = match cursor.peek() {
        Some(Token::Identifier(name)) => Some(name.clone()),
        _ => None,
    };
    if name.is_some() {
        cursor.next();
    }
    if cursor.eat('(') {
        while !cursor.eat(')') {
            match cursor.next() {
                Some(Token::Identifier(_)) => {}
                _ => return Err(cursor.expected("a note, then `)`")),
            }
        }
    } else if name.is_some() {
        return Err(cursor.expected("a note in parentheses after the name of an error"));
    }
    Ok(name)
}

/// Parses expressions up to and including `close`.
fn list(cursor: &mut Cursor, close: char) -> Result<Vec<Expression>, ParseError> {
    let mut items = Vec::new();
    if cursor.eat(close) {
        return Ok(items);
    }
    loop {
        items.push(expression(cursor)?);
        if cursor.eat(close) {
            return Ok(items);
        }
        cursor.expect(',')?;
    }
}

fn expression(cursor: &mut Cursor) -> Result<Expression, ParseError> {
    let first = operand(cursor)?;
    if cursor.eat('|') {
        let rest = expression(cursor)?;
        return Ok(Expression::Or(Box::new(first), Box::new(rest)));
    }
    if let Expression::Symbol(name) = &first
        && cursor.eat('=')
    {
        let value = expression(cursor)?;
        return Ok(Expression::Assign(name.clone(), Box::new(value)));
    }
    Ok(first)
}

fn operand(cursor: &mut Cursor) -> Result<Expression, ParseError> {
    const WHAT: &str = "a value";
    let Some(token) = cursor.peek().cloned() else {
        return Err(cursor.expected(WHAT));
    };
    match token {
        Token::Mark('[') => {
            cursor.next();
            Ok(Expression::List(list(cursor, ']')?))
        }
        Token::Mark('{') => {
            cursor.next();
            structure(cursor)
        }
        Token::Mark('-') => {
            cursor.next();
            let number = cursor.integer("a number after `-`", i64::MAX as u64)?;
            Ok(Expression::Integer(-(number as i64)))
        }
        Token::Ellipsis => {
            cursor.next();
            Ok(Expression::Ellipsis)
        }
        Token::Integer(number) | Token::Hex(number) => {
            cursor.next();
            Ok(Expression::Integer(number))
        }
        Token::Text(text) => {
            cursor.next();
            Ok(text_sequence(cursor, text))
        }
        Token::Identifier(name) => {
            cursor.next();
            if cursor.eat('(') {
                return Ok(Expression::Call(name, list(cursor, ')')?));
            }
            Ok(Expression::Symbol(name))
        }
        _ => Err(cursor.expected(WHAT)),
    }
}

/// Joins adjacent texts; `"text"...` is a text with an arbitrary continuation.
fn text_sequence(cursor: &mut Cursor, mut text: String) -> Expression {
    loop {
        match cursor.peek() {
            Some(Token::Text(more)) => text.push_str(more),
            Some(Token::Ellipsis) => {}
            _ => return Expression::Text(text),
        }
        cursor.next();
    }
}

/// Parses a structure after its `{`: parts with or without a name.
fn structure(cursor: &mut Cursor) -> Result<Expression, ParseError> {
    let mut entries = Vec::new();
    loop {
        entries.push(entry(cursor)?);
        if cursor.eat('}') {
            return Ok(Expression::Structure(entries));
        }
        cursor.expect(',')?;
    }
}

fn entry(cursor: &mut Cursor) -> Result<Entry, ParseError> {
    let unnamed = |value| Entry {
        name: String::new(),
        value,
    };
    let Some(Token::Identifier(name)) = cursor.peek().cloned() else {
        return Ok(unnamed(expression(cursor)?));
    };
    if !matches!(cursor.peek_second(), Some(Token::Mark('=' | '('))) {
        return Ok(unnamed(expression(cursor)?));
    }
    cursor.next();
    // A number in parentheses after the name (`msg_iov(2)`) has no effect.
    if cursor.eat('(') {
        let arguments = list(cursor, ')')?;
        if !matches!(cursor.peek(), Some(Token::Mark('='))) {
            return Ok(unnamed(Expression::Call(name, arguments)));
        }
    }
    cursor.expect('=')?;
    let value = expression(cursor)?;
    Ok(Entry { name, value })
}
