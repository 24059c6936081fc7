//! The environment of a command at a host: the host's name, the names of all hosts, and a view of the emulation's
//! processes only.

use std::ffi::{CStr, CString};
use std::net::Ipv4Addr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::write;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::address::to_ipv6;

/// The file of host names (`hosts(5)`).
const NAMES: &CStr = c"/etc/hosts";

/// The environment of commands at all hosts.
#[derive(Debug)]
pub(crate) struct CommandEnvironment {
    /// Content of the file of host names.
    names: Vec<u8>,
    /// Names of the hosts, in order.
    hosts: Vec<CString>,
}

impl CommandEnvironment {
    /// For machines with these names and addresses, the first of which are the hosts. Names with characters that the
    /// file format does not allow are left out.
    pub(crate) fn new<'a>(
        machines: impl Iterator<Item = (&'a str, Ipv4Addr)>,
        hosts: usize,
        has_ipv6: bool,
    ) -> Self {
        let mut names = std::fs::read("/etc/hosts").unwrap_or_default();
        names.push(b'\n');
        let mut own = Vec::new();
        for (name, address) in machines {
            if !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#') {
                names.extend(format!("{address} {name}\n").into_bytes());
                if has_ipv6 {
                    names.extend(format!("{} {name}\n", to_ipv6(address)).into_bytes());
                }
            }
            if own.len() < hosts {
                own.push(CString::new(name).unwrap_or_default());
            }
        }
        Self { names, hosts: own }
    }

    /// Moves the calling process into namespaces with this environment. It may run after a fork: it only makes system
    /// calls. Where the system refuses, the command keeps the outer names and process IDs, which no measurement depends
    /// on.
    pub(crate) fn enter(&self, host: usize) {
        // SAFETY: does not unshare the file table.
        if unsafe { unshare_unsafe(UnshareFlags::NEWUTS) }.is_ok() {
            let name = self.hosts[host].as_bytes();
            let _ = rustix::system::sethostname(&name[..name.len().min(64)]);
        }
        // SAFETY: as above.
        let apart = unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.is_ok();
        // Keep mounts out of other namespaces.
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        if !apart || mount_change(c"/", private).is_err() {
            return;
        }
        self.mount_names();
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = mount(c"proc", c"/proc", c"proc", flags, None);
    }

    /// Replaces the system's file of host names. The new file is in a temporary file system, mounted for a moment over
    /// a directory that every system has.
    fn mount_names(&self) {
        const FILE: &CStr = c"/proc/hosts";
        if mount(
            c"names",
            c"/proc",
            c"tmpfs",
            MountFlags::NOSUID | MountFlags::NODEV,
            None,
        )
        .is_err()
        {
            return;
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        if let Ok(file) = open(FILE, flags, Mode::from_raw_mode(0o644))
            && write(&file, &self.names) == Ok(self.names.len())
        {
            let _ = mount_bind(FILE, NAMES);
        }
        let _ = unmount(c"/proc", UnmountFlags::DETACH);
    }
}
