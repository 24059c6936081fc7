//! The code snippets of scripts: assertions about `tcp_info`, in the part of Python that they use.
//!
//! Known: `assert`, `print`, assignments (also `+=` and its like), `pass`, arithmetic, comparisons (chained
//! ones too), `and`, `or`, `not`, `a if b else c`, numbers, texts, `%` formatting, tuples, and the functions
//! `abs`, `float`, `int`, `max`, `min`, `round`, `str`. Anything else is named as unsupported.

mod evaluate;
mod format;
mod lexer;
mod parser;
mod value;

pub use evaluate::{Fault, Names, Snippets};
pub use value::Value;
