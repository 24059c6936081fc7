//! Settings with several kinds, such as schedulers: a kind's name, or a table with its kind and keys.

use foundation::Problem;
use foundation::kinds::{KIND, Kinds, from_table};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Map, Value, json};

/// Reads a table. `removed` lists the names of removed kinds, each with a hint.
pub(super) fn read<T: Kinds>(table: Map<String, Value>, removed: &[(&str, &str)]) -> Result<T, Problem> {
    let kind = table.get(KIND);
    match removed
        .iter()
        .find(|(removed, _)| kind.is_some_and(|kind| kind == removed))
    {
        Some((kind, hint)) => Err(Problem::new("", format!("{kind:?} was removed: {hint}"))),
        None => from_table(table),
    }
}

/// Adds the names of kinds to the schema of the tables.
pub(super) fn add_names<T: Kinds + JsonSchema>(tables: &mut Schema) {
    tables.remove("description");
    let mut forms = vec![
        json!({ "type": "string", "enum": T::KINDS }),
        tables.clone().to_value(),
    ];
    forms.extend(T::external_schemas());
    *tables = json_schema!({
        "description": format!("{}: by its kind, or a table with its kind and keys", T::schema_name()),
        "anyOf": forms,
    });
}

/// Declares an enum of kinds as [`foundation::kinds!`] does, with the name of a kind as its text form.
macro_rules! kinds {
    (
        $(#[$doc:meta])*
        pub enum $name:ident: $settings:ident, $built:ty, $what:tt, $removed:expr;
        $($kinds:tt)+
    ) => {
        foundation::kinds! {
            $(#[$doc])*
            #[serde(remote = "Self", tag = "kind")]
            #[schemars(rename = $what, transform = crate::mptcp::kinds::add_names::<$name>)]
            pub enum $name: $settings + External(foundation::extension::Configured<dyn $settings>) { $($kinds)+ }
        }

        impl $name {
            /// Returns the keys that are out of range.
            #[must_use]
            pub fn validate(&self) -> Vec<foundation::Problem> {
                self.settings().validate()
            }

            /// Builds the instance of one connection.
            #[must_use]
            pub fn build(&self) -> $built {
                self.settings().build()
            }
        }

        impl foundation::kinds::Written for $name {
            fn expected() -> std::borrow::Cow<'static, str> {
                format!("one of {}, or a table with one as its kind", Self::KINDS.join(", ")).into()
            }

            fn from_text(kind: &str) -> Result<Self, String> {
                let table = [(foundation::kinds::KIND.to_owned(), kind.into())];
                Self::from_table(table.into_iter().collect()).map_err(|problem| problem.message)
            }

            fn from_table(table: serde_json::Map<String, serde_json::Value>) -> Result<Self, foundation::Problem> {
                crate::mptcp::kinds::read(table, $removed)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if let Self::External(external) = self {
                    return external.serialize(to);
                }
                match foundation::kinds::from_kind(self.kind()) {
                    Some(default) if *self == default => to.serialize_str(self.kind()),
                    _ => Self::serialize(self, to),
                }
            }
        }
    };
}

pub(super) use kinds;
