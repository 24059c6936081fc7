//! Whose the terminal is while a command runs at a host.

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The terminal while the command has it: then keys such as Ctrl-C are the command's alone.
pub(crate) struct Terminal {
    /// Whose it was.
    group: libc::pid_t,
}

impl Terminal {
    /// Has the command take the terminal over when it starts, if this process has it.
    pub(crate) fn hand_over(command: &mut Command) -> Option<Self> {
        // SAFETY: system calls that touch no memory.
        let (group, owner) = unsafe { (libc::getpgrp(), libc::tcgetpgrp(libc::STDIN_FILENO)) };
        if !std::io::stdin().is_terminal() || owner != group {
            return None;
        }
        command.process_group(0);
        // SAFETY: between fork and exec there are system calls alone.
        unsafe { command.pre_exec(|| take_terminal(libc::getpid())) };
        Some(Self { group })
    }
}

/// Makes the terminal that is the command's standard input its own, in a session of its own, as a terminal's emulator does.
pub(crate) fn give(command: &mut Command) {
    let begin = || {
        // SAFETY: system calls that touch no memory.
        unsafe {
            libc::setsid();
            match libc::ioctl(libc::STDIN_FILENO, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        }
    };
    // SAFETY: between fork and exec there are system calls alone.
    unsafe { command.pre_exec(begin) };
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = take_terminal(self.group);
    }
}

/// Makes a process group the one that the terminal belongs to.
fn take_terminal(group: libc::pid_t) -> std::io::Result<()> {
    // SAFETY: sets how this process takes a signal, and sets it back. Whoever takes the terminal from the background would be
    // stopped otherwise (`tcsetpgrp(3)`).
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
