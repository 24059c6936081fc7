//! Skipped tests, and the requirements that turn a skip into a failure.

use std::fmt::Display;
use std::io::Write;

/// Names the file that collects the reasons of a whole run; `make test` prints them at its end.
const COLLECTED: &str = "LONGFAT_SKIPPED";

/// Names the requirements that this machine must meet, separated by commas, or `all`.
const REQUIRED: &str = "LONGFAT_REQUIRE";

/// What a test needs of the machine. `tests/requirements.py` has the same list for tests in Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Network namespaces: root, or user namespaces for everybody.
    Netns,
    /// TUN devices: `/dev/net/tun`.
    Tun,
    /// Congestion controllers in BPF.
    Bpf,
    /// MPTCP in the kernel with a path manager in user space.
    Mptcp,
    /// Raw sockets: `CAP_NET_RAW`.
    Raw,
    /// Root, to start processes as an ordinary user.
    Users,
    /// An installed program.
    Programs,
}

impl Requirement {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Netns,
        Self::Tun,
        Self::Bpf,
        Self::Mptcp,
        Self::Raw,
        Self::Users,
        Self::Programs,
    ];

    /// Its name in `LONGFAT_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Netns => "netns",
            Self::Tun => "tun",
            Self::Bpf => "bpf",
            Self::Mptcp => "mptcp",
            Self::Raw => "raw",
            Self::Users => "users",
            Self::Programs => "programs",
        }
    }

    /// Returns whether a list like `LONGFAT_REQUIRE`'s has this requirement.
    ///
    /// # Panics
    ///
    /// If the list has an unknown name.
    fn is_in(self, list: &str) -> bool {
        let names: Vec<&str> = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        for &name in &names {
            assert!(
                name == "all" || Self::ALL.iter().any(|known| known.name() == name),
                "{REQUIRED}: unknown requirement {name:?}; known: all, {}",
                Self::ALL.map(Self::name).join(", ")
            );
        }
        names.contains(&"all") || names.contains(&self.name())
    }
}

/// Reports a skipped test past the capture of the test harness. The caller returns right after.
///
/// # Panics
///
/// If `LONGFAT_REQUIRE` names the requirement: then the test fails instead.
pub fn skip(requirement: Requirement, reason: impl Display) {
    let reason = reason.to_string().replace('\n', " ");
    let required = std::env::var(REQUIRED).unwrap_or_default();
    assert!(
        !requirement.is_in(&required),
        "{REQUIRED} has {}, but: {reason}",
        requirement.name()
    );
    let name = std::thread::current().name().unwrap_or("test").to_owned();
    let line = format!("{name}: {}: {reason}", requirement.name());
    let _ = writeln!(std::io::stderr().lock(), "skipped: {line}");
    if let Some(file) = std::env::var_os(COLLECTED)
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::Requirement;

    #[test]
    fn parses_a_list_of_requirements() {
        assert!(Requirement::Tun.is_in("netns, tun"));
        assert!(!Requirement::Bpf.is_in("netns,tun"));
        assert!(!Requirement::Bpf.is_in(""));
        assert!(
            Requirement::ALL
                .iter()
                .all(|requirement| requirement.is_in("all"))
        );
    }

    #[test]
    #[should_panic(expected = "unknown requirement \"netsn\"")]
    fn rejects_unknown_names() {
        Requirement::Tun.is_in("netsn");
    }
}
