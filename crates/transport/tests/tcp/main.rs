//! TCP from outside: two connections and a path, on virtual time.

mod basics;
mod pair;
mod properties;
