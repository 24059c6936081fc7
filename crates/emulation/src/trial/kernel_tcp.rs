//! Translates a study's TCP settings to those of a kernel. Settings without a counterpart are errors.

use std::collections::BTreeMap;

use foundation::Problem;
use serde_json::{Map, Value};
use transport::mptcp::policy::PolicyConfig;
use transport::tcp::{EcnMode, Profile, TcpConfig};

/// A study's TCP settings for a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelTcp {
    /// The congestion controller's name in the kernel.
    pub congestion: String,
    /// Files below `/proc/sys` of each host's namespace and their values.
    pub sysctls: Vec<(&'static str, String)>,
    /// Maximum segment size including options (`TCP_MAXSEG`); 0 for the kernel's default.
    pub segment: u32,
    /// Whether to disable Nagle's algorithm (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Whether to use TCP Fast Open (RFC 7413).
    pub fast_open: bool,
    /// The path policy of MPTCP.
    pub multipath: Option<PolicyConfig>,
}

/// Keys that a kernel supports.
const KNOWN: [&str; 16] = [
    "kind",
    "path",
    "stack",
    "profile",
    "congestion",
    "mss",
    "sack",
    "timestamps",
    "window_scaling",
    "ecn",
    "nagle",
    "send_buffer",
    "send_autotuning",
    "receive_buffer",
    "receive_autotuning",
    "fast_open",
];

/// Linux's defaults for the first two values of `tcp_wmem` and `tcp_rmem`.
const MINIMUM: u64 = 4096;
const INITIAL_SEND: u64 = 16_384;
const INITIAL_RECEIVE: u64 = 131_072;

/// Parameters that a BPF controller supports, in alphabetical order.
fn parameters(controller: &str) -> &'static [&'static str] {
    match controller {
        "vegas" => &["alpha", "beta", "gamma"],
        _ => &[],
    }
}

/// The kernel's name of a study's controller with these settings.
fn kernel_name(
    controller: &str,
    settings: &Map<String, Value>,
    names: &ControllerNames,
) -> Result<String, Vec<Problem>> {
    let known = parameters(controller);
    let is_known = |key: &str| known.contains(&key);
    let strange = settings
        .iter()
        .filter(|(key, value)| key.as_str() != "kind" && *value != "linux" && !is_known(key));
    let problems: Vec<Problem> = strange
        .map(|(key, _)| {
            let message = if known.is_empty() {
                "not supported by a kernel's controller".to_owned()
            } else {
                format!(
                    "not supported by a kernel's {controller}: allowed: {}",
                    known.join(", ")
                )
            };
            Problem::new(format!("congestion.{key}"), message)
        })
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let given: Vec<String> = known
        .iter()
        .filter_map(|key| settings.get(*key).map(|value| format!("{key}={value}")))
        .collect();
    let key = [vec![controller.to_owned()], given.clone()].concat().join(" ");
    let problem = |message| Err(vec![Problem::new("congestion", message)]);
    match (names.get(&key), controller) {
        (Some(name), _) => Ok(name.clone()),
        // No other parameters may replace the requested ones.
        _ if !given.is_empty() => problem(format!(
            "{controller} with {} is not registered in the kernel",
            given.join(", ")
        )),
        // The kernel's BBR is version 1.
        (None, "bbr1") => Ok("bbr".into()),
        (None, "bbr" | "bbr-tolerant") => problem("Linux has BBR version 1 only: write \"bbr1\"".into()),
        (None, "fixed") => problem("Linux has no controller with a fixed window".into()),
        (None, other) => Ok(other.to_owned()),
    }
}

/// Kernel names of controllers that were registered for a run, by a study's name. Parameters follow the name, as in
/// `vegas alpha=3 beta=6`.
pub type ControllerNames = BTreeMap<String, String>;

