//! Checks whether this machine supports emulated networks, and how to fix what is missing.

use std::fs::read_to_string;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use foundation::Streams;
use measurement::rights::{self, Right};
use network::{HostId, PathConfig, Topology};
use serde::Serialize;

use super::emulation::Emulation;
use super::namespace::{Namespace, in_thread};
use super::{clean, default_controller, priority, privileges, tun, user_namespace};
use crate::error::{Error, system_error};
use crate::options::EmulationOptions;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Its short name, for options.
    pub key: &'static str,
    /// What was checked.
    pub name: &'static str,
    /// Whether the check passed.
    pub ok: bool,
    /// Whether it failed probably because the machine is busy.
    pub busy: bool,
    /// The finding.
    pub detail: String,
    /// How to fix it; null if it passed.
    pub remedy: Option<String>,
}

/// The finding, or the failure.
type Outcome = Result<String, Failure>;

/// What a failed check found.
struct Failure {
    detail: String,
    remedy: String,
    /// Whether the only problem is lateness.
    is_late: bool,
}

/// Errors of this crate contain the fix.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let remedy = match &error {
            Error::Permission { remedy, .. } | Error::Missing { remedy, .. } => remedy.clone(),
            _ => "see the system's error".into(),
        };
        Self {
            detail: error.to_string(),
            remedy,
            is_late: false,
        }
    }
}

/// A check.
type Check = fn() -> Outcome;

/// All checks in display order: short name, name, function.
const PROBES: &[(&str, &str, Check)] = &[
    ("kernel", "kernel", kernel),
    ("permissions", "permissions", permissions),
    ("userns", "user namespaces", user_namespaces),
    ("real-time", "real-time priority", real_time),
    ("echo", "echo requests", || of_right(rights::echo_requests())),
    ("captures", "captures", || of_right(rights::captures())),
    ("timestamps", "kernel time stamps", || of_right(rights::stamps())),
    ("netns", "network namespaces", network_namespaces),
    ("tun", "TUN devices", tun_devices),
    ("emulation", "emulation", emulation),
    ("timers", "timers", timers),
    ("congestion", "congestion control", congestion_control),
    ("vegas", "Vegas", || loadable("vegas")),
    ("dctcp", "DCTCP", || loadable("dctcp")),
    ("bpf", "BPF", bpf),
    ("mptcp", "MPTCP", mptcp),
    ("fast-open", "TCP Fast Open", fast_open),
    ("udp-gso", "UDP segmentation offload", segmentation),
    ("leftovers", "leftovers", leftovers),
];

/// Returns the short names of all checks.
pub fn keys() -> impl Iterator<Item = &'static str> {
    PROBES.iter().map(|&(key, ..)| key)
}

/// Runs all checks. It changes nothing, and no packet leaves the machine. A single-threaded process that lacks
/// permissions enters a user namespace after the first checks, as it would for an emulation.
#[must_use]
pub fn probe() -> Vec<Probe> {
    probe_only(|_| true)
}

/// Runs the checks whose short names are selected, as [`probe`].
pub fn probe_only(is_selected: impl Fn(&str) -> bool) -> Vec<Probe> {
    let run = |&(key, name, probe): &(&'static str, &'static str, Check)| {
        let outcome = probe();
        let (detail, remedy, is_late) = match outcome {
            Ok(detail) => (detail, None, false),
            Err(failure) => (failure.detail, Some(failure.remedy), failure.is_late),
        };
        Probe {
            key,
            name,
            ok: remedy.is_none(),
            busy: is_late && is_busy(),
            detail,
            remedy,
        }
    };
    let selected = |&&(key, ..): &&(&str, &str, Check)| is_selected(key);
    let (outside, inside) = PROBES.split_at(OUTSIDE);
    let mut probes: Vec<Probe> = outside.iter().filter(selected).map(run).collect();
    // If this fails, the following checks report it.
    let _ = user_namespace::enter();
    probes.extend(inside.iter().filter(selected).map(run));
    probes
}

/// Checks that concern the process as it was started.
const OUTSIDE: usize = 7;

fn failure<T>(detail: impl Into<String>, remedy: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        detail: detail.into(),
        remedy: remedy.into(),
        is_late: false,
    })
}

/// Fails if the 99th percentile of a delay is above 1 ms.
fn in_time(detail: String, late: Duration, remedy: &str) -> Outcome {
    if late <= Duration::from_millis(1) {
        return Ok(detail);
    }
    Err(Failure {
        detail,
        remedy: remedy.into(),
        is_late: true,
    })
}

/// Whether the load average is at least the number of processors, so that lateness may have other causes.
pub(crate) fn is_busy() -> bool {
    let load = read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    load.is_some_and(|load| load >= cores as f64)
}

