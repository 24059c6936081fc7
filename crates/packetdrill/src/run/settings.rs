//! The configuration that a script's options and commands set: the machine's, and the tolerances of comparisons.

use std::ops::RangeInclusive;

use foundation::{Duration, Size};
use transport::congestion::CongestionConfig;
use transport::tcp::{EcnMode, EcnOption, Profile, Recovery, TcpConfig};

use super::fast_open::{self, FastOpenSettings};
use super::multipath::PathManager;
use super::shell;

/// The configuration of a script's host.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// The machine's configuration.
    pub tcp: TcpConfig,
    /// Absolute tolerance of times. Default: 4 ms.
    pub tolerance: Duration,
    /// Relative tolerance in percent of the time since the last event. Default: 12.5.
    pub tolerance_percent: f64,
    /// Tick of the timestamp clock in this script; `None` leaves timestamps unchecked.
    pub timestamp_tick: Option<Duration>,
    /// Whether the device segments large packets (TSO), so that several segments may match one expected packet.
    pub offload: bool,
    /// Whether the device's queue paces packets at the sender's rate (`fq`).
    pub paced: bool,
    /// Whether packets have IPv6 headers, which take 40 bytes.
    pub ipv6: bool,
    /// The MTU of the device.
    pub mtu: u32,
    /// Fast Open.
    pub fast_open: FastOpenSettings,
    /// The path manager of multipath TCP.
    pub path_manager: PathManager,
    /// A command discarded the cached state of peers (`ip tcp_metrics flush`).
    pub metrics_flushed: bool,
    /// The MSS that a route announces.
    mss_of_route: Option<u32>,
    /// Payload of the segments that the device merged into arriving packets (`gso_size`); `None`: packets are single segments.
    pub merged_segment: Option<u16>,
    /// Whether each SYN-ACK has a cookie (`tcp_syncookies=2`); otherwise only those of a full queue have one.
    pub syn_cookies: bool,
    /// Minimum interval between challenge ACKs (`tcp_invalid_ratelimit`).
    pub challenge_interval: Option<Duration>,
}

/// Kernel settings without an effect on the machine: offload sizes, caches, and features that scripts enable by other
/// means.
const WITHOUT_EFFECT: [&str; 19] = [
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_comp_sack_nr",
    "net.ipv4.tcp_comp_sack_delay_ns",
    "net.ipv4.tcp_comp_sack_slack_ns",
    "net.ipv4.tcp_fastopen_blackhole_timeout",
    "net.ipv4.tcp_fastopen_blackhole_timeout_sec",
    "net.ipv4.tcp_fastopen_cookies",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_tso_rtt_log",
    "net.ipv4.tcp_tso_win_divisor",
];

/// The settings of `defaults.sh` in both suites, as far as the machine supports them: buffers, options, CUBIC, RACK-TLP, no
/// restart after idle times, no ECN.
const DEFAULTS: [&str; 15] = [
    "net.ipv4.tcp_rmem=4096 540000 15728640",
    "net.ipv4.tcp_wmem=4096 262144 4194304",
    "net.ipv4.tcp_timestamps=1",
    "net.ipv4.tcp_syn_retries=5",
    "net.ipv4.tcp_synack_retries=5",
    "net.ipv4.tcp_frto=2",
    "net.ipv4.tcp_sack=1",
    "net.ipv4.tcp_dsack=1",
    "net.ipv4.tcp_reordering=3",
    "net.ipv4.tcp_congestion_control=cubic",
    "net.ipv4.tcp_slow_start_after_idle=0",
    "net.ipv4.tcp_early_retrans=4",
    "net.ipv4.tcp_recovery=1",
    "net.ipv4.tcp_ecn=0",
    "net.ipv4.tcp_fastopen_key=a1a1a1a1-b2b2b2b2-c3c3c3c3-d4d4d4d4",
];

/// Fast Open in the `defaults.sh` of google/packetdrill: listeners need no socket option.
const FAST_OPEN_OF_PACKETDRILL: &str = "net.ipv4.tcp_fastopen=0x70403";
/// Fast Open in the `defaults.sh` of the kernel's selftests, whose scripts run in the folder of that file.
const FAST_OPEN_OF_SELFTESTS: &str = "net.ipv4.tcp_fastopen=0x3";
/// The MTU of the device, unless the script sets it.
const MTU: u32 = 1500;
/// The MTU with IPv6 in the runner of the kernel's selftests: segments have the same size as with IPv4.
const MTU_OF_SELFTESTS: u32 = 1520;

