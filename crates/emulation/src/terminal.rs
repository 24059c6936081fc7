//! Ownership of the terminal while a command runs at a host.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Returns the terminal on drop. Until then keys such as Ctrl-C go to the command only.
pub(crate) struct Terminal {
    /// The previous foreground process group.
    group: libc::pid_t,
}

impl Terminal {
    /// Makes the command take over the terminal when it starts, if this process has it.
    pub(crate) fn hand_over(command: &mut Command) -> Option<Self> {
        // SAFETY: system calls without pointers.
        let (group, owner) = unsafe { (libc::getpgrp(), libc::tcgetpgrp(libc::STDIN_FILENO)) };
        if !std::io::stdin().is_terminal() || owner != group {
            return None;
        }
        command.process_group(0);
        // SAFETY: only system calls between fork and exec.
        unsafe { command.pre_exec(|| take_terminal(libc::getpid())) };
        Some(Self { group })
    }
}

/// Makes the terminal at the command's standard input its controlling terminal, in a new session, as terminal emulators
/// do.
pub(crate) fn give(command: &mut Command) {
    let prepare = || {
        // SAFETY: system calls without pointers.
        unsafe {
            libc::setsid();
            match libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        }
    };
    // SAFETY: only system calls between fork and exec.
    unsafe { command.pre_exec(prepare) };
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = take_terminal(self.group);
    }
}

/// Makes a process group the terminal's foreground group.
fn take_terminal(group: libc::pid_t) -> std::io::Result<()> {
    // SAFETY: changes a signal's disposition and restores it. Otherwise SIGTTOU would stop a background process
    // (`tcsetpgrp(3)`).
    unsafe {
        let before = libc::signal(libc::SIGTTOU, libc::SIG_IGN);
        let taken = libc::tcsetpgrp(libc::STDIN_FILENO, group);
        libc::signal(libc::SIGTTOU, before);
        match taken {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}
