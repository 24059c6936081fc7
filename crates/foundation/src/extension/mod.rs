//! Kinds of settings from outside of a crate: a registration has the name of a kind, its help and its reader.
//!
//! A role is the trait object of a settings trait, such as `dyn ControllerSettings`. Names with a [`SEPARATOR`]
//! ("FILE:CLASS") belong to external kinds, which the role's resolver loads.

mod configured;
mod registration;

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::Problem;
use crate::confinement::permit;

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

/// Installs a resolver that finds these kinds, whose names have a [`SEPARATOR`]: "own:aimd".
///
/// # Errors
/// A name without separator, or a resolver that is installed already.
pub fn install<R: Role + ?Sized>(registrations: Vec<Registration<R>>) -> Result<(), Problem> {
    if let Some(wrong) = registrations.iter().find(|one| !is_external(one.name())) {
        let message = format!("{:?} needs a prefix: \"own{SEPARATOR}{0}\"", wrong.name());
        return Err(Problem::new("", message));
    }
    let resolver = move |name: &str| {
        let found = registrations.iter().find(|one| one.name() == name).cloned();
        found.ok_or_else(|| {
            let names = registrations.iter().map(Registration::name);
            format!("unknown {} {name:?}{}", R::WHAT, choice(name, names, || None))
        })
    };
    install_resolver(Box::new(resolver)).map_err(|_| {
        Problem::new(
            "",
            format!("a resolver of the role {} is installed already", R::WHAT),
        )
    })
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
        Some(resolver) => permit(name).and_then(|()| resolver(name)),
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

#[cfg(test)]
mod tests {
    use super::*;

    trait ShapeSettings: Send + Sync {
        fn validate(&self) -> Vec<Problem>;
    }

    role!(ShapeSettings, "shape", "disc.py:Disc");

    #[derive(Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    #[serde(default, deny_unknown_fields)]
    struct Disc {
        radius: u32,
    }

    impl ShapeSettings for Disc {
        fn validate(&self) -> Vec<Problem> {
            Problem::range("radius", self.radius, self.radius > 0, "above 0")
                .into_iter()
                .collect()
        }
    }

    fn read(name: &str, keys: &Value) -> Result<Configured<dyn ShapeSettings>, String> {
        let found = Configured::external(name, keys.as_object().unwrap());
        found.map_err(|problem| problem.to_string())
    }

    #[test]
    fn finds_installed_kinds() {
        let disc = |name: &'static str| vec![Registration::<dyn ShapeSettings>::of::<Disc>(name, "a disc")];
        let message = read("own:disc", &serde_json::json!({})).unwrap_err();
        assert_eq!(
            message,
            "kind: \"own:disc\" is an external shape, which this program cannot load"
        );
        let message = install(disc("disc")).unwrap_err().message;
        assert_eq!(message, "\"disc\" needs a prefix: \"own:disc\"");
        install(disc("own:disc")).unwrap();
        let message = install(disc("own:disc")).unwrap_err().message;
        assert_eq!(message, "a resolver of the role shape is installed already");

        let found = read("own:disc", &serde_json::json!({"radius": 3})).unwrap();
        assert_eq!((found.name(), found.validate()), ("own:disc", Vec::new()));
        let written = serde_json::to_string(&found).unwrap();
        assert_eq!(written, r#"{"kind":"own:disc","radius":3}"#);
        let default = read("own:disc", &serde_json::json!({})).unwrap();
        assert_eq!(serde_json::to_string(&default).unwrap(), r#""own:disc""#);
        assert_eq!(
            default.validate()[0].to_string(),
            "radius: 0 is out of range: above 0"
        );
        assert_ne!(found, default);

        let message = read("own:disk", &serde_json::json!({})).unwrap_err();
        assert_eq!(
            message,
            "kind: unknown shape \"own:disk\"; did you mean \"own:disc\"? known: own:disc"
        );
        let message = read("own:disc", &serde_json::json!({"radiu": 3})).unwrap_err();
        assert_eq!(
            message,
            "radiu: unknown key of shape \"own:disc\"; did you mean \"radius\"? known: radius"
        );
    }
}