impl KernelTcp {
    /// Translates the settings of a study.
    ///
    /// # Errors
    /// The keys that a kernel does not support.
    pub(crate) fn of(config: &TcpConfig, names: &ControllerNames) -> Result<Self, Vec<Problem>> {
        let written = serde_json::to_value(config).unwrap_or_default();
        let given = written.as_object().into_iter().flatten();
        let mut problems: Vec<Problem> = given
            .filter(|(key, _)| !KNOWN.contains(&key.as_str()) && key.as_str() != "ttcp")
            .map(|(key, _)| {
                Problem::new(
                    key,
                    format!("not supported by a kernel's TCP: allowed: {}", KNOWN.join(", ")),
                )
            })
            .collect();
        if config.ttcp {
            problems.push(Problem::new(
                "ttcp",
                "not supported by kernels: write stack = \"longfat\", or use the world sim",
            ));
        }
        if config.profile != Profile::Linux {
            problems.push(Problem::new(
                "profile",
                "a kernel's TCP has the profile \"linux\" only",
            ));
        }
        if config.ecn == Some(EcnMode::Dctcp) {
            problems.push(Problem::new(
                "ecn",
                "\"dctcp\" is not a setting of kernels: congestion = \"dctcp\" selects it, or write stack = \"longfat\"",
            ));
        }
        if config.ecn == Some(EcnMode::Accurate) {
            problems.push(Problem::new(
                "ecn",
                "\"accecn\" is not supported by kernels: Linux 6.18 refuses it; write stack = \"longfat\", or use the world sim",
            ));
        }
        let none = Map::new();
        let settings = written
            .get("congestion")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let congestion =
            kernel_name(config.congestion().name(), settings, names).map_err(|found| problems.extend(found));
        let on = |key: Option<bool>| u8::from(key.unwrap_or(true)).to_string();
        let memory = |most: u64, grows: Option<bool>, first: u64| {
            let first = if grows == Some(false) {
                most
            } else {
                first.min(most)
            };
            format!("{} {first} {most}", MINIMUM.min(most))
        };
        let bytes =
            |size: Option<foundation::Size>, default: u64| size.map_or(default, foundation::Size::bytes);
        let (room, window) = (
            bytes(config.send_buffer, 4 << 20),
            bytes(config.receive_buffer, 6 << 20),
        );
        let Ok(congestion) = congestion else {
            return Err(problems);
        };
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut sysctls = vec![
            ("net/ipv4/tcp_sack", on(config.sack)),
            ("net/ipv4/tcp_timestamps", on(config.timestamps)),
            ("net/ipv4/tcp_window_scaling", on(config.window_scaling)),
            // 2: accept ECN, do not request it (Linux's default).
            (
                "net/ipv4/tcp_ecn",
                match config.ecn {
                    None => "2".into(),
                    Some(mode) => u8::from(mode != EcnMode::Off).to_string(),
                },
            ),
            // Minimum, initial and maximum memory; without autotuning the initial value is the maximum.
            (
                "net/ipv4/tcp_wmem",
                memory(room, config.send_autotuning, INITIAL_SEND),
            ),
            (
                "net/ipv4/tcp_rmem",
                memory(window, config.receive_autotuning, INITIAL_RECEIVE),
            ),
            ("net/ipv4/tcp_moderate_rcvbuf", on(config.receive_autotuning)),
        ];
        if config.fast_open {
            // 1 for clients plus 2 for servers.
            sysctls.push(("net/ipv4/tcp_fastopen", "3".into()));
        }
        Ok(Self {
            congestion,
            sysctls,
            segment: config.mss().bytes() as u32,
            no_delay: config.nagle == Some(false),
            fast_open: config.fast_open,
            multipath: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<KernelTcp, String> {
        let config: TcpConfig = serde_json::from_str(json).unwrap();
        let names = ControllerNames::from(
            [("vegas", "lf_vegas"), ("vegas alpha=3 beta=6", "lf_vegas2")]
                .map(|(a, b)| (a.to_owned(), b.to_owned())),
        );
        KernelTcp::of(&config, &names).map_err(|problems| {
            problems
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        })
    }

    #[test]
    fn buffers_grow_unless_autotuning_is_off() {
        let memory = |json: &str| {
            let kernel = read(json).unwrap();
            let of = |end: &str| {
                let found = kernel.sysctls.iter().find(|(name, _)| name.ends_with(end));
                found.unwrap().1.clone()
            };
            [of("tcp_wmem"), of("tcp_rmem"), of("tcp_moderate_rcvbuf")]
        };
        assert_eq!(
            memory(r#"{"kind": "tcp"}"#),
            ["4096 16384 4194304", "4096 131072 6291456", "1"]
        );
        let fixed = r#"{"kind": "tcp", "send_buffer": "8KiB", "receive_buffer": "1MiB", "receive_autotuning": false}"#;
        assert_eq!(memory(fixed), ["4096 8192 8192", "4096 1048576 1048576", "0"]);
        let all = memory(r#"{"kind": "tcp", "send_autotuning": false}"#);
        assert_eq!(all[0], "4096 4194304 4194304");
        let overhead = read(r#"{"kind": "tcp", "send_overhead": "0B"}"#).unwrap_err();
        assert!(overhead.starts_with("send_overhead: "), "{overhead}");
    }

    #[test]
    fn unsupported_settings_are_errors() {
        let plain = read(r#"{"kind": "tcp", "congestion": "reno"}"#).unwrap();
        assert_eq!(plain.congestion, "reno");
        let vegas = read(r#"{"kind": "tcp", "congestion": {"kind": "vegas", "rules": "linux"}}"#).unwrap();
        assert_eq!(vegas.congestion, "lf_vegas");
        let thresholds = r#"{"kind": "tcp", "congestion": {"kind": "vegas", "beta": 6, "alpha": 3}}"#;
        assert_eq!(read(thresholds).unwrap().congestion, "lf_vegas2");
        for (json, said) in [
            (
                r#"{"kind": "tcp", "initial_window": 4}"#,
                "initial_window: not supported by a kernel's TCP",
            ),
            (r#"{"kind": "tcp", "profile": "rfc"}"#, "profile: "),
            (
                r#"{"kind": "tcp", "ttcp": true}"#,
                "ttcp: not supported by kernels: write stack = \"longfat\"",
            ),
            (
                r#"{"kind": "tcp", "ecn": "accecn"}"#,
                "ecn: \"accecn\" is not supported by kernels: Linux 6.18 refuses it",
            ),
            (r#"{"kind": "tcp", "congestion": "bbr"}"#, "write \"bbr1\""),
            (
                r#"{"kind": "tcp", "congestion": {"kind": "vegas", "alpha": 3}}"#,
                "congestion: vegas with alpha=3 is not registered in the kernel",
            ),
            (
                r#"{"kind": "tcp", "congestion": {"kind": "vegas", "rules": "paper"}}"#,
                "congestion.rules: not supported by a kernel's vegas: allowed: alpha, beta, gamma",
            ),
            (
                r#"{"kind": "tcp", "congestion": {"kind": "cubic", "beta": 0.8}}"#,
                "congestion.beta: not supported by a kernel's controller",
            ),
        ] {
            let message = read(json).unwrap_err();
            assert!(message.contains(said), "{json}: {message}");
        }
    }
}
