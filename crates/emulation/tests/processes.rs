//! Commands at hosts, shells over paths, and their complete cleanup.

#![cfg(target_os = "linux")]

use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use emulation::shell::{self, ShellOptions, ShellReport};
use emulation::{Error, clean, doctor, user_namespace};
use foundation::Streams;
use network::PathConfig;

use crate::common::{
    FAR, NEAR, Requirement, is_rerun, options, path, processes_with, rerun, rerun_without_privileges, skip,
    skip_without, start,
};

fn wait_for<T: PartialEq + std::fmt::Debug>(expected: &T, mut look: impl FnMut() -> T) {
    let start = Instant::now();
    loop {
        let seen = look();
        if seen == *expected {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "still {seen:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_sees_only_its_host() {
    let Some(emulation) = start(options(path("{}"))) else {
        return;
    };
    let mut command = Command::new("cat");
    command.arg("/proc/net/dev").stdout(Stdio::piped());
    let output = emulation
        .spawn_in_host(FAR, command)
        .unwrap()
        .wait_with_output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let devices: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, _)| name.trim())
        .collect();
    assert_eq!(devices, ["lo", "longfat0"]);
    let mut command = Command::new("sh");
    // The kernel's host name, the names of hosts, and the processes: init, this shell and its command.
    let look = "cat /proc/sys/kernel/hostname; tail -2 /etc/hosts; ls -d /proc/[0-9]* | wc -l";
    command.args(["-c", look]).stdout(Stdio::piped());
    let output = emulation
        .spawn_in_host(FAR, command)
        .unwrap()
        .wait_with_output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (names, processes) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(names, "receiver\n10.77.0.1 sender\n10.77.0.2 receiver");
    assert!(processes.parse::<u32>().unwrap() <= 5, "{text}");
    let mut command = Command::new("sh");
    command.args(["-c", "kill -9 $$"]);
    let status = emulation.spawn_in_host(NEAR, command).unwrap().wait().unwrap();
    assert_eq!(status.signal(), Some(9));
    let missing = emulation.spawn_in_host(NEAR, Command::new("/no/such/command"));
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn commands_and_their_daemons_end_with_the_emulation() {
    let Some(emulation) = start(options(path("{}"))) else {
        return;
    };
    let mark = format!("LONGFAT_TEST={}-ends", std::process::id());
    let (key, value) = mark.split_once('=').unwrap();
    let mut command = Command::new("sh");
    command
        .args(["-c", "(setsid sleep 3000 &) ; sleep 3000"])
        .env(key, value);
    let mut child = emulation.spawn_in_host(NEAR, command).unwrap();
    wait_for(&3, || processes_with(&mark).len());
    let begin = Instant::now();
    drop(emulation);
    assert!(
        begin.elapsed() < Duration::from_secs(300),
        "the end does not wait for commands of 3000 s"
    );
    wait_for(&Vec::new(), || processes_with(&mark));
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn delays_are_right_without_real_time_priority() {
    let mut ordinary = options(path(r#"{"delay": "10ms"}"#));
    ordinary.real_time = false;
    let Some(emulation) = start(ordinary) else {
        return;
    };
    assert!(!emulation.report().real_time);
    let mut command = rerun("processes::probe_the_peer");
    let peer = emulation.host_address(FAR).to_string();
    command
        .env(shell::PEER, peer)
        .env("MIN_MS", "20")
        .stdout(Stdio::null());
    assert!(
        emulation
            .spawn_in_host(NEAR, command)
            .unwrap()
            .wait()
            .unwrap()
            .success()
    );
    let report = emulation.report();
    assert_eq!((report.read, report.written, report.refused), (10, 10, 0));
    assert_eq!(
        report
            .delays
            .iter()
            .map(|delays| delays.len())
            .collect::<Vec<_>>(),
        [5, 5]
    );
}

#[test]
fn nothing_is_changed_outside() {
    let look = || {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let devices: Vec<String> = read("/proc/net/dev")
            .lines()
            .filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()))
            .collect();
        let settings = [
            "net/ipv4/ip_forward",
            "net/ipv4/tcp_rmem",
            "net/ipv4/tcp_wmem",
            "net/ipv4/tcp_no_metrics_save",
            "net/ipv4/ping_group_range",
            "net/ipv4/icmp_ratelimit",
            "net/ipv6/conf/all/disable_ipv6",
            "net/ipv6/conf/default/disable_ipv6",
        ];
        (
            devices,
            read("/proc/net/route"),
            settings.map(|name| read(&format!("/proc/sys/{name}"))),
        )
    };
    let before = look();
    let Some(emulation) = start(options(path("{}"))) else {
        return;
    };
    assert_eq!(look(), before);
    drop(emulation);
    assert_eq!(look(), before);
}

const MARK: &str = "LONGFAT_TEST_KILLED";

/// Emulates, with commands and a daemon, until it is killed.
#[test]
#[ignore = "run by the test below"]
fn emulate_until_killed() {
    if !is_rerun() {
        return;
    }
    loop {
        let emulation = start(options(path(r#"{"delay": "1ms"}"#))).unwrap();
        let mut children = Vec::new();
        for host in [NEAR, FAR] {
            let mut command = Command::new("sh");
            command.args(["-c", "(setsid sleep 3000 &) ; sleep 3000"]);
            children.push(emulation.spawn_in_host(host, command).unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
        drop(emulation);
        for mut child in children {
            child.wait().unwrap();
        }
    }
}

#[test]
fn a_killed_process_leaves_nothing() {
    if start(options(path("{}"))).is_none() {
        return;
    }
    let rounds = testing::count("LONGFAT_KILLS", 16);
    let mark = format!("{MARK}={}", std::process::id());
    let (key, value) = mark.split_once('=').unwrap();
    for round in 0..rounds {
        let mut command = rerun("processes::emulate_until_killed");
        command.env(key, value).stdout(Stdio::null());
        let mut process = command.spawn().unwrap();
        // Times in the first 150 ms, in which everything starts, runs and stops at least once.
        std::thread::sleep(Duration::from_micros(round * 61_803 % 150_000));
        assert!(process.try_wait().unwrap().is_none(), "it exited before the kill");
        process.kill().unwrap();
        process.wait().unwrap();
        wait_for(&Vec::new(), || processes_with(&mark));
    }
    wait_for(&Vec::new(), clean::leftovers);
}

/// Sends to a closed port of the other end, whose kernel refuses after one RTT.
#[test]
#[ignore = "run by tests below"]
fn probe_the_peer() {
    if !is_rerun() {
        return;
    }
    let peer = std::env::var(shell::PEER).unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.connect((peer.as_str(), 9)).unwrap();
    for _ in 0..5 {
        let start = Instant::now();
        socket.send(b"probe").unwrap();
        let error = socket.recv(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
        let minimum = std::env::var("MIN_MS").unwrap().parse().unwrap();
        assert!(
            start.elapsed() >= Duration::from_millis(minimum),
            "{:?}",
            start.elapsed()
        );
    }
}

/// Runs a shell within this one's shell.
#[test]
#[ignore = "run by a test below"]
fn probe_over_nested_paths() {
    if !is_rerun() {
        return;
    }
    let mut command = rerun("processes::probe_the_peer");
    // The peer is at the far end of both paths.
    command.env("MIN_MS", "60").stdout(Stdio::null());
    let report = shell(r#"{"delay": "10ms"}"#, command).unwrap();
    assert_eq!(
        (report.code, report.forward.delivered, report.reverse.delivered),
        (0, 5, 5)
    );
}

fn shell(keys: &str, command: Command) -> Result<ShellReport, Error> {
    let path: PathConfig = serde_json::from_str(keys).unwrap();
    let path = path.links(&mut |_| Err("no files".into())).unwrap();
    let options = ShellOptions::new(path, Streams::new(1, 0), command);
    shell::run(options, &mut || None)
}

/// The report; `None`, with a printed reason, if the system lacks something.
fn try_shell(keys: &str, command: Command) -> Option<ShellReport> {
    match shell(keys, command) {
        Err(error @ (Error::Permission { .. } | Error::Missing { .. })) => {
            skip_without(&error);
            None
        }
        result => Some(result.unwrap()),
    }
}

#[test]
fn shell_reports_the_path() {
    let mut command = rerun("processes::probe_the_peer");
    command.env("MIN_MS", "40").stdout(Stdio::null());
    let Some(report) = try_shell(r#"{"delay": "20ms", "rate": "1Mbit/s"}"#, command) else {
        return;
    };
    assert_eq!(report.code, 0);
    for link in [&report.forward, &report.reverse] {
        assert_eq!(
            (link.packets, link.delivered, link.lost, link.queue_dropped),
            (5, 5, 0, 0)
        );
        let delay = link.delay_p50_s.unwrap();
        assert!(delay >= 0.020, "{delay}");
        let rate = link.rate_bps.unwrap();
        assert!((rate / 1e6 - 1.0).abs() < 0.01, "{rate}");
    }
    let mut command = Command::new("sh");
    command.args(["-c", "exit 7"]);
    assert_eq!(shell("{}", command).unwrap().code, 7);
    let error = shell("{}", Command::new("/no/such/command")).unwrap_err();
    assert_eq!(error.to_string(), "/no/such/command: no such command");
}

#[test]
fn nested_shells_concatenate_their_paths() {
    let mut command = rerun("processes::probe_over_nested_paths");
    command.stdout(Stdio::null());
    let Some(report) = try_shell(r#"{"delay": "20ms"}"#, command) else {
        return;
    };
    assert_eq!((report.code, report.forward.delivered), (0, 5));
}

/// Emulates with the caller's permissions.
#[test]
#[ignore = "run by the test below"]
fn emulate_once() {
    if !is_rerun() {
        return;
    }
    let Some(emulation) = start(options(path(r#"{"delay": "5ms"}"#))) else {
        return;
    };
    let mut command = rerun("processes::probe_the_peer");
    let peer = emulation.host_address(FAR).to_string();
    command
        .env(shell::PEER, peer)
        .env("MIN_MS", "10")
        .stdout(Stdio::null());
    let status = emulation.spawn_in_host(NEAR, command).unwrap().wait().unwrap();
    assert!(status.success(), "{status}");
}

/// Emulates in a user namespace.
#[test]
#[ignore = "run by the test below"]
fn emulate_in_a_user_namespace() {
    if !is_rerun() {
        return;
    }
    let mut command = rerun("processes::emulate_once");
    user_namespace::inside(&mut command);
    let status = command.status().unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn a_user_namespace_is_enough() {
    if has_user_namespaces() {
        succeeds_without_privileges("processes::emulate_in_a_user_namespace");
    }
}

/// Returns whether this system has user namespaces; skips the test otherwise.
fn has_user_namespaces() -> bool {
    let mut probe = Command::new("true");
    user_namespace::inside(&mut probe);
    match probe.status() {
        Ok(_) => true,
        Err(error) => {
            skip(
                Requirement::Netns,
                format!(
                    "no user namespace: {error}; {}",
                    emulation::privileges::namespace_remedy()
                ),
            );
            false
        }
    }
}

fn succeeds_without_privileges(test: &str) {
    if let Some(mut command) = rerun_without_privileges(test) {
        let done = command.output().unwrap();
        let events = String::from_utf8_lossy(&done.stdout);
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{events}{errors}");
    }
}

/// Emulates with permission; without, starts itself again with permission.
#[test]
#[ignore = "run by the test below"]
fn emulate_after_rerun() {
    if !is_rerun() {
        return;
    }
    if emulation::privileges::missing_capabilities().is_empty() {
        user_namespace::enter().unwrap();
        start(options(path("{}")));
        return;
    }
    let error = user_namespace::enter().unwrap_err().to_string();
    assert!(error.contains("before the first thread"), "{error}");
    let mut again = Command::new("/proc/self/exe");
    user_namespace::inside(again.args(std::env::args_os().skip(1)));
    assert!(again.status().unwrap().success());
}

#[test]
fn reruns_itself_in_a_user_namespace() {
    if has_user_namespaces() {
        succeeds_without_privileges("processes::emulate_after_rerun");
    }
}

/// Tries to emulate and fails.
#[test]
#[ignore = "run by the test below"]
fn fail_to_emulate() {
    if !is_rerun() {
        return;
    }
    let error = emulation::Emulation::start(options(path("{}"))).unwrap_err();
    assert!(matches!(error, Error::Permission { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains("CAP_SYS_ADMIN") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn names_missing_permissions() {
    succeeds_without_privileges("processes::fail_to_emulate");
}

#[test]
fn doctor_names_a_fix_for_each_failure() {
    let probes = doctor::probe();
    for probe in &probes {
        assert!(!probe.name.is_empty() && !probe.detail.is_empty(), "{probe:?}");
        assert_eq!(probe.ok, probe.remedy.is_none(), "{probe:?}");
    }
    let ok = |name| probes.iter().find(|probe| probe.name == name).unwrap().ok;
    let starts = start(options(path("{}"))).is_some();
    assert_eq!(ok("network namespaces") && ok("TUN devices"), starts);
    let text = serde_json::to_string_pretty(&probes).unwrap();
    println!("{text}");
    assert!(text.contains("congestion control"), "{text}");
}