/// Linux's range of `tcp_rto_max_ms`.
const MAX_RTO_MILLIS: RangeInclusive<u64> = 1000..=120_000;

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            // Scripts count payload bytes: with segmentation offload, on which they were written, buffers have little
            // overhead.
            tcp: TcpConfig {
                send_overhead: Some(Size::from_bytes(0)),
                receive_overhead: Some(Size::from_bytes(0)),
                ..TcpConfig::new(Profile::Linux)
            },
            tolerance: Duration::from_millis(4),
            tolerance_percent: 12.5,
            timestamp_tick: None,
            offload: true,
            paced: false,
            ipv6: false,
            mtu: MTU,
            fast_open: FastOpenSettings::default(),
            path_manager: PathManager::default(),
            metrics_flushed: false,
            mss_of_route: None,
            merged_segment: None,
            syn_cookies: false,
            challenge_interval: None,
        }
    }
}

impl HostSettings {
    /// Applies an option of the script.
    ///
    /// # Errors
    /// The problem, if the option is unsupported or invalid.
    pub fn option(&mut self, name: &str, value: Option<&str>) -> Result<(), String> {
        let text = value.unwrap_or_default();
        let number = || {
            text.parse::<u64>()
                .map_err(|_| format!("--{name}={text}: expected a whole number"))
        };
        match name {
            "tolerance_usecs" => self.tolerance = Duration::from_micros(number()?),
            "tolerance_percent" => {
                let percent = text
                    .parse()
                    .ok()
                    .filter(|percent| (0.0..=100.0).contains(percent));
                self.tolerance_percent =
                    percent.ok_or_else(|| format!("--{name}={text}: expected 0 to 100"))?;
            }
            "tcp_ts_tick_usecs" => {
                self.timestamp_tick = Some(Duration::from_micros(number()?)).filter(|t| !t.is_zero())
            }
            "mtu" => self.mtu = u32::try_from(number()?).unwrap_or(u32::MAX).clamp(128, 65_535),
            "strict_segments" => self.offload = false,
            "ip_version" => match text {
                "ipv4" | "ipv4-mapped-ipv6" => {}
                "ipv6" => self.use_ipv6(),
                _ => {
                    return Err(format!(
                        "--{name}={text}: expected ipv4, ipv6 or ipv4-mapped-ipv6"
                    ));
                }
            },
            "mss" => {
                let bytes = text.parse().ok().filter(|bytes| *bytes > 0);
                let bytes = bytes.ok_or_else(|| format!("--{name}={text}: expected 1 to 65535"))?;
                self.merged_segment = Some(bytes);
            }
            // Echoed timestamps are always converted proportionally; addresses and ports are ignored; the machine keeps no
            // reference to the buffers of writes.
            "send_omit_free" | "tcp_ts_ecr_scaled" | "define" | "D" | "v" | "verbose" | "gateway_ip" => {}
            "local_ip" | "remote_ip" => {
                let address = text
                    .parse()
                    .map_err(|_| format!("--{name}={text}: expected an address"))?;
                match name {
                    "local_ip" => self.fast_open.local = address,
                    _ => self.fast_open.remote = address,
                }
            }
            "netmask_ip" | "bind_port" | "connect_port" | "speed" => {}
            _ => return Err(format!("the option --{name}")),
        }
        Ok(())
    }

    /// Selects IPv6: the size of its headers, and packetdrill's default addresses.
    pub fn use_ipv6(&mut self) {
        self.ipv6 = true;
        self.fast_open.use_ipv6();
    }

    /// Applies the commands in `text`.
    ///
    /// # Errors
    /// The first unsupported command.
    pub fn command(&mut self, text: &str) -> Result<(), String> {
        shell::commands(text)
            .iter()
            .try_for_each(|arguments| self.run(arguments))
    }

    /// Returns the bytes of the headers of IP and TCP.
    #[must_use]
    pub const fn headers(&self) -> u32 {
        if self.ipv6 { 60 } else { 40 }
    }

