//! Commands inside hosts, none of which outlives the emulation.
//!
//! All of them, and whatever they start themselves, are in one process-ID namespace. Its first process ("init") belongs to a
//! thread here and dies with it, however that comes about (`PR_SET_PDEATHSIG`), and with init the kernel kills
//! everybody in the namespace (`pid_namespaces(7)`): also what has become a daemon, also under SIGKILL.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use super::command_environment::CommandEnvironment;
use crate::error::{Error, system_error};

/// What init is called among the machine's processes.
pub const INIT: &std::ffi::CStr = c"longfat-init";
/// What the thread is called that init belongs to.
pub const THREAD: &str = "longfat-keeper";

struct SpawnRequest {
    command: Command,
    /// A copy of the host's, so that it is there whatever becomes of the emulation.
    namespace: OwnedFd,
    host: usize,
    reply: SyncSender<io::Result<Child>>,
}

/// The thread that commands are children of.
#[derive(Debug)]
pub(crate) struct Keeper {
    requests: Option<Sender<SpawnRequest>>,
    thread: Option<JoinHandle<()>>,
    init: Pid,
}

impl Keeper {
    /// Begins a process-ID namespace.
    pub(crate) fn start(environment: CommandEnvironment) -> Result<Self, Error> {
        let (requests, received) = channel();
        let (ready, started) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name(THREAD.into())
            .spawn(move || match begin() {
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
        let init = started.map_err(|error| system_error("make a process-ID namespace", error))?;
        Ok(Self {
            init,
            requests: Some(requests),
            thread: Some(thread),
        })
    }

    /// Starts a command at a host, whose network namespace is this.
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
        answer.recv().map_err(|_| gone())?
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

fn keep(requests: &Receiver<SpawnRequest>, init: Pid, environment: &Arc<CommandEnvironment>) {
    while let Ok(mut request) = requests.recv() {
        let spawned = spawn(&mut request, environment);
        let _ = request.reply.send(spawned);
    }
    let _ = kill_process(init, Signal::KILL);
}

/// Waits for init. It is gone once all are who were in its namespace, and a command is so once whoever holds its `Child`
/// has waited for it: that must not hold up the emulation's end for long.
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
        // SAFETY: the order holds the descriptor open until the child has been started.
        let namespace = unsafe { BorrowedFd::borrow_raw(namespace) };
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))?;
        environment.enter(host);
        Ok(())
    };
    // SAFETY: between fork and exec there are system calls alone: nothing is allocated and no lock is taken.
    unsafe { request.command.pre_exec(prepare) };
    request.command.spawn()
}

/// Gives the calling thread a process-ID namespace for its children, and starts its init.
fn begin() -> io::Result<Pid> {
    // SAFETY: a process-ID namespace is no file table. From here on this thread can start no other thread.
    unsafe { unshare_unsafe(UnshareFlags::NEWPID) }?;
    let parent =
        rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty())?;
    // SAFETY: the child makes system calls alone, as is right after a fork among threads, and never returns.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => be_init(&parent),
        child => Pid::from_raw(child).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// The first process of the namespace: it waits for its parent's death, and adopts whom others have left.
fn be_init(parent: &OwnedFd) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A parent that died before that call sends no signal any more, but its descriptor can be read (`pidfd_open(2)`).
    let none = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let has_died = poll(&mut [PollFd::new(parent, PollFlags::IN)], Some(&none)).is_ok_and(|ready| ready > 0);
    if has_died {
        // SAFETY: ends this process without running anything of its parent's.
        unsafe { libc::_exit(0) };
    }
    let _ = rustix::thread::set_name(INIT);
    // SAFETY: system calls on this process alone; nothing here uses a descriptor after they are closed.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        // Whoever dies as its child is forgotten at once (`sigaction(2)`).
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        loop {
            libc::pause();
        }
    }
}
