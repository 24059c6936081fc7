//! Options of a path manager.

use transport::mptcp::policy::PolicyConfig;

/// Options of a path manager.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy that chooses the paths of connections.
    pub policy: PolicyConfig,
    /// The name of the abstract Unix socket that serves applications; usually [`super::NAME`].
    pub name: String,
    /// Whether to set `net.mptcp.pm_type` to user space while the path manager runs. Otherwise it must be set already.
    pub set_sysctl: bool,
    /// Whether to manage only the connections that an application registered.
    pub requested_only: bool,
    /// Whether to announce this host's other addresses to peers that connect to it (ADD_ADDR, RFC 8684, section 3.4.1).
    pub announce: bool,
    /// Seed of the policy's random draws.
    pub seed: u64,
}
