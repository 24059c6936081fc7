//! Leftovers of emulations whose process is gone.
//!
//! Namespaces and devices cannot be left over, because the kernel removes them with the process. A child process can
//! outlive a parent that was stopped, or frozen by a container's manager: the init of a process-ID namespace, or the
//! holder of a congestion controller, which keeps the controller in the kernel.

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use super::keeper;
use super::process_table::{is_dead, name, parent, processes};

/// A process without an owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// Its process ID.
    pub process: u32,
    /// A description.
    pub what: String,
}

/// Finds leftovers; running emulations have none.
#[must_use]
pub fn leftovers() -> Vec<Leftover> {
    let mut found = orphaned_inits();
    let holders = orphaned_holders();
    if !holders.is_empty() {
        // A holder whose parent has just ended is about to end too.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let still = orphaned_holders();
        found.extend(holders.into_iter().filter(|holder| still.contains(holder)));
    }
    found.sort_by_key(|leftover| leftover.process);
    found
}

fn orphaned_inits() -> Vec<Leftover> {
    // Process 1 is the init of this process's own namespace.
    processes()
        .filter(|&process| process != 1)
        .filter(|process| name(*process).as_deref() == keeper::INIT.to_str().ok())
        .filter(|process| !is_dead(*process) && !parent(*process).is_some_and(has_keeper))
        .map(|process| Leftover {
            process,
            what: "the first process of an emulation's commands, whose emulator is gone".into(),
        })
        .collect()
}

/// The program that holds a congestion controller in the kernel (`bpf/holder.c`).
const HOLDER: &str = "holder";

fn orphaned_holders() -> Vec<Leftover> {
    processes()
        .filter(|process| name(*process).as_deref() == Some(HOLDER))
        .filter(|process| !is_dead(*process) && is_orphaned_holder(*process))
        .map(|process| Leftover {
            process,
            what: "the holder of a congestion controller in the kernel (BPF), whose owner is gone".into(),
        })
        .collect()
}

/// Whether a process has registered a controller through a BPF link and its watched process has ended (number -1,
/// `pidfd_open(2)`).
fn is_orphaned_holder(process: u32) -> bool {
    let entries = std::fs::read_dir(format!("/proc/{process}/fdinfo"))
        .into_iter()
        .flatten()
        .flatten();
    let texts: Vec<String> = entries
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok())
        .collect();
    let has = |line: &str| texts.iter().any(|text| text.lines().any(|found| found == line));
    has("link_type:\tstruct_ops") && has("Pid:\t-1")
}

/// Kills leftovers and the processes that belong to them. Returns those that remain.
#[must_use]
pub fn clean() -> Vec<Leftover> {
    for leftover in leftovers() {
        if let Some(process) = Pid::from_raw(leftover.process as i32) {
            let _ = kill_process(process, Signal::KILL);
        }
    }
    // The kernel ends a namespace's processes before its init.
    for _ in 0..50 {
        if leftovers().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    leftovers()
}

/// Whether a process has the thread that is the parent of an init.
fn has_keeper(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok())
        .any(|comm| comm.trim_end() == keeper::THREAD)
}