/// Reads a file of the kernel and trims it.
fn read(path: &str) -> Option<String> {
    Some(read_to_string(path).ok()?.trim().to_owned())
}

/// The oldest supported kernel: `close_range(2)` needs 5.9, `pidfd_open(2)` 5.3.
const LEAST_KERNEL: (u32, u32) = (5, 9);

fn kernel() -> Outcome {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < LEAST_KERNEL {
        let (major, minor) = LEAST_KERNEL;
        return failure(
            format!("Linux {release}"),
            format!("use Linux {major}.{minor} or newer"),
        );
    }
    Ok(format!("Linux {release}"))
}

fn permissions() -> Outcome {
    let missing = privileges::missing_capabilities();
    if missing.is_empty() {
        return Ok("CAP_NET_ADMIN and CAP_SYS_ADMIN".into());
    }
    failure(
        format!("no {}", missing.join(" and no ")),
        "run as root, or in a user namespace if the system allows it",
    )
}

fn user_namespaces() -> Outcome {
    // The program does not exist: spawning fails only after the namespace was entered.
    let mut command = std::process::Command::new("/dev/null/nothing");
    user_namespace::inside(&mut command);
    match command.spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok("allowed".into()),
        Err(error) => failure(format!("not allowed: {error}"), privileges::namespace_remedy()),
        Ok(mut child) => {
            let _ = child.wait();
            Ok("allowed".into())
        }
    }
}

fn network_namespaces() -> Outcome {
    Namespace::create()?;
    Ok("can be created".into())
}

/// Runs `f` in a new network namespace.
fn apart<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let ran = Namespace::create()?.run(f);
    Ok(ran.map_err(|error| system_error("enter a network namespace", error))?)
}

fn tun_devices() -> Outcome {
    apart(|| tun::create("longfat0", false))??;
    Ok("can be created".into())
}

/// Measures the delay that a path of 10 ms adds to datagrams.
fn emulation() -> Outcome {
    let delay = Duration::from_millis(10);
    let keys = PathConfig {
        delay: Some(delay.into()),
        ..PathConfig::default()
    };
    let no_files = &mut |_: &str| Err(String::new());
    let Ok(path) = keys.resolve(no_files) else {
        return failure("", "");
    };
    let options = EmulationOptions::new(Topology::path(&path), Streams::new(1, 0));
    let emulation = Emulation::start(options)?;
    let measured = added_delay(&emulation, delay * 2);
    let added = measured.map_err(|error| system_error("send over an emulated path", error))?;
    let (median, late) = median_and_late(added);
    let detail = format!(
        "a path of 10 ms adds {} µs to a round trip (median), {} µs (99th percentile)",
        median.as_micros(),
        late.as_micros()
    );
    let remedy = "emulate while the machine is idle, with real-time priority (as root)";
    in_time(detail, late, remedy)
}

/// The median and the 99th percentile.
fn median_and_late(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

fn added_delay(emulation: &Emulation, expected: Duration) -> io::Result<Vec<Duration>> {
    use std::net::UdpSocket;
    let (near, far) = (HostId(0), HostId(1));
    let server = emulation.in_host(far, || UdpSocket::bind("0.0.0.0:7"))?;
    let client = emulation.in_host(near, || UdpSocket::bind("0.0.0.0:0"))?;
    client.connect((emulation.host_address(far), 7))?;
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    }
    let mut buffer = [0; 64];
    let mut added = Vec::new();
    for _ in 0..50 {
        let start = Instant::now();
        client.send(&buffer)?;
        let (length, from) = server.recv_from(&mut buffer)?;
        server.send_to(&buffer[..length], from)?;
        client.recv(&mut buffer)?;
        added.push(start.elapsed().saturating_sub(expected));
    }
    Ok(added)
}

/// Measures how late sleeps of 0.5 ms wake up.
fn timers() -> Outcome {
    let sleeps = in_thread(|| {
        socket::wait::sharpen_timers();
        let span = Duration::from_micros(500);
        let late = (0..200).map(|_| {
            let start = Instant::now();
            std::thread::sleep(span);
            start.elapsed().saturating_sub(span)
        });
        Ok(late.collect::<Vec<_>>())
    });
    let (median, worst) = median_and_late(sleeps.map_err(|error| system_error("start a thread", error))?);
    let detail = format!(
        "sleeps wake up {} µs late (median), {} µs (99th percentile)",
        median.as_micros(),
        worst.as_micros()
    );
    let remedy = "measure while the machine is idle; on a virtual machine, give it dedicated processors";
    in_time(detail, worst, remedy)
}

