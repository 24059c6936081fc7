//! Real-time priority for the emulator's thread.

/// Requests real-time priority for the calling thread and returns whether the system granted it. Threads and processes
/// that it starts do not inherit it. `sched(7)`.
pub fn become_real_time() -> bool {
    // The lowest real-time priority: above ordinary threads, below the kernel's.
    let parameter = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter outlives the call; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}
