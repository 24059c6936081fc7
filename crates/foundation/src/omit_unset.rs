//! Tables in which keys without a value are omitted.

/// Declares a struct whose fields of a type `Option<...>` are omitted from its serialized form while they are `None`.
///
/// ```
/// foundation::omit_unset! {
///     #[derive(serde::Serialize)]
///     pub struct Table {
///         pub kind: &'static str,
///         pub rate: Option<u64>,
///     }
/// }
/// let table = Table { kind: "bulk", rate: None };
/// assert_eq!(serde_json::to_string(&table).unwrap(), r#"{"kind":"bulk"}"#);
/// ```
#[macro_export]
macro_rules! omit_unset {
    ($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::omit_unset! { @ [$(#[$attribute])* pub struct $name] [] $($fields)* }
    };
    (@ [$($head:tt)*] [$($done:tt)*]) => { $($head)* { $($done)* } };
    (@ $head:tt [$($done:tt)*] $(#[$help:meta])* $shown:vis $key:ident: Option<$value:ty>, $($rest:tt)*) => {
        $crate::omit_unset! {
            @ $head
            [$($done)* $(#[$help])* #[serde(skip_serializing_if = "Option::is_none")] $shown $key: Option<$value>,]
            $($rest)*
        }
    };
    (@ $head:tt [$($done:tt)*] $(#[$help:meta])* $shown:vis $key:ident: $value:ty, $($rest:tt)*) => {
        $crate::omit_unset! { @ $head [$($done)* $(#[$help])* $shown $key: $value,] $($rest)* }
    };
}