fn real_time() -> Outcome {
    match in_thread(|| Ok(priority::become_real_time())) {
        Ok(true) => Ok("granted".into()),
        _ => failure(
            "not granted: delays are less exact",
            "run as root, or allow it (in /etc/security/limits.conf: rtprio 1)",
        ),
    }
}

fn controllers() -> Result<(Vec<String>, Vec<String>), Failure> {
    apart(|| {
        let names = |name: &str| -> Vec<String> {
            let text = read(&format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        (
            names("tcp_available_congestion_control"),
            names("tcp_allowed_congestion_control"),
        )
    })
}

fn congestion_control() -> Outcome {
    let (available, allowed) = controllers()?;
    let default = apart(default_controller::here)?;
    let detail = format!(
        "default: {}; available: {}; allowed without privileges: {}",
        default.as_deref().unwrap_or("unknown"),
        available.join(" "),
        allowed.join(" ")
    );
    let missing: Vec<&str> = ["reno", "cubic"]
        .into_iter()
        .filter(|name| !available.iter().any(|a| a == name))
        .collect();
    if missing.is_empty() {
        return Ok(detail);
    }
    let modules: Vec<String> = missing
        .iter()
        .map(|name| format!("modprobe tcp_{name}"))
        .collect();
    failure(detail, modules.join("; "))
}

/// Returns whether the kernel has a controller, or can load it as BPF.
fn loadable(name: &str) -> Outcome {
    let (available, _) = controllers()?;
    if available.iter().any(|known| known == name) {
        return Ok("the kernel's module".into());
    }
    match bpf() {
        Ok(_) => Ok("not in the kernel; can be built as BPF".into()),
        Err(_) => failure(
            "not in the kernel, and cannot be built as BPF",
            format!("modprobe tcp_{name}, or see BPF"),
        ),
    }
}

fn bpf() -> Outcome {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return failure(
            "no kernel type information (/sys/kernel/btf/vmlinux)",
            "use a kernel with CONFIG_DEBUG_INFO_BTF",
        );
    }
    let Some(clang) = find("clang") else {
        return failure(
            "kernel type information, but no clang",
            "install clang (on Debian and Ubuntu: apt install clang)",
        );
    };
    Ok(format!("kernel type information, {clang}"))
}

/// The path of a program, found as by a shell.
fn find(program: &str) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|file| file.is_file())?;
    Some(found.display().to_string())
}

/// `IPPROTO_MPTCP` (`linux/in.h`).
const MPTCP: u32 = 262;

fn mptcp() -> Outcome {
    use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
    let made = apart(|| {
        let protocol = std::num::NonZeroU32::new(MPTCP).map(Protocol::from_raw);
        socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            protocol,
        )
        .map(drop)
    })?;
    match made {
        Ok(()) => Ok("sockets can be created".into()),
        Err(error) => failure(
            format!("no sockets: {error}"),
            "use a kernel with CONFIG_MPTCP (5.6 or newer) and sysctl net.mptcp.enabled=1",
        ),
    }
}

fn fast_open() -> Outcome {
    let here = match rights::fast_open() & 3 {
        3 => "on this host for clients and servers",
        1 => "on this host for clients; set it to 3 for servers",
        2 => "on this host for servers; set it to 3 for clients",
        _ => "off on this host; set it to 3 to enable",
    };
    match apart(|| read("/proc/sys/net/ipv4/tcp_fastopen"))? {
        Some(value) => Ok(format!(
            "net.ipv4.tcp_fastopen={value} in new namespaces (an emulated host sets its own); {here}"
        )),
        None => failure("not in the kernel", "use Linux 3.7 or newer"),
    }
}

fn segmentation() -> Outcome {
    let socket = socket::datagrams::Datagrams::bind(([127, 0, 0, 1], 0).into());
    let socket = socket.map_err(|error| system_error("create a UDP socket", error))?;
    match socket.max_segments() {
        0 | 1 => failure("none: one datagram a system call", "use Linux 4.18 or newer"),
        most => Ok(format!("{most} datagrams a system call")),
    }
}

/// A permission that `longfat ping` and `longfat transact` need.
fn of_right(right: Right) -> Outcome {
    match right.remedy {
        None => Ok(right.detail),
        Some(remedy) => failure(right.detail, remedy),
    }
}

fn leftovers() -> Outcome {
    let found = clean::leftovers();
    if found.is_empty() {
        return Ok("none".into());
    }
    let processes: Vec<String> = found
        .iter()
        .map(|leftover| leftover.process.to_string())
        .collect();
    failure(format!("processes {}", processes.join(", ")), "longfat clean")
}
