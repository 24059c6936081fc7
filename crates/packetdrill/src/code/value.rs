//! Values of snippets.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    None,
    /// `True`, `False`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// `(a, b)`.
    Tuple(Vec<Value>),
}

impl Value {
    /// What an `if` or an `assert` takes it for.
    #[must_use]
    pub fn truth(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Integer(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::Tuple(items) => !items.is_empty(),
        }
    }

    /// As a whole number, if it is one; `True` counts one.
    #[must_use]
    pub fn integer(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// As a number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            _ => self.integer().map(|value| value as f64),
        }
    }

    /// What the type is called in messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a truth value",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Tuple(_) => "a tuple",
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => write!(f, "None"),
            Self::Bool(true) => write!(f, "True"),
            Self::Bool(false) => write!(f, "False"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 1e16 => write!(f, "{value:.1}"),
            Self::Float(value) => write!(f, "{value}"),
            Self::Text(text) => write!(f, "{text}"),
            Self::Tuple(items) => {
                write!(f, "(")?;
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{item}")?;
                }
                if items.len() == 1 {
                    write!(f, ",)")
                } else {
                    write!(f, ")")
                }
            }
        }
    }
}
