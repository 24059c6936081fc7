//! What this machine can do for emulated networks, and what to do about what it cannot.

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
use super::{clean, priority, privileges, tun, user_namespace};
use crate::error::{Error, system_error};
use crate::options::EmulationOptions;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// What was looked at.
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// Whether it is not only because the machine has other work now.
    pub busy: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it; null where nothing needs to be done.
    pub remedy: Option<String>,
}

/// The result of a probe without its name: what was found, or what is wrong and what to do about it.
type Outcome = Result<String, Failure>;

/// What is wrong, what to do about it, and whether it is no more than that something came late.
type Failure = (String, String, bool);

/// How to look at one.
type Check = fn() -> Outcome;

/// Every probe, in the order in which they are shown.
const PROBES: &[(&str, Check)] = &[
    ("kernel", kernel),
    ("permissions", permissions),
    ("user namespaces", user_namespaces),
    ("real-time priority", real_time),
    ("echo requests", echo_requests),
    ("captures", captures),
    ("kernel time stamps", stamps),
    ("network namespaces", network_namespaces),
    ("TUN devices", tun_devices),
    ("emulation", emulation),
    ("timers", timers),
    ("congestion control", congestion_control),
    ("Vegas", vegas),
    ("BPF", bpf),
    ("MPTCP", mptcp),
    ("TCP Fast Open", fast_open),
    ("UDP segmentation offload", segmentation),
    ("leftovers", leftovers),
];

/// Looks at everything. Nothing is changed, and no packet leaves the machine. A process of one thread that lacks permissions
/// goes on in a user namespace, as for an emulation, once it has been seen what it lacks.
#[must_use]
pub fn probe() -> Vec<Probe> {
    let run = |&(name, probe): &(&'static str, Check)| match probe() {
        Ok(detail) => Probe {
            name,
            ok: true,
            busy: false,
            detail,
            remedy: None,
        },
        Err((detail, remedy, late)) => Probe {
            name,
            ok: false,
            busy: late && is_busy(),
            detail,
            remedy: Some(remedy),
        },
    };
    let (outside, inside) = PROBES.split_at(OUTSIDE);
    let mut probes: Vec<Probe> = outside.iter().map(run).collect();
    // Where it cannot be entered, the probes say what comes of it.
    let _ = user_namespace::enter();
    probes.extend(inside.iter().map(run));
    probes
}

/// How many of them are about the process as it was started.
const OUTSIDE: usize = 7;

fn failure<T>(detail: impl Into<String>, remedy: impl Into<String>) -> Result<T, Failure> {
    Err((detail.into(), remedy.into(), false))
}

/// What is done late.
fn too_late(detail: String, remedy: &str) -> Outcome {
    Err((detail, remedy.into(), true))
}

/// Errors of this crate name their remedy themselves.
fn from_error(error: &Error) -> Failure {
    let remedy = match error {
        Error::Permission { remedy, .. } | Error::Missing { remedy, .. } => remedy.clone(),
        _ => "see what the system says".into(),
    };
    (error.to_string(), remedy, false)
}

/// Whether the processors have at least as much to do as they can: what is late then says nothing of the machine.
pub(crate) fn is_busy() -> bool {
    let load = read("/proc/loadavg").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    load.is_some_and(|load| load >= cores as f64)
}

/// A file of the kernel's, without the line's end.
fn read(path: &str) -> Option<String> {
    Some(read_to_string(path).ok()?.trim().to_owned())
}

/// The least kernel: `close_range(2)` and `pidfd_open(2)` are of 5.9 and 5.3.
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
        "run as root; without, a user namespace serves where the system allows it",
    )
}

fn user_namespaces() -> Outcome {
    // Only whether one can be entered is of interest: there is no program that would then run there.
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
    match Namespace::create() {
        Ok(_) => Ok("can be made".into()),
        Err(error) => Err(from_error(&error)),
    }
}

/// Runs `f` in a namespace of its own.
fn apart<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let namespace = Namespace::create().map_err(|error| from_error(&error))?;
    namespace
        .run(f)
        .map_err(|error| from_error(&system_error("enter a network namespace", error)))
}

fn tun_devices() -> Outcome {
    match apart(|| tun::create("longfat0"))? {
        Ok(_) => Ok("can be made".into()),
        Err(error) => Err(from_error(&error)),
    }
}