    /// Returns the value of the MSS option: the device's MTU minus headers, or that of a route if smaller.
    #[must_use]
    pub fn mss(&self) -> u32 {
        self.mss_of_route
            .unwrap_or(u32::MAX)
            .min(self.mtu - self.headers())
    }

    fn run(&mut self, arguments: &[String]) -> Result<(), String> {
        let unsupported = || Err(format!("the command `{}`", arguments.join(" ")));
        let first = arguments[0].as_str();
        let name = first.rsplit('/').next().unwrap_or(first);
        let rest: Vec<&str> = arguments[1..].iter().map(String::as_str).collect();
        match (name, rest.as_slice()) {
            ("defaults.sh", []) => {
                let fast_open = if first == "./defaults.sh" {
                    if self.ipv6 && self.mtu == MTU {
                        self.mtu = MTU_OF_SELFTESTS;
                    }
                    FAST_OPEN_OF_SELFTESTS
                } else {
                    FAST_OPEN_OF_PACKETDRILL
                };
                let settings = DEFAULTS.iter().chain([&fast_open]);
                settings.into_iter().try_for_each(|setting| self.sysctl(setting))
            }
            ("sysctl" | "set_sysctls.py", settings) => {
                let settings = settings.iter().filter(|argument| !argument.starts_with('-'));
                settings.into_iter().try_for_each(|setting| self.sysctl(setting))
            }
            ("tc", ["qdisc", action, rest @ ..]) => self.queue(action, rest).or_else(|()| unsupported()),
            ("ethtool", ["-K", _, settings @ ..]) => {
                for pair in settings.chunks(2) {
                    match pair {
                        ["tso" | "gso", "on"] => self.offload = true,
                        ["tso" | "gso", "off"] => self.offload = false,
                        ["gro" | "lro" | "sg" | "rx" | "tx", _] => {}
                        _ => return unsupported(),
                    }
                }
                Ok(())
            }
            ("ip", ["mptcp", arguments @ ..]) => {
                self.path_manager.command(arguments).or_else(|()| unsupported())
            }
            ("client.sh", []) => {
                self.path_manager.use_client();
                Ok(())
            }
            ("server.sh", []) => {
                self.path_manager.use_server(self.fast_open.local);
                Ok(())
            }
            ("ip", ["tcp_metrics", "flush", ..]) => {
                self.metrics_flushed = true;
                Ok(())
            }
            ("ip", ["link", "set", "dev", _, "mtu", bytes]) => match bytes.parse::<u32>() {
                Ok(bytes) => {
                    self.mtu = bytes.clamp(128, 65_535);
                    Ok(())
                }
                Err(_) => unsupported(),
            },
            // Files that `open` finds anyway, and counters of the kernel.
            ("rm" | "dd" | "nstat" | "true" | ":", _) => Ok(()),
            (
                "ip",
                ["route", "change" | "replace", route @ ..]
                | ["-6", "route", "change" | "replace", route @ ..],
            ) => self.route(route).or_else(|()| unsupported()),
            ("echo", ["3", ">", file]) if file.ends_with("tcp_cubic/parameters/hystart_detect") => Ok(()),
            _ if name.starts_with("sysctl_restore") => Ok(()),
            _ => unsupported(),
        }
    }

    /// A queue that holds packets is no different from none here: the wire takes them at once. `fq` spaces
    /// them at the sender's pacing rate, which our senders do by themselves.
    fn queue(&mut self, action: &str, rest: &[&str]) -> Result<(), ()> {
        let known = ["add", "replace", "change", "del", "delete"].contains(&action);
        let limited = rest.contains(&"limit");
        let kind = rest
            .iter()
            .rev()
            .find(|argument| ["pfifo", "pfifo_fast", "fq", "fq_codel", "noqueue"].contains(argument));
        if !known || limited || (kind.is_none() && !action.starts_with("del")) {
            return Err(());
        }
        self.paced = kind == Some(&"fq");
        Ok(())
    }

    /// Returns the congestion controller, with pacing if the device paces.
    pub fn congestion(&self, given: &CongestionConfig) -> CongestionConfig {
        let mut table = match serde_json::to_value(given) {
            Ok(serde_json::Value::Object(table)) => table,
            _ => serde_json::Map::from_iter([("kind".to_owned(), given.name().into())]),
        };
        if self.paced {
            table.insert("pacing".to_owned(), true.into());
        }
        // A controller without that key paces by itself, or never.
        serde_json::from_value(table.into()).unwrap_or_else(|_| given.clone())
    }

