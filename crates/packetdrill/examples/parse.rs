//! Reads scripts and tells which of them the language knows.

use std::path::PathBuf;

fn main() {
    for path in std::env::args_os().skip(1).map(PathBuf::from) {
        let text = std::fs::read_to_string(&path).expect("a script");
        match packetdrill::language::parse(&text) {
            Ok(script) => println!("{}: {} events", path.display(), script.events.len()),
            Err(error) => println!("{}: {error}", path.display()),
        }
    }
}
