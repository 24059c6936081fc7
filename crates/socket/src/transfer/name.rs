//! Validation of file names from an untrusted peer.

use super::message::MAX_TEXT;

/// The longest file name on common systems, in bytes.
const MAX_NAME: usize = 255;
/// Folders above a file.
const MAX_DEPTH: usize = 32;
/// Suffix of an incomplete file.
const PARTIAL_END: &str = ".longfat-part";

/// Invisible characters, and characters that reorder others: direction marks and overrides, joiners, line separators,
/// the byte-order mark.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
    )
}

/// Checks that `path` is a file name, or a relative path of folders and a file name, separated by `/`. Names that start
/// with a dot, which programs may read as their configuration, need `dotfiles`.
///
/// # Errors
/// The problem, in one line.
pub fn check_path(path: &str, dotfiles: bool) -> Result<(), &'static str> {
    if path.len() > MAX_TEXT {
        return Err("the path is longer than 1024 bytes");
    }
    if path.split('/').count() > MAX_DEPTH + 1 {
        return Err("the path has more than 32 folders");
    }
    for name in path.split('/') {
        check(name)?;
        if name.starts_with('.') && !dotfiles {
            return Err("the name starts with a dot, which this receiver does not allow (option --dotfiles)");
        }
    }
    Ok(())
}

/// Checks that `name` is a visible file name without directories.
///
/// # Errors
/// The problem, in one line.
fn check(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    if name == "." || name == ".." {
        return Err("the name denotes a directory");
    }
    if name.len() > MAX_NAME {
        return Err("the name is longer than 255 bytes");
    }
    if name.contains('\\') {
        return Err("the name contains a path separator");
    }
    if name.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err("the name contains characters that cannot be seen");
    }
    if name.starts_with('.') && name.ends_with(PARTIAL_END) {
        return Err("the name is reserved for incomplete transfers");
    }
    Ok(())
}

/// Inserts a number before the extension: "notes (2).txt". Number 0 is the name itself.
#[must_use]
pub fn numbered(path: &str, number: u32) -> String {
    if number == 0 {
        return path.to_owned();
    }
    let (folder, name) = split(path);
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= 16 => name.split_at(at),
        _ => (name, ""),
    };
    let mark = format!(" ({number})");
    let stem = cut(stem, MAX_NAME - mark.len() - extension.len());
    format!("{folder}{stem}{mark}{extension}")
}

/// Returns the name of an incomplete file. Simultaneous transfers of one name use different `slot`s.
#[must_use]
pub fn partial(path: &str, slot: u32) -> String {
    let (folder, name) = split(path);
    let end = if slot == 0 {
        PARTIAL_END.to_owned()
    } else {
        format!(".{slot}{PARTIAL_END}")
    };
    let room = MAX_NAME - 1 - end.len();
    if name.len() <= room {
        return format!("{folder}.{name}{end}");
    }
    // Long names with a common beginning must differ.
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{folder}.{}~{}{end}", cut(name, room - 17), &hash[..16])
}

/// Splits a path into its folders, with the `/` after each, and its name.
#[must_use]
pub fn split(path: &str) -> (&str, &str) {
    path.split_at(path.rfind('/').map_or(0, |at| at + 1))
}

/// Returns the longest prefix of `text` with at most `bytes` bytes.
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
    fn refuses_unsafe_names() {
        let long = "x".repeat(256);
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../x",
            "a/../x",
            "a//b",
            "a/",
            "a/./b",
            "a/.x.longfat-part",
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
            assert!(check_path(name, true).is_err(), "{name:?}");
        }
        let deep = "d/".repeat(33) + "x";
        assert!(check_path(&deep, true).is_err());
        assert!(check_path(&deep[2..], true).is_ok());
        assert!(check_path(&("x".repeat(200) + "/").repeat(6), true).is_err());
        for name in [
            "a",
            "a/b.txt",
            ".env",
            "..a",
            "naïve.txt",
            "日本語",
            "a b (1).tar.gz",
            "x.longfat-part",
            "consul",
        ] {
            assert!(check_path(name, true).is_ok(), "{name:?}");
        }
        for name in [".env", ".ssh/authorized_keys", "a/.git/config"] {
            assert!(check_path(name, true).is_ok(), "{name:?}");
            assert!(check_path(name, false).is_err(), "{name:?}");
        }
    }

    #[test]
    fn generated_names_are_valid_and_differ() {
        assert_eq!(numbered("notes.txt", 0), "notes.txt");
        assert_eq!(numbered("notes.txt", 2), "notes (2).txt");
        assert_eq!(numbered(".env", 1), ".env (1)");
        assert_eq!(numbered("README", 10), "README (10)");
        assert_eq!(partial("notes.txt", 0), ".notes.txt.longfat-part");
        assert_eq!(partial("notes.txt", 1), ".notes.txt.1.longfat-part");
        assert_eq!(partial("a.b/notes", 1), "a.b/.notes.1.longfat-part");
        assert_eq!(numbered("a.b/notes", 1), "a.b/notes (1)");
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
