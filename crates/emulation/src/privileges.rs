//! Capabilities of the process, and the settings that restrict user namespaces.

/// The required capabilities by number (`linux/capability.h`).
const NEEDED: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)];

/// Returns the required capabilities that the calling thread lacks.
#[must_use]
pub fn missing_capabilities() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let lacks = |&&(_, number): &&(&str, u32)| effective & 1 << number == 0;
    NEEDED.iter().filter(lacks).map(|&(name, _)| name).collect()
}

/// Settings that disable user namespaces.
const SWITCHES: [Switch; 3] = [
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "15000"),
];

/// A setting that disables user namespaces: name, disabling value, enabling value.
type Switch = (&'static str, &'static str, &'static str);

/// Returns the settings that disable user namespaces for unprivileged users on this system. Some systems allow the
/// namespace and refuse the operations in it (AppArmor).
pub(crate) fn closed_switches() -> Vec<Switch> {
    let is_closed = |(name, closed, _): &Switch| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        std::fs::read_to_string(path).is_ok_and(|value| value.trim() == *closed)
    };
    SWITCHES.into_iter().filter(is_closed).collect()
}

/// Returns why user namespaces are not available here, and how to fix it.
#[must_use]
pub fn namespace_remedy() -> String {
    remedy_for(&closed_switches())
}

fn remedy_for(closed: &[Switch]) -> String {
    if closed.is_empty() {
        return "run as root (a container or sandbox may also forbid user namespaces)".into();
    }
    let joined =
        |one: fn(&Switch) -> String, with: &str| closed.iter().map(one).collect::<Vec<_>>().join(with);
    format!(
        "{}: run as root, or allow it: sysctl {}",
        joined(|(name, value, _)| format!("{name} is {value}"), " and "),
        joined(|(name, _, value)| format!("{name}={value}"), " ")
    )
}

/// Whether the process is in a user namespace other than the machine's.
#[must_use]
pub fn is_inside() -> bool {
    // The inode of the machine's user namespace (`PROC_USER_INIT_INO`).
    const FIRST: u64 = 0xEFFF_FFFD;
    rustix::fs::stat(c"/proc/self/ns/user").is_ok_and(|found| found.st_ino != FIRST)
}

/// Returns how to get the privileges that an operation lacked.
pub(crate) fn remedy() -> String {
    let missing = missing_capabilities();
    if !missing.is_empty() {
        return format!(
            "this process lacks {}: run as root, or in a user namespace (unshare --user --map-root-user)",
            missing.join(" and ")
        );
    }
    if is_inside() {
        return format!("refused to the root of a user namespace: {}", namespace_remedy());
    }
    "this process has the capabilities, but a container or sandbox forbids it".into()
}

#[cfg(test)]
mod tests {
    use super::{SWITCHES, remedy_for};

    #[test]
    fn names_all_settings_that_disable_user_namespaces() {
        assert_eq!(
            remedy_for(&SWITCHES[1..]),
            "kernel.unprivileged_userns_clone is 0 and user.max_user_namespaces is 0: run as root, or allow it: \
             sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000"
        );
        assert!(remedy_for(&[]).starts_with("run as root"));
    }
}
