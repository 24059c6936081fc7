//! The kernel's default congestion controller of TCP.

/// Returns the default of the calling thread's network namespace, with its version if the name has several. New
/// namespaces inherit it. Returns `None` if the system does not report it.
pub(crate) fn here() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").ok()?;
    Some(label(name.trim()).into())
}

/// Names Linux's BBR with its version, since versions 2 and 3 are not in the kernel.
fn label(name: &str) -> &str {
    if name == "bbr" { "bbr (version 1)" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_version_of_bbr() {
        assert_eq!(label("bbr"), "bbr (version 1)");
        assert_eq!(label("cubic"), "cubic");
        assert!(here().is_some_and(|name| !name.is_empty()));
    }
}