/// Datagrams over a path of 10 ms: how much longer than that they take.
fn emulation() -> Outcome {
    let delay = Duration::from_millis(10);
    let keys = PathConfig {
        delay: Some(delay.into()),
        ..PathConfig::default()
    };
    let no_files = &mut |_: &str| Err(String::new());
    let path = keys
        .resolve(no_files)
        .map_err(|_| (String::new(), String::new(), false))?;
    let options = EmulationOptions::new(Topology::path(&path), Streams::new(1, 0));
    let emulation = Emulation::start(options).map_err(|error| from_error(&error))?;
    let measured = added_delay(&emulation, delay * 2);
    let mut added =
        measured.map_err(|error| from_error(&system_error("send over an emulated path", error)))?;
    added.sort();
    let (median, late) = (added[added.len() / 2], added[added.len() * 99 / 100]);
    let detail = format!(
        "a path of 10 ms adds {} µs to a round trip (median), {} µs (99th percentile)",
        median.as_micros(),
        late.as_micros()
    );
    if late > Duration::from_millis(1) {
        return too_late(
            detail,
            "emulate while the machine is idle, with real-time priority (as root)",
        );
    }
    Ok(detail)
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

/// How late sleeps of half a millisecond end.
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
    let mut late = sleeps.map_err(|error| from_error(&system_error("start a thread", error)))?;
    late.sort();
    let (median, worst) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    let detail = format!(
        "sleeps end {} µs late (median), {} µs (99th percentile)",
        median.as_micros(),
        worst.as_micros()
    );
    if worst > Duration::from_millis(1) {
        return too_late(
            detail,
            "measure while the machine is idle; on a virtual machine, give it processors of its own",
        );
    }
    Ok(detail)
}

fn real_time() -> Outcome {
    match in_thread(|| Ok(priority::become_real_time())) {
        Ok(true) => Ok("granted".into()),
        _ => failure(
            "not granted: delays are less exact",
            "run as root, or let the user have it (in /etc/security/limits.conf: rtprio 1)",
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
    let detail = format!(
        "available {}; allowed to everybody {}",
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

fn vegas() -> Outcome {
    let (available, _) = controllers()?;
    if available.iter().any(|name| name == "vegas") {
        return Ok("the kernel's module".into());
    }
    match bpf() {
        Ok(_) => Ok("not in the kernel; can be built as BPF".into()),
        Err(_) => failure(
            "not in the kernel, and cannot be built as BPF",
            "modprobe tcp_vegas, or see BPF",
        ),
    }
}

fn bpf() -> Outcome {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return failure(
            "the kernel tells no types (/sys/kernel/btf/vmlinux)",
            "use a kernel with CONFIG_DEBUG_INFO_BTF",
        );
    }
    let Some(clang) = find("clang") else {
        return failure(
            "types of the kernel, but no clang",
            "install clang (on Debian and Ubuntu: apt install clang)",
        );
    };
    Ok(format!("types of the kernel, {clang}"))
}

/// Where a program is, as the shell would look for it.
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
        Ok(()) => Ok("sockets can be made".into()),
        Err(error) => failure(
            format!("no sockets: {error}"),
            "use a kernel with CONFIG_MPTCP (5.6 or newer) and sysctl net.mptcp.enabled=1",
        ),
    }
}

fn fast_open() -> Outcome {
    let here = match rights::fast_open() & 3 {
        3 => "clients and servers of this host may",
        1 => "clients of this host may, servers with 3 there",
        2 => "servers of this host may, clients with 3 there",
        _ => "nobody at this host may, but with 3 there",
    };
    match apart(|| read("/proc/sys/net/ipv4/tcp_fastopen"))? {
        Some(value) => Ok(format!(
            "net.ipv4.tcp_fastopen={value} in a new namespace, which an emulated host can set; {here}"
        )),
        None => failure("not in the kernel", "use Linux 3.7 or newer"),
    }
}

fn segmentation() -> Outcome {
    let socket = socket::datagrams::Datagrams::bind(([127, 0, 0, 1], 0).into());
    let socket = socket.map_err(|error| from_error(&system_error("make a UDP socket", error)))?;
    match socket.max_segments() {
        0 | 1 => failure("none: one datagram a system call", "use Linux 4.18 or newer"),
        most => Ok(format!("{most} datagrams a system call")),
    }
}

/// What `longfat ping` and `longfat transact` ask of this host itself.
fn from_right(from_right: Right) -> Outcome {
    match from_right.remedy {
        None => Ok(from_right.detail),
        Some(remedy) => failure(from_right.detail, remedy),
    }
}

fn echo_requests() -> Outcome {
    from_right(rights::echo_requests())
}

fn captures() -> Outcome {
    from_right(rights::captures())
}

fn stamps() -> Outcome {
    from_right(rights::stamps())
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
