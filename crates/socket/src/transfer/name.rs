//! Names of files, from a peer that is not trusted.

/// The longest name of a file on common systems, in bytes.
const MAX_NAME: usize = 255;
/// What the name of a file that has not arrived whole ends with.
const PARTIAL_END: &str = ".longfat-part";

/// Characters that are not seen, or that make others be seen elsewhere: marks and overrides of
/// direction, joiners, line separators, the byte-order mark.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
    )
}

/// Checks that `name` is the name of a file in one directory, and one that a person can see whole.
/// With `windows` also what that system makes something else of.
///
/// # Errors
/// What is wrong with it.
pub fn check(name: &str, windows: bool) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    if name == "." || name == ".." {
        return Err("the name means a directory");
    }
    if name.len() > MAX_NAME {
        return Err("the name is longer than 255 bytes");
    }
    if name.contains(['/', '\\']) {
        return Err("the name contains a path separator");
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err("the name contains characters that cannot be seen");
    }
    if name.starts_with('.') && name.ends_with(PARTIAL_END) {
        return Err("the name is that of an unfinished transfer");
    }
    if windows {
        if name.contains(['<', '>', ':', '"', '|', '?', '*']) || name.ends_with(['.', ' ']) {
            return Err("the name is not possible on this system");
        }
        let stem = name
            .split('.')
            .next()
            .unwrap_or(name)
            .trim_end()
            .to_ascii_uppercase();
        let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
        let port = numbered.is_some_and(|n| {
            matches!(
                n,
                "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
            )
        });
        if port
            || matches!(
                stem.as_str(),
                "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$"
            )
        {
            return Err("the name is that of a device on this system");
        }
    }
    Ok(())
}

/// The name with a number in front of its extension: "notes (2).txt". Number 0 is the name itself.
#[must_use]
pub fn numbered(name: &str, number: u32) -> String {
    if number == 0 {
        return name.to_owned();
    }
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= 16 => name.split_at(at),
        _ => (name, ""),
    };
    let mark = format!(" ({number})");
    let stem = cut(stem, MAX_NAME - mark.len() - extension.len());
    format!("{stem}{mark}{extension}")
}

/// The name under which a file is kept until it is whole. Several transfers of one name at once have
/// different `slot`s.
#[must_use]
pub fn partial(name: &str, slot: u32) -> String {
    let end = if slot == 0 {
        PARTIAL_END.to_owned()
    } else {
        format!(".{slot}{PARTIAL_END}")
    };
    let room = MAX_NAME - 1 - end.len();
    if name.len() <= room {
        return format!(".{name}{end}");
    }
    // Long names that begin alike must not meet.
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!(".{}~{}{end}", cut(name, room - 17), &hash[..16])
}

/// The longest beginning of `text` that has at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../x",
            "a/b",
            "..\\x",
            "C:\\x",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            "gpj.\u{202e}exe.txt",
            "a\u{200b}b",
            ".x.longfat-part",
            &long,
        ] {
            assert!(check(name, false).is_err(), "{name:?}");
        }
        for name in [
            "CON",
            "nul.txt",
            "com1",
            "LPT9.tar.gz",
            "a:b",
            "what?",
            "dot.",
            "space ",
            "aux .c",
        ] {
            assert!(check(name, true).is_err(), "{name:?}");
            assert!(check(name, false).is_ok(), "{name:?}");
        }
        for name in [
            "a",
            ".env",
            "..a",
            "naïve.txt",
            "日本語",
            "a b (1).tar.gz",
            "x.longfat-part",
            "consul",
        ] {
            assert!(check(name, true).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn made_names_are_of_lawful_length_and_differ() {
        assert_eq!(numbered("notes.txt", 0), "notes.txt");
        assert_eq!(numbered("notes.txt", 2), "notes (2).txt");
        assert_eq!(numbered(".env", 1), ".env (1)");
        assert_eq!(numbered("README", 10), "README (10)");
        assert_eq!(partial("notes.txt", 0), ".notes.txt.longfat-part");
        assert_eq!(partial("notes.txt", 1), ".notes.txt.1.longfat-part");
        for name in ["é".repeat(127), "x".repeat(255), "日".repeat(85)] {
            for number in [1, 10, 999] {
                assert!(numbered(&name, number).len() <= MAX_NAME);
                assert!(partial(&name, number).len() <= MAX_NAME);
            }
        }
        let (a, b) = ("x".repeat(254) + "a", "x".repeat(254) + "b");
        assert_ne!(partial(&a, 0), partial(&b, 0));
    }
}
