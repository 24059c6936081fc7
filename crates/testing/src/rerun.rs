//! Tests that need a process of their own.

use std::process::Command;

use crate::{Requirement, skip};

/// Set in processes that [`again`] starts.
const RERUN: &str = "LONGFAT_TEST_AGAIN";

/// Returns a command that runs one ignored test of this test program in a separate process.
///
/// The test is named with its module: `processes::emulate_once`.
pub fn rerun(test: &str) -> Command {
    let program = if cfg!(target_os = "linux") {
        // Another user may start it even where the folder is closed to that user.
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().expect("the path of this program")
    };
    let mut command = Command::new(program);
    ignored(&mut command, test);
    command
}

/// Returns [`again`]'s command for a user without privileges: another one if this is root, who may open the TUN device
/// as on most systems.
///
/// Skips the test and returns `None` if root may not do that here. Linux only.
pub fn rerun_without_privileges(test: &str) -> Option<Command> {
    if !is_root() {
        return Some(rerun(test));
    }
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    if !probe.as_ref().is_ok_and(|done| done.status.success()) {
        skip(
            Requirement::Users,
            format!("root makes no mount namespace: {probe:?}"),
        );
        return None;
    }
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", AS_NOBODY]).arg(program);
    ignored(&mut command, test);
    Some(command)
}

/// A shell script: opens the program while it may, replaces the TUN device, and becomes another user.
const AS_NOBODY: &str = r#"
exec 3<"$0"
if [ -e /dev/net/tun ]; then
    mount -t tmpfs -o mode=755 none /dev/net && mknod -m 666 /dev/net/tun c 10 200 || exit
fi
cd /
exec setpriv --reuid=65534 --regid=65534 --clear-groups -- /proc/self/fd/3 "$@"
"#;

fn ignored(command: &mut Command, test: &str) {
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(RERUN, test);
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .any(|line| line.split_whitespace().take(3).eq(["Uid:", "0", "0"]))
}

/// Returns whether [`again`] started this process. Otherwise somebody runs all ignored tests.
pub fn is_rerun() -> bool {
    std::env::var_os(RERUN).is_some()
}
