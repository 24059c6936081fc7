//! Wrong values in the terms of study files.
//!
//! Serde reports them with the names of Rust's types, as `invalid type: string "two", expected u64`.

use crate::quantity::nearest;

/// Characters of a value in an error.
const LONGEST_VALUE: usize = 60;

/// Returns a value as part of an error: its text, or the start of a long one followed by "...".
#[must_use]
pub fn shortened(value: &str) -> String {
    match value.char_indices().nth(LONGEST_VALUE) {
        None => value.to_owned(),
        Some(_) => value
            .chars()
            .take(LONGEST_VALUE - 3)
            .chain("...".chars())
            .collect(),
    }
}

/// Returns an error of serde about a value in these terms. Other errors stay unchanged.
pub fn plain(error: &impl ToString) -> String {
    let text = error.to_string();
    unknown_name(&text).or_else(|| wrong_type(&text)).unwrap_or(text)
}

/// Returns the wrong name with a hint and the allowed ones.
fn unknown_name(serde: &str) -> Option<String> {
    // Serde quotes the wrong name first, then the allowed ones.
    let mut quoted = serde
        .strip_prefix("unknown variant")?
        .split('`')
        .skip(1)
        .step_by(2);
    let name = quoted.next()?;
    let known: Vec<&str> = quoted.collect();
    let hint = hint(name, &known);
    Some(format!(
        "{} is not known: {hint}allowed: {}",
        shortened(&format!("{name:?}")),
        known.join(", ")
    ))
}

/// Returns a suggestion in front of the list of the allowed names.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("did you mean {near:?}? "))
}

/// Returns the value and the expected form.
fn wrong_type(serde: &str) -> Option<String> {
    let described = ["invalid type: ", "invalid value: ", "invalid length "]
        .iter()
        .find_map(|start| serde.strip_prefix(start))?;
    let (found, expected) = described.split_once(", expected ")?;
    let value = shortened(value(found));
    let form = match expected.strip_prefix("a tuple of size ") {
        Some(count) => format!("a list of {count} values"),
        None if is_unsigned(expected) && value.starts_with('-') => "at least 0".into(),
        None => form(expected).to_owned(),
    };
    Some(format!("{value}: must be {form}"))
}

/// Returns a value as JSON writes it, from serde's description such as `` integer `2` ``.
fn value(found: &str) -> &str {
    match found {
        "map" => return "a table",
        "sequence" => return "a list",
        "unit value" | "null" | "Option value" => return "null",
        _ => {}
    }
    let quoted = found
        .strip_prefix("string ")
        .or_else(|| found.split_once('`').map(|(_, rest)| rest.trim_end_matches('`')));
    quoted.unwrap_or(found)
}

/// Returns the expected form in the terms of study files. Forms that a type describes itself stay unchanged.
fn form(expected: &str) -> &str {
    match expected {
        _ if is_unsigned(expected) => "a whole number",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "string" | "a character" | "variant identifier" | "field identifier" => "text in quotes",
        "a sequence" => "a list",
        "a map" | "map" => "a table",
        "string or map" => "text in quotes, or a table",
        _ if expected.starts_with("a nonzero u") => "a whole number, at least 1",
        _ if expected.starts_with("a nonzero i") => "a whole number other than 0",
        _ if expected.starts_with("struct ") || expected.contains("tagged enum ") => "a table",
        _ if expected.starts_with("enum ") => "text in quotes",
        _ if expected.starts_with("tuple ") || expected.starts_with("an array ") => "a list",
        _ => expected,
    }
}

fn is_unsigned(expected: &str) -> bool {
    matches!(expected, "u8" | "u16" | "u32" | "u64" | "u128" | "usize")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_values_and_forms_without_the_types_of_rust() {
        for (serde, expected) in [
            (
                r#"invalid type: string "two", expected u64"#,
                r#""two": must be a whole number"#,
            ),
            (
                "invalid value: integer `-1`, expected usize",
                "-1: must be at least 0",
            ),
            (
                "invalid type: floating point `1.5`, expected i32",
                "1.5: must be a whole number",
            ),
            (
                "invalid type: boolean `true`, expected f64",
                "true: must be a number",
            ),
            (
                "invalid type: boolean `true`, expected internally tagged enum Table",
                "true: must be a table",
            ),
            (
                "invalid type: map, expected a boolean",
                "a table: must be true or false",
            ),
            (
                "invalid type: sequence, expected struct Rto",
                "a list: must be a table",
            ),
            (
                "invalid type: integer `3`, expected a tuple of size 2",
                "3: must be a list of 2 values",
            ),
            (
                "unknown variant `of`, expected one of `always`, `off`",
                r#""of" is not known: did you mean "off"? allowed: always, off"#,
            ),
            (
                "invalid type: null, expected a string",
                "null: must be text in quotes",
            ),
            (
                "invalid type: integer `5`, expected a loss such as \"2%\"",
                "5: must be a loss such as \"2%\"",
            ),
        ] {
            assert_eq!(plain(&serde), expected);
        }
        for (length, shown) in [(60, "x".repeat(60)), (61, format!("{}...", "x".repeat(57)))] {
            let serde = format!("invalid type: integer `{}`, expected u64", "x".repeat(length));
            assert_eq!(plain(&serde), format!("{shown}: must be a whole number"));
        }
        assert_eq!(shortened(&"é".repeat(61)), format!("{}...", "é".repeat(57)));
        let other = "\"a, expected b\" is not a rate";
        assert_eq!(plain(&other), other);
    }
}
