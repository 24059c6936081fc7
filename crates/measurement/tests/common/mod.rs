//! What tests of real sockets share.

use std::io::Write;

/// The file that a run of all tests collects reasons in, to name them at its end.
const COLLECTED: &str = "LONGFAT_SKIPPED";

/// Says why a test looks at nothing, past what the test harness captures.
pub fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let line = format!("{name}: {}", reason.replace('\n', " "));
    let _ = writeln!(std::io::stderr().lock(), "skipped: {line}");
    if let Some(file) = std::env::var_os(COLLECTED)
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
