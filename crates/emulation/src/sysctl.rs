//! Sysctls of network namespaces (Linux' `Documentation/networking/ip-sysctl.rst`): those of the machine, and changes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;

use foundation::Problem;
use serde::Serialize;

use crate::error::{Error, system_error};
use crate::options::Sysctl;

/// Where the settings of a network namespace are.
const ROOT: &str = "/proc/sys/net";
/// Folders whose files are settings of a whole namespace, not of a device.
const FOLDERS: [&str; 6] = ["core", "ipv4", "ipv6", "mptcp", "sctp", "unix"];
/// Settings that hosts do not copy: a host is no router, and a change of this setting resets others.
const OWN: [&str; 1] = ["ipv4/ip_forward"];

/// A setting of an emulated host that differs from the machine's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SysctlDifference {
    /// The host; `None` for all hosts.
    pub host: Option<String>,
    /// The name, such as `net.ipv4.icmp_ratelimit`.
    pub key: String,
    /// The value at the host.
    pub value: String,
    /// The value in the namespace of the calling process; `None` if it has no such setting.
    pub machine: Option<String>,
}

/// The changeable settings of a network namespace that every user may read, by their paths below [`ROOT`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads the settings of the calling thread's namespace.
    pub(crate) fn here() -> Self {
        let mut found = BTreeMap::new();
        for folder in FOLDERS {
            let entries = std::fs::read_dir(format!("{ROOT}/{folder}"))
                .into_iter()
                .flatten()
                .flatten();
            for entry in entries {
                // Anyone may read, the owner may write.
                const BOTH: u32 = 0o204;
                let is_open = entry
                    .metadata()
                    .is_ok_and(|data| data.is_file() && data.permissions().mode() & BOTH == BOTH);
                if is_open && let Ok(value) = std::fs::read_to_string(entry.path()) {
                    let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                    found.insert(name, normal(&value));
                }
            }
        }
        Self(found)
    }

    /// The settings that both namespaces have and that a host copies, with this one's values where `other` differs.
    pub(crate) fn changes_from(&self, other: &Self) -> Self {
        let is_copied = |name: &String, value: &String| {
            !OWN.contains(&name.as_str()) && other.0.get(name).is_some_and(|other| other != value)
        };
        let changed = self.0.iter().filter(|(name, value)| is_copied(name, value));
        Self(
            changed
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Writes the settings in the calling thread's namespace. Those that the kernel refuses stay: they are differences.
    pub(crate) fn apply(&self) {
        for (name, value) in &self.0 {
            let _ = std::fs::write(format!("{ROOT}/{name}"), value);
        }
    }

    /// The settings of the calling thread's namespace that differ from these, and those with the given names.
    pub(crate) fn differences_here<'a>(
        &self,
        named: impl Iterator<Item = &'a Sysctl>,
    ) -> Vec<SysctlDifference> {
        let mut here = Self::here().0;
        for sysctl in named {
            let name = below_root(&sysctl.key);
            if let Ok(value) = std::fs::read_to_string(format!("{ROOT}/{name}")) {
                here.insert(name, normal(&value));
            }
        }
        let differs = |(name, value): &(String, String)| self.0.get(name) != Some(value);
        let difference = |(name, value): (String, String)| SysctlDifference {
            host: None,
            key: format!("net.{}", name.replace('/', ".")),
            value,
            machine: self.0.get(&name).cloned(),
        };
        here.into_iter().filter(differs).map(difference).collect()
    }
}

/// Checks the name of a setting.
///
/// # Errors
/// A name outside of `net`, and one with other characters than names have.
pub(crate) fn check(key: &str) -> Result<(), Error> {
    let is_name = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    if key.starts_with("net.") && key.split('.').all(is_name) {
        return Ok(());
    }
    let message = format!("{key:?} is not a setting of networks: write e.g. net.ipv4.tcp_ecn");
    Err(Problem::new("sysctl", message).into())
}

/// Sets a setting of the calling thread's namespace as requested, and verifies that the kernel accepted the value.
///
/// # Errors
/// A setting that a namespace does not have, and a refused value.
pub(crate) fn set_requested(sysctl: &Sysctl) -> Result<(), Error> {
    let Sysctl { key, value, .. } = sysctl;
    let path = format!("{ROOT}/{}", below_root(key));
    let wrong = |message: String| Err(Problem::new("sysctl", message).into());
    match std::fs::write(&path, value) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return wrong(format!(
                "{key}: a network namespace has no such setting: see ls /proc/sys/net inside of longfat shell"
            ));
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            return wrong(format!("{key}: the kernel refuses the value {value:?}"));
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return wrong(format!("{key}: cannot be changed in a network namespace"));
        }
        Err(error) => return Err(system_error(format!("write {value:?} to {path}"), error)),
    }
    let found = std::fs::read_to_string(&path)
        .map(|value| normal(&value))
        .unwrap_or_default();
    if found == normal(value) {
        return Ok(());
    }
    wrong(format!(
        "{key}: the kernel changes the value {value:?} to {found:?}"
    ))
}

/// Sets a setting of the calling thread's namespace that emulation needs. Ignores one that the kernel does not have.
pub(crate) fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/{name}");
    match std::fs::write(&path, value) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(system_error(format!("write {value:?} to {path}"), error))
        }
        _ => Ok(()),
    }
}

fn below_root(key: &str) -> String {
    key.trim_start_matches("net.").replace('.', "/")
}

/// A value with single spaces: the kernel separates numbers by tabs.
fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_networks() {
        for key in [
            "net.ipv4.tcp_rmem",
            "net.ipv4.conf.all.rp_filter",
            "net.core.somaxconn",
        ] {
            assert!(check(key).is_ok(), "{key}");
        }
        for key in [
            "kernel.hostname",
            "net",
            "net.",
            "net..ipv4",
            "net.ipv4/../../kernel",
            "ipv4.tcp_rmem",
            "",
        ] {
            assert!(check(key).is_err(), "{key}");
        }
    }

    #[test]
    fn copies_values_that_differ_in_both_namespaces() {
        let settings = |pairs: &[(&str, &str)]| {
            let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
            Settings(pairs.iter().map(owned).collect())
        };
        let machine = settings(&[
            ("ipv4/tcp_ecn", "1"),
            ("ipv4/tcp_sack", "1"),
            ("ipv4/ip_forward", "1"),
            ("core/rmem_max", "9"),
        ]);
        let fresh = settings(&[
            ("ipv4/tcp_ecn", "2"),
            ("ipv4/tcp_sack", "1"),
            ("ipv4/ip_forward", "0"),
        ]);
        assert_eq!(
            machine.changes_from(&fresh).0,
            settings(&[("ipv4/tcp_ecn", "1")]).0
        );
    }
}
