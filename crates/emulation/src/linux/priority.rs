//! Real-time priority for the emulator's thread.

/// Asks the system to run the calling thread before all others that are not real-time themselves, and says whether it
/// does. Threads and processes that it starts are as all others. `sched(7)`.
pub fn become_real_time() -> bool {
    // The least of all real-time priorities: above all ordinary threads, below the kernel's own.
    let parameter = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the system reads the parameter, which lives; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}
