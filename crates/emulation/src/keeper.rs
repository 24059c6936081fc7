//! Commands at hosts, which end with the emulation.
//!
//! All commands and their descendants are in one process-ID namespace. Its init is a child of a thread of this process
//! and dies with it (`PR_SET_PDEATHSIG`). Then the kernel kills all processes in the namespace (`pid_namespaces(7)`),
//! including daemons, even after SIGKILL.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use foundation::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::command_environment::CommandEnvironment;
use super::{process_table, user_namespace};
use crate::error::{Error, system_error};

/// The process name of init.
pub const INIT: &std::ffi::CStr = c"longfat-init";
/// The name of the thread that is init's parent.
pub const THREAD: &str = "longfat-keeper";

struct SpawnRequest {
    command: Command,
    /// A duplicate of the host's descriptor, independent of the emulation's life.
    namespace: OwnedFd,
    host: usize,
    reply: SyncSender<io::Result<Child>>,
}

/// The thread that is the parent of all commands.
#[derive(Debug)]
pub(crate) struct Keeper {
    requests: Option<Sender<SpawnRequest>>,
    thread: Option<JoinHandle<()>>,
    init: Pid,
    /// Handles of the commands, which end with the emulation.
    commands: Mutex<Vec<(Pid, OwnedFd)>>,
}

impl Keeper {
    /// Creates a process-ID namespace.
    pub(crate) fn start(environment: CommandEnvironment) -> Result<Self, Error> {
        let (requests, received) = channel();
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(THREAD.into())
            .spawn(move || match create_namespace() {
                Ok(init) => {
                    let _ = ready.send(Ok(init));
                    keep(&received, init, &Arc::new(environment));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            })
            .map_err(|error| system_error("start a thread", error))?;
        let started = started
            .recv()
            .unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
        let init = started.map_err(|error| system_error("create a process-ID namespace", error))?;
        Ok(Self {
            init,
            requests: Some(requests),
            thread: Some(thread),
            commands: Mutex::default(),
        })
    }

    /// Sends SIGTERM to the commands and to the daemons that they started, with their process groups, and waits until
    /// they have ended: at most for the time that `patience` returns.
    pub(crate) fn stop_commands(&self, patience: &mut dyn FnMut() -> Duration) {
        const INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);
        let start = std::time::Instant::now();
        let mut signalled = HashSet::new();
        loop {
            let heads = self.heads();
            for &head in heads.iter().filter(|&&head| !signalled.contains(&head)) {
                terminate(head);
            }
            if heads.is_empty() || start.elapsed().as_nanos() >= u128::from(patience().as_nanos()) {
                return;
            }
            signalled.extend(heads);
            std::thread::sleep(INTERVAL);
        }
    }

    /// The running commands, and the processes whose parent has ended: init has adopted them.
    fn heads(&self) -> Vec<Pid> {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        commands.retain(|(_, handle)| !has_ended(handle));
        let init = self.init.as_raw_nonzero().get() as u32;
        let adopted = process_table::processes()
            .filter(|&process| process_table::parent(process) == Some(init))
            .filter(|&process| !process_table::is_dead(process))
            .filter_map(|process| Pid::from_raw(process as i32));
        commands
            .iter()
            .map(|(process, _)| *process)
            .chain(adopted)
            .collect()
    }

    /// Starts a command in the network namespace of a host.
    pub(crate) fn spawn(
        &self,
        host: usize,
        namespace: BorrowedFd<'_>,
        command: Command,
    ) -> io::Result<Child> {
        let (reply, answer) = sync_channel(1);
        let namespace = namespace.try_clone_to_owned()?;
        let gone = || io::Error::other("the emulation has ended");
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        let request = SpawnRequest {
            command,
            namespace,
            host,
            reply,
        };
        requests.send(request).map_err(|_| gone())?;
        let child = answer.recv().map_err(|_| gone())??;
        let process = Pid::from_child(&child);
        if let Ok(handle) = rustix::process::pidfd_open(process, rustix::process::PidfdFlags::empty()) {
            let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
            commands.retain(|(_, handle)| !has_ended(handle));
            commands.push((process, handle));
        }
        Ok(child)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
            reap(self.init);
        }
    }
}

/// Sends SIGTERM to a process, and to its group unless that is also the group of this process.
fn terminate(process: Pid) {
    let group = rustix::process::getpgid(Some(process)).ok();
    // It may have ended meanwhile.
    let _ = match group.filter(|&group| group != rustix::process::getpgrp()) {
        Some(group) => rustix::process::kill_process_group(group, Signal::TERM),
        None => kill_process(process, Signal::TERM),
    };
}

/// Whether the process of a handle has ended: the handle is readable (`pidfd_open(2)`).
fn has_ended(handle: &OwnedFd) -> bool {
    const NONE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&NONE)).is_ok_and(|ready| ready > 0)
}

fn keep(requests: &Receiver<SpawnRequest>, init: Pid, environment: &Arc<CommandEnvironment>) {
    while let Ok(mut request) = requests.recv() {
        let spawned = spawn(&mut request, environment);
        let _ = request.reply.send(spawned);
    }
    let _ = kill_process(init, Signal::KILL);
}

/// Waits for init, which ends after all processes of its namespace. A command ends only once the holder of its `Child`
/// has waited for it, so the wait is limited.
fn reap(init: Pid) {
    for _ in 0..100 {
        if !matches!(
            waitpid(Some(init), WaitOptions::NOHANG),
            Ok(None) | Err(Errno::INTR)
        ) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    let wait = move || while let Err(Errno::INTR) = waitpid(Some(init), WaitOptions::empty()) {};
    let _ = std::thread::Builder::new().name("reaper".into()).spawn(wait);
}

fn spawn(request: &mut SpawnRequest, environment: &Arc<CommandEnvironment>) -> io::Result<Child> {
    let (namespace, host) = (request.namespace.as_raw_fd(), request.host);
    let environment = Arc::clone(environment);
    let prepare = move || {
        // SAFETY: the request keeps the descriptor open until the child has started.
        let namespace = unsafe { BorrowedFd::borrow_raw(namespace) };
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
        environment.enter(host);
        user_namespace::keep_capabilities();
        Ok(())
    };
    // SAFETY: only system calls between fork and exec, without allocation or locks.
    unsafe { request.command.pre_exec(prepare) };
    request.command.spawn()
}

/// Gives the calling thread's children a process-ID namespace, and starts its init.
fn create_namespace() -> io::Result<Pid> {
    // SAFETY: does not unshare the file table. From here on this thread cannot start threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    let parent =
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())?;
    // SAFETY: the child only makes system calls, as required after a fork in a threaded process, and does not return.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => be_init(&parent),
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The first process of the namespace. It waits for its parent's death and adopts orphans.
fn be_init(parent: &OwnedFd) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // If the parent died before that call, no signal follows.
    if has_ended(parent) {
        // SAFETY: exits without running the parent's exit handlers.
        unsafe { libc::_exit(0) };
    }
    let _ = rustix::thread::set_name(INIT);
    // SAFETY: system calls on this process alone; no descriptor is used after they are closed.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        // The kernel reaps children at once (`sigaction(2)`).
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        loop {
            libc::pause();
        }
    }
}
