//! Kinds of settings from outside of a crate: a registration has the name of a kind, its help and its reader.
//!
//! A role is the trait object of a settings trait, such as `dyn ControllerSettings`. Names with a [`SEPARATOR`]
//! ("FILE:CLASS") belong to external kinds, which the role's resolver loads.

mod configured;
mod registration;

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::Problem;

pub use configured::Configured;
pub use registration::{ParsedSettings, Registration, choice};

/// Separator in names of external kinds ("FILE:CLASS"); built-in names do not contain it.
pub const SEPARATOR: char = ':';

/// Loads the external kind of a name with a [`SEPARATOR`]; the error is one line.
pub type Resolver<R> = Box<dyn Fn(&str) -> Result<Registration<R>, String> + Send + Sync>;

/// A settings trait whose kinds may come from outside, as a trait object.
pub trait Role: Send + Sync + 'static {
    /// What a kind is, in messages: "congestion controller".
    const WHAT: &'static str;

    /// The name of an external kind, as an example.
    const EXAMPLE: &'static str;

    /// Returns the place of the process's resolver.
    fn resolver() -> &'static OnceLock<Resolver<Self>>;

    /// Returns the keys that are out of range.
    fn problems(&self) -> Vec<Problem>;
}

/// Converts settings to the trait object of their role.
pub trait Accepts<S>: Role {
    /// Returns the trait object.
    fn shared(settings: S) -> std::sync::Arc<Self>;
}

/// Declares a settings trait as a [`Role`]: `role!(ControllerSettings, "congestion controller", "aimd.py:Aimd")`. The
/// trait has a method `validate`.
#[macro_export]
macro_rules! role {
    ($settings:ident, $what:literal, $example:literal) => {
        impl $crate::extension::Role for dyn $settings {
            const WHAT: &'static str = $what;
            const EXAMPLE: &'static str = $example;

            fn resolver() -> &'static ::std::sync::OnceLock<$crate::extension::Resolver<Self>> {
                static RESOLVER: ::std::sync::OnceLock<$crate::extension::Resolver<dyn $settings>> =
                    ::std::sync::OnceLock::new();
                &RESOLVER
            }

            fn problems(&self) -> Vec<$crate::Problem> {
                self.validate()
            }
        }

        impl<S: $settings + 'static> $crate::extension::Accepts<S> for dyn $settings {
            fn shared(settings: S) -> ::std::sync::Arc<Self> {
                ::std::sync::Arc::new(settings)
            }
        }
    };
}

/// Installs the resolver of a role, once per process. Configurations may then use names with a [`SEPARATOR`].
///
/// # Errors
/// Returns the resolver if one is installed already.
pub fn install_resolver<R: Role + ?Sized>(resolver: Resolver<R>) -> Result<(), Resolver<R>> {
    R::resolver().set(resolver)
}

/// Returns whether a name belongs to an external kind.
#[must_use]
pub fn is_external(name: &str) -> bool {
    name.contains(SEPARATOR)
}

/// Loads an external kind and reads its keys.
///
/// # Errors
/// An unknown name, with the key "kind", or all wrong keys.
pub fn read_external<R: Role + ?Sized>(
    name: &str,
    keys: &Map<String, Value>,
) -> Result<Configured<R>, Vec<Problem>> {
    let found = match R::resolver().get() {
        Some(resolver) => resolver(name),
        None => Err(format!(
            "{name:?} is an external {}, which this program cannot load",
            R::WHAT
        )),
    };
    let found = found.map_err(|message| vec![Problem::new(crate::kinds::KIND, message)])?;
    found.configure(keys, &[])
}

/// Returns the JSON Schemas of external kinds: a name, and a table with a name and settings.
#[must_use]
pub fn schemas<R: Role + ?Sized>() -> [Value; 2] {
    let what = R::WHAT;
    let name = serde_json::json!({
        "type": "string",
        "pattern": format!(".+{SEPARATOR}.+"),
        "examples": [R::EXAMPLE],
        "description": format!("an external {what}: FILE.py:CLASS or package.module:CLASS"),
    });
    let table = serde_json::json!({
        "type": "object",
        "properties": { "kind": name },
        "required": ["kind"],
        "description": format!("an external {what} with the parameters of its class"),
    });
    [name, table]
}