    fn route(&mut self, arguments: &[&str]) -> Result<(), ()> {
        let mut arguments = arguments.iter();
        arguments.next().ok_or(())?;
        while let Some(argument) = arguments.next() {
            let argument = if *argument == "lock" {
                arguments.next().ok_or(())?
            } else {
                argument
            };
            let mut number = || {
                let value = arguments.next().ok_or(())?;
                let value = if *value == "lock" {
                    arguments.next().ok_or(())?
                } else {
                    value
                };
                value.parse::<u32>().map_err(|_| ())
            };
            match *argument {
                "via" | "dev" | "src" => {
                    arguments.next().ok_or(())?;
                }
                "advmss" => self.mss_of_route = Some(number()?),
                "mtu" => self.mtu = number()?.clamp(128, 65_535),
                "initcwnd" => self.tcp.initial_window = Some(number()?),
                _ => return Err(()),
            }
        }
        Ok(())
    }

    fn sysctl(&mut self, setting: &str) -> Result<(), String> {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("the sysctl setting {setting}"))?;
        let name = name.replace('/', ".");
        let name = name.trim_start_matches('.').trim_start_matches("proc.sys.");
        let unsupported = || format!("sysctl {name}={value}");
        let parse = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let numbers: Vec<u64> = value.split_whitespace().filter_map(parse).collect();
        let last = numbers.last().copied();
        let number = || last.ok_or_else(unsupported);
        let flag = || number().map(|value| value != 0);
        if WITHOUT_EFFECT.contains(&name) {
            return Ok(());
        }
        let tcp = &mut self.tcp;
        match name.strip_prefix("net.ipv4.tcp_").unwrap_or(name) {
            "net.mptcp.checksum_enabled" => self.path_manager.checksums = flag()?,
            "net.mptcp.enabled" if last == Some(1) => {}
            "rmem" => tcp.receive_buffer = Some(Size::from_bytes(number()?)),
            // The third figure bounds what the kernel grows the second one to.
            "wmem" => tcp.send_buffer = Some(Size::from_bytes(number()?)),
            "timestamps" => tcp.timestamps = Some(flag()?),
            "window_scaling" => tcp.window_scaling = Some(flag()?),
            "sack" => tcp.sack = Some(flag()?),
            "dsack" => tcp.dsack = Some(flag()?),
            "frto" => tcp.frto = Some(flag()?),
            "syn_retries" => tcp.syn_retries = Some(number()? as u32),
            "synack_retries" if last == Some(5) => {}
            "slow_start_after_idle" => tcp.slow_start_after_idle = Some(flag()?),
            "congestion_control" => {
                tcp.congestion =
                    Some(controller(value).ok_or_else(|| format!("the congestion controller {value}"))?);
            }
            // 0 disables early retransmits and tail loss probes; 3 and 4 enable the probes.
            "early_retrans" => tcp.tail_loss_probe = Some(number()? >= 3),
            // Bit 0 enables RACK; without it, losses are detected according to RFC 6675.
            "recovery" => {
                tcp.recovery = Some(if number()? & 1 == 1 {
                    Recovery::RackTlp
                } else {
                    Recovery::Sack
                });
            }
            "ecn" => {
                let (accepted, requested) = match number()? {
                    0 => (EcnMode::Off, EcnMode::Off),
                    1 => (EcnMode::Classic, EcnMode::Classic),
                    2 => (EcnMode::Classic, EcnMode::Off),
                    3 => (EcnMode::Accurate, EcnMode::Accurate),
                    4 => (EcnMode::Accurate, EcnMode::Classic),
                    5 => (EcnMode::Accurate, EcnMode::Off),
                    _ => return Err(unsupported()),
                };
                (tcp.ecn_accept, tcp.ecn) = (Some(accepted), Some(requested));
            }
            "ecn_option" => {
                tcp.ecn_option = Some(match number()? {
                    0 => EcnOption::Off,
                    1 => EcnOption::Minimum,
                    2 => EcnOption::Full,
                    _ => return Err(unsupported()),
                });
            }
            // Options per round trip that `minimum` sends at least: other numbers than three are unsupported.
            "ecn_option_beacon" if last == Some(3) || tcp.ecn_option != Some(EcnOption::Minimum) => {}
            "ecn_fallback" => tcp.ecn_fallback = Some(flag()?),
            "syncookies" if last.is_some_and(|value| value <= 2) => self.syn_cookies = last == Some(2),
            "rto_max_ms" if last.is_some_and(|value| MAX_RTO_MILLIS.contains(&value)) => {
                tcp.max_rto = last.map(Duration::from_millis);
            }
            "invalid_ratelimit" => {
                let millis = number()?.min(u64::from(u32::MAX));
                self.challenge_interval = Some(Duration::from_millis(millis));
            }
            "fin_timeout" => tcp.fin_timeout = Some(Duration::from_secs(number()?)),
            "reordering" if last == Some(3) => {}
            "fastopen" => self.fast_open.mode = number()?,
            "fastopen_key" => self.fast_open.key = fast_open::key(value).ok_or_else(unsupported)?,
            "fack" | "mtu_probing" if last == Some(0) => {}
            // No limit.
            "notsent_lowat" if number()? >= u64::from(u32::MAX) => {}
            _ => return Err(unsupported()),
        }
        Ok(())
    }
}

