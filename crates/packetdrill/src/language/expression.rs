//! Arguments and results of system calls.

/// A value in a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// `...`: any value, or one that the program fills in.
    Ellipsis,
    /// A number.
    Integer(i64),
    /// A symbol (`SOCK_STREAM`).
    Symbol(String),
    /// A text; adjacent texts are joined.
    Text(String),
    /// `a | b`.
    Or(Box<Expression>, Box<Expression>),
    /// `name = value` outside of braces.
    Assign(String, Box<Expression>),
    /// `[a, b]`.
    List(Vec<Expression>),
    /// `{...}`: a structure.
    Structure(Vec<Entry>),
    /// `htons(8080)`, `inet_addr("192.0.2.1")`.
    Call(String, Vec<Expression>),
}

/// One part of a structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The name before `=` (`msg_iov`), or empty.
    pub name: String,
    /// The value.
    pub value: Expression,
}

impl Expression {
    /// Returns the value of the part called `name`, if this is a structure with such a part.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Self> {
        let Self::Structure(entries) = self else {
            return None;
        };
        entries
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| &entry.value)
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let join = |f: &mut std::fmt::Formatter<'_>, items: &[Self]| -> std::fmt::Result {
            for (index, item) in items.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(f, "{comma}{item}")?;
            }
            Ok(())
        };
        match self {
            Self::Ellipsis => write!(f, "..."),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Symbol(name) => write!(f, "{name}"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Or(left, right) => write!(f, "{left}|{right}"),
            Self::Assign(name, value) => write!(f, "{name}={value}"),
            Self::List(items) => {
                write!(f, "[")?;
                join(f, items)?;
                write!(f, "]")
            }
            Self::Structure(entries) => {
                write!(f, "{{")?;
                for (index, entry) in entries.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let equals = if entry.name.is_empty() { "" } else { "=" };
                    write!(f, "{comma}{}{equals}{}", entry.name, entry.value)?;
                }
                write!(f, "}}")
            }
            Self::Call(name, arguments) => {
                write!(f, "{name}(")?;
                join(f, arguments)?;
                write!(f, ")")
            }
        }
    }
}
