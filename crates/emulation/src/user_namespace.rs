//! User namespaces, which give an unprivileged process the capabilities for emulation (`user_namespaces(7)`).

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{getgid, getuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::privileges::{closed_switches, is_inside, missing_capabilities, namespace_remedy};
use crate::error::{Error, system_error};

/// Moves the process into a user namespace in which it has all capabilities, unless it has the required ones. It keeps
/// its user and group, so that programs that refuse to run as root run there.
///
/// # Errors
/// [`Error::Permission`] if the system refuses, or if the process has several threads (see [`inside`]).
pub fn enter() -> Result<(), Error> {
    if missing_capabilities().is_empty() {
        return Ok(());
    }
    if std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        return Err(Error::Permission {
            what: "enter a user namespace with several threads".into(),
            remedy: "enter it before the first thread starts".into(),
        });
    }
    enter_as(getuid().as_raw(), getgid().as_raw()).map_err(refused)
}

/// Makes a command run in a new user namespace, as root with all capabilities. It is killed with the thread that
/// starts it.
pub fn inside(command: &mut Command) {
    let prepare = || {
        // After a change of user, /proc/self is writable only if the process is dumpable (`PR_SET_DUMPABLE(2const)`).
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?;
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        enter_as(0, 0)
    };
    // SAFETY: only system calls between fork and exec, without allocation.
    unsafe { command.pre_exec(prepare) };
}

fn refused(error: io::Error) -> Error {
    let is_closed = !closed_switches().is_empty();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::Permission {
            what: "create a user namespace".into(),
            remedy: namespace_remedy(),
        },
        // A limit of zero (`user.max_user_namespaces`) is reported as `ENOSPC`.
        _ if is_closed => Error::Permission {
            what: "create a user namespace".into(),
            remedy: namespace_remedy(),
        },
        _ => system_error("create a user namespace", error),
    }
}

/// Lets a program that the calling process executes keep the capabilities of a user other than root, with which it
/// controls its host like root (`capabilities(7)`). It only makes system calls, so it may run after a fork.
pub(crate) fn keep_capabilities() {
    use rustix::thread::{capabilities, configure_capability_in_ambient_set, set_capabilities};
    if getuid().is_root() || !is_inside() {
        return;
    }
    if let Ok(mut sets) = capabilities(None) {
        sets.inheritable = sets.permitted;
        if set_capabilities(None, sets).is_ok() {
            for one in sets.permitted.iter() {
                // Programs run without those that the system refuses.
                let _ = configure_capability_in_ambient_set(one, true);
            }
        }
    }
}

/// Moves a single-threaded process into a user namespace in which its user and group have these numbers. It only makes
/// system calls, so it may run after a fork.
fn enter_as(inner_user: u32, inner_group: u32) -> io::Result<()> {
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    // SAFETY: does not unshare the file table.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    // The kernel allows a group map only after setgroups is denied (`user_namespaces(7)`).
    write(c"/proc/self/setgroups", format_args!("deny"))?;
    write(c"/proc/self/uid_map", format_args!("{inner_user} {user} 1"))?;
    write(c"/proc/self/gid_map", format_args!("{inner_group} {group} 1"))
}

/// Writes a line of at most 32 bytes with one call, as these files require, without allocation.
fn write(path: &std::ffi::CStr, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags, open};
    let mut line = [0; 32];
    let mut rest = &mut line[..];
    io::Write::write_fmt(&mut rest, text)?;
    let length = 32 - rest.len();
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, &line[..length])?;
    Ok(())
}