/// Returns the controller with Linux's name `name`, with Linux's rules if it has any.
pub fn controller(name: &str) -> Option<CongestionConfig> {
    let as_linux = serde_json::from_value(serde_json::json!({"kind": name, "rules": "linux"}));
    as_linux.ok().or_else(|| CongestionConfig::named(name).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(commands: &str) -> HostSettings {
        let mut settings = HostSettings::default();
        settings.command(commands).unwrap();
        settings
    }

    #[test]
    fn settings_are_applied() {
        let settings = after(
            "../common/defaults.sh\nsysctl -q net.ipv4.tcp_ecn=1 net/ipv4/tcp_sack=0\n\
             ../common/set_sysctls.py /proc/sys/net/ipv4/tcp_timestamps=0 /proc/sys/net/ipv4/tcp_min_tso_segs=10\n\
             ethtool -K tun0 tso off gso off\nip route change 192.0.2.1 via 192.0.2.2 dev tun0 advmss 600 initcwnd 11",
        );
        assert_eq!(
            (settings.tcp.ecn, settings.tcp.sack),
            (Some(EcnMode::Classic), Some(false))
        );
        assert_eq!(settings.tcp.timestamps, Some(false));
        assert_eq!(settings.tcp.slow_start_after_idle, Some(false));
        assert_eq!(settings.tcp.initial_window, Some(11));
        assert!(!settings.offload);
        assert_eq!(settings.mss(), 600);
        assert_eq!(HostSettings::default().mss(), 1460);
    }

    #[test]
    fn selftests_with_ipv6_have_a_larger_mtu_unless_the_script_sets_one() {
        for (mtu, mss) in [(None, 1460), (Some("1400"), 1340)] {
            let mut settings = HostSettings::default();
            settings.option("ip_version", Some("ipv6")).unwrap();
            if mtu.is_some() {
                settings.option("mtu", mtu).unwrap();
            }
            settings.command("./defaults.sh").unwrap();
            assert_eq!(settings.mss(), mss);
        }
    }

    #[test]
    fn unsupported_settings_are_named() {
        for (command, named) in [
            ("sysctl -q net.ipv4.tcp_reordering=5", "net.ipv4.tcp_reordering"),
            ("tc qdisc replace dev tun0 root pfifo limit 0", "limit 0"),
            ("sysctl net.ipv4.tcp_congestion_control=nonesuch", "nonesuch"),
            ("sysctl -q net.ipv4.tcp_syncookies=3", "tcp_syncookies=3"),
            ("sysctl -q net.ipv4.tcp_rto_max_ms=999", "tcp_rto_max_ms=999"),
            ("mv x y", "mv x y"),
            ("ip route change 192.0.2.1 features ecn", "features"),
        ] {
            let what = HostSettings::default().command(command).unwrap_err();
            assert!(what.contains(named), "{what}");
        }
        for (option, value) in [
            ("wire_client", None),
            ("tolerance_usecs", Some("x")),
            ("mss", Some("0")),
            ("mss", Some("65536")),
        ] {
            assert!(HostSettings::default().option(option, value).is_err(), "{option}");
        }
    }
}
