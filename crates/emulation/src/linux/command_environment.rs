//! What a command finds around it at a host: the host's name, the names of the others, and processes of the emulation alone.

use std::ffi::{CStr, CString};
use std::net::Ipv4Addr;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::write;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Where names are looked up (`hosts(5)`).
const NAMES: &CStr = c"/etc/hosts";

/// What commands find around them, of all hosts of an emulation.
#[derive(Debug)]
pub(crate) struct CommandEnvironment {
    /// The file of names.
    names: Vec<u8>,
    /// The hosts' own, in order.
    hosts: Vec<CString>,
}

impl CommandEnvironment {
    /// Of machines with these names and addresses, the first of which are the hosts. A name that a file of names cannot hold
    /// is left out.
    pub(crate) fn new<'a>(machines: impl Iterator<Item = (&'a str, Ipv4Addr)>, hosts: usize) -> Self {
        let mut names = std::fs::read("/etc/hosts").unwrap_or_default();
        names.push(b'\n');
        let mut own = Vec::new();
        for (name, address) in machines {
            if !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#') {
                names.extend(format!("{address} {name}\n").into_bytes());
            }
            if own.len() < hosts {
                own.push(CString::new(name).unwrap_or_default());
            }
        }
        Self { names, hosts: own }
    }

    /// Puts the calling process into namespaces in which all this is so. To be called after a fork: it makes system calls
    /// alone. Where the system does not allow any of it, the command finds what there is outside: names and numbers of
    /// processes are conveniences, on which nothing that is measured depends.
    pub(crate) fn enter(&self, host: usize) {
        // SAFETY: neither is a file table.
        if unsafe { unshare_unsafe(UnshareFlags::NEWUTS) }.is_ok() {
            let name = self.hosts[host].as_bytes();
            let _ = rustix::system::sethostname(&name[..name.len().min(64)]);
        }
        // SAFETY: as above.
        let apart = unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.is_ok();
        // Nothing must be mounted where others see it.
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        if !apart || mount_change(c"/", private).is_err() {
            return;
        }
        self.mount_names();
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        let _ = mount(c"proc", c"/proc", c"proc", flags, None);
    }

    /// Puts the file of names in the place of the system's. It is made in a file system in memory that is there for no longer,
    /// over a directory that is there on every system.
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
