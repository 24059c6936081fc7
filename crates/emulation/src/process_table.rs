//! The processes of this machine (`proc(5)`).

/// The numbers of all processes.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name of a process.
pub(crate) fn name(process: u32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Fields of a process from its state on (`proc_pid_stat(5)`).
fn fields(process: u32) -> Option<Vec<String>> {
    let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name is in parentheses and may contain parentheses.
    let (_, fields) = line.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// The number of the parent of a process.
pub(crate) fn parent(process: u32) -> Option<u32> {
    fields(process)?.get(1)?.parse().ok()
}

/// `PF_EXITING` (`linux/sched.h`).
const EXITING: u32 = 0x4;

/// Whether a process is exiting: an init waits until its last process is reaped.
pub(crate) fn is_dead(process: u32) -> bool {
    let flags = fields(process).and_then(|fields| fields.get(6)?.parse::<u32>().ok());
    flags.is_none_or(|flags| flags & EXITING != 0)
}
