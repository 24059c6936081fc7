//! Snippets into tokens.

use super::evaluate::Fault;

/// A token of a snippet.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name or a keyword.
    Name(String),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// An operator or a bracket.
    Mark(&'static str),
    /// The end of a statement: a line's end outside of brackets, or `;`.
    End,
}

/// Operators, longer ones before their beginnings.
const MARKS: [&str; 41] = [
    "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "/=", "%=",
    "|=", "&=", "^=", "+", "-", "*", "/", "%", "|", "&", "^", "~", "<", ">", "=", "(", ")", ",", "[", "]",
    ".", ":", "{", "}",
];

/// A token and its line within the snippet, from zero.
pub type Placed = (Token, u32);

/// The tokens of a snippet, each statement ended by [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<Placed>, Fault> {
    let mut out: Vec<Placed> = Vec::new();
    let mut rest = text;
    let (mut line, mut depth) = (0, 0_u32);
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match first {
            '\n' => {
                if depth == 0 {
                    out.push((Token::End, line));
                }
                line += 1;
            }
            ';' => out.push((Token::End, line)),
            '\\' => {
                let blank = rest[1..]
                    .find('\n')
                    .filter(|end| rest[1..1 + end].trim().is_empty());
                let end =
                    blank.ok_or_else(|| Fault::syntax(line, "a backslash that does not end its line"))?;
                length = end + 2;
                line += 1;
            }
            '#' => length = rest.find('\n').unwrap_or(rest.len()),
            _ if first.is_whitespace() => {}
            '\'' | '"' => {
                let (content, taken) = quoted(rest, first)
                    .ok_or_else(|| Fault::syntax(line, format!("a text without its closing {first}")))?;
                out.push((Token::Text(content), line));
                length = taken;
            }
            '0'..='9' => {
                let (token, taken) =
                    number(rest).ok_or_else(|| Fault::syntax(line, "a number that is none"))?;
                out.push((token, line));
                length = taken;
            }
            _ if first.is_alphabetic() || first == '_' => {
                length = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                out.push((Token::Name(rest[..length].to_owned()), line));
            }
            _ => {
                let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark));
                let mark =
                    mark.ok_or_else(|| Fault::syntax(line, format!("`{first}`, which is no operator")))?;
                match mark {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                out.push((Token::Mark(mark), line));
                length = mark.len();
            }
        }
        rest = &rest[length..];
    }
    out.push((Token::End, line));
    Ok(out)
}

fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => content.push(match characters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            _ if c == quote => return Some((content, at + 1)),
            '\n' => return None,
            _ => content.push(c),
        }
    }
    None
}

fn number(text: &str) -> Option<(Token, usize)> {
    if let Some(digits) = text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        let length = digits
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(digits.len());
        let value = i128::from_str_radix(&digits[..length], 16).ok()?;
        return Some((Token::Integer(value), length + 2));
    }
    let mut length = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    if let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let digits = exponent[sign..]
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(exponent.len() - sign);
        if digits > 0 {
            length += 1 + sign + digits;
        }
    }
    let word = &text[..length];
    match word.parse() {
        Ok(value) => Some((Token::Integer(value), length)),
        Err(_) => Some((Token::Float(word.parse().ok()?), length)),
    }
}
