//! Tests in separate processes.

use std::process::Command;

use crate::{Requirement, skip};

/// Environment variable of processes started by [`rerun`].
const RERUN: &str = "LONGFAT_TEST_AGAIN";

/// Returns a command that runs one ignored test of this test program in a separate process.
///
/// The test is named with its module: `processes::emulate_once`.
pub fn rerun(test: &str) -> Command {
    let program = if cfg!(target_os = "linux") {
        // Other users can start it even if they cannot access the folder.
        "/proc/self/exe".into()
    } else {
        std::env::current_exe().expect("the path of this program")
    };
    let mut command = Command::new(program);
    ignored(&mut command, test);
    command
}

/// Returns the command of [`rerun`] for an unprivileged user with access to the TUN device; root switches to another user.
///
/// Skips the test and returns `None` if root lacks the permission to do so. Linux only.
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

/// A shell script: opens the program, replaces the TUN device, and switches to another user.
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

/// Returns whether [`rerun`] started this process. Otherwise the user runs all ignored tests.
pub fn is_rerun() -> bool {
    std::env::var_os(RERUN).is_some()
}
