//! How much of a study's TCP a kernel can be asked for. What it cannot is said, never passed over.

use std::collections::BTreeMap;

use foundation::Problem;
use serde_json::Value;
use transport::tcp::{Profile, TcpConfig};

/// A kernel's TCP as a study asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelTcp {
    /// The congestion controller's name in the kernel.
    pub congestion: String,
    /// Files below `/proc/sys` of each host's namespace, and what to write there.
    pub sysctls: Vec<(&'static str, String)>,
    /// Largest payload and options of a segment (`TCP_MAXSEG`).
    pub segment: u32,
    /// Whether Nagle's algorithm is off (`TCP_NODELAY`).
    pub no_delay: bool,
}

/// Keys that a kernel has a knob for.
const KNOWN: [&str; 11] = [
    "kind",
    "profile",
    "congestion",
    "mss",
    "sack",
    "timestamps",
    "window_scaling",
    "ecn",
    "nagle",
    "send_buffer",
    "receive_buffer",
];

/// What the kernel calls a controller of a study.
fn kernel_name(controller: &str, names: &Names) -> Result<String, Problem> {
    if let Some(name) = names.get(controller) {
        return Ok(name.clone());
    }
    match controller {
        // The kernel's BBR is version 1.
        "bbr1" => Ok("bbr".into()),
        "bbr" => Err(Problem::new(
            "congestion",
            "Linux has BBR version 1 only: write \"bbr1\"",
        )),
        "fixed" => Err(Problem::new(
            "congestion",
            "Linux has no controller with a fixed window",
        )),
        other => Ok(other.to_owned()),
    }
}

/// What the kernel calls controllers that were given to it for the occasion: from a study's name to its own.
pub type Names = BTreeMap<String, String>;

impl KernelTcp {
    /// What to ask a kernel for.
    ///
    /// # Errors
    /// The keys that it has no knob for.
    pub(crate) fn of(config: &TcpConfig, names: &Names) -> Result<Self, Vec<Problem>> {
        let written = serde_json::to_value(config).unwrap_or_default();
        let given = written.as_object().into_iter().flatten();
        let mut problems: Vec<Problem> = given
            .filter(|(key, _)| !KNOWN.contains(&key.as_str()))
            .map(|(key, _)| {
                Problem::new(
                    key,
                    format!("a kernel's TCP has no knob for it: allowed: {}", KNOWN.join(", ")),
                )
            })
            .collect();
        if config.profile != Profile::Linux {
            problems.push(Problem::new(
                "profile",
                "a kernel's TCP is Linux's: write \"linux\"",
            ));
        }
        if let Some(Value::Object(keys)) = written.get("congestion") {
            let settings = keys
                .iter()
                .filter(|(key, value)| key.as_str() != "kind" && *value != "linux");
            problems.extend(settings.map(|(key, _)| {
                Problem::new(
                    format!("congestion.{key}"),
                    "a kernel's controller has no such setting in a study",
                )
            }));
        }
        let congestion =
            kernel_name(config.congestion().name(), names).map_err(|problem| problems.push(problem));
        let on = |key: Option<bool>| u8::from(key.unwrap_or(true)).to_string();
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
        Ok(Self {
            congestion,
            sysctls: vec![
                ("net/ipv4/tcp_sack", on(config.sack)),
                ("net/ipv4/tcp_timestamps", on(config.timestamps)),
                ("net/ipv4/tcp_window_scaling", on(config.window_scaling)),
                // 2: agrees to ECN, does not ask for it (Linux's default).
                (
                    "net/ipv4/tcp_ecn",
                    match config.ecn {
                        None => "2".into(),
                        Some(asks) => u8::from(asks).to_string(),
                    },
                ),
                ("net/ipv4/tcp_wmem", format!("4096 16384 {room}")),
                ("net/ipv4/tcp_rmem", format!("4096 131072 {window}")),
            ],
            segment: config.mss().bytes() as u32,
            no_delay: config.nagle == Some(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<KernelTcp, String> {
        let config: TcpConfig = serde_json::from_str(json).unwrap();
        let names = Names::from([("vegas".to_owned(), "lf_vegas".to_owned())]);
        KernelTcp::of(&config, &names).map_err(|problems| {
            problems
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        })
    }

    #[test]
    fn what_a_kernel_has_no_knob_for_is_said() {
        let plain = read(r#"{"kind": "tcp", "congestion": "reno"}"#).unwrap();
        assert_eq!(plain.congestion, "reno");
        let vegas = read(r#"{"kind": "tcp", "congestion": {"kind": "vegas", "rules": "linux"}}"#).unwrap();
        assert_eq!(vegas.congestion, "lf_vegas");
        for (json, said) in [
            (
                r#"{"kind": "tcp", "initial_window": 4}"#,
                "initial_window: a kernel's TCP has no knob",
            ),
            (r#"{"kind": "tcp", "profile": "rfc"}"#, "profile: "),
            (r#"{"kind": "tcp", "congestion": "bbr"}"#, "write \"bbr1\""),
            (
                r#"{"kind": "tcp", "congestion": {"kind": "vegas", "alpha": 3}}"#,
                "congestion.alpha: ",
            ),
        ] {
            let message = read(json).unwrap_err();
            assert!(message.contains(said), "{json}: {message}");
        }
    }
}
