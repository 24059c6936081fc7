//! Unchanged programs over the project's TCP: curl, Python's HTTP server and iperf3.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use crate::common::{FAR, NEAR, Requirement, options, path, skip, start};
use emulation::{Emulation, HostGateway};
use foundation::Streams;
use network::HostId;
use transport::tcp::TcpConfig;

/// Hosts with the project's TCP instead of the kernel's.
const HERE: &[HostId] = &[NEAR];
const THERE: &[HostId] = &[FAR];
const BOTH: &[HostId] = &[NEAR, FAR];

const LOSSY: &str = r#"{"rate": "50Mbit/s", "delay": "5ms", "loss": "2%",
    "reorder": {"probability": "2%", "delay": "6ms"}, "queue": "200pkt"}"#;

fn has(program: &str) -> bool {
    let found = Command::new("which").arg(program).stdout(Stdio::null()).status();
    let found = found.is_ok_and(|status| status.success());
    if !found {
        skip(Requirement::Programs, format!("{program} is not installed"));
    }
    found
}

fn gateways(emulation: &Emulation, hosts: &[HostId], keys: &str) -> Vec<HostGateway> {
    let config: TcpConfig = serde_json::from_str(&format!(r#"{{"kind": "tcp"{keys}}}"#)).unwrap();
    let config = Arc::new(config);
    let begin = |&host: &HostId| {
        let secret = Streams::new(3, u64::from(host.0));
        HostGateway::start(emulation, host, Arc::clone(&config), secret).unwrap()
    };
    hosts.iter().map(begin).collect()
}

fn run(emulation: &Emulation, host: HostId, words: &str) -> Output {
    let mut command = Command::new("sh");
    command
        .args(["-c", words])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    emulation
        .spawn_in_host(host, command)
        .unwrap()
        .wait_with_output()
        .unwrap()
}

/// A folder with a file without repetition.
fn folder(name: &str, bytes: usize) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("longfat-gateway-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut state = 1_u32;
    let content: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .take(bytes)
    .collect();
    std::fs::File::create(folder.join("file"))
        .unwrap()
        .write_all(&content)
        .unwrap();
    folder
}

fn fetch(emulation: &Emulation, folder: &Path) {
    let serve = format!(
        "cd {} && exec python3 -m http.server 8000 >/dev/null 2>&1",
        folder.display()
    );
    let mut server = Command::new("sh");
    server.args(["-c", &serve]).stdin(Stdio::null());
    let mut server = emulation.spawn_in_host(FAR, server).unwrap();
    let address = emulation.host_address(FAR);
    let copy = folder.join("copy");
    let output = run(
        emulation,
        NEAR,
        &format!(
            "curl -sS --max-time 60 --retry 20 --retry-delay 1 --retry-connrefused -o {} http://{address}:8000/file",
            copy.display()
        ),
    );
    let _ = server.kill();
    let _ = server.wait();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let same = std::fs::read(folder.join("file")).unwrap() == std::fs::read(copy).unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    assert!(same, "the received file differs");
}

#[test]
fn curl_downloads_over_the_projects_tcp() {
    if !has("curl") || !has("python3") {
        return;
    }
    for (name, hosts, keys) in [
        ("here", HERE, ""),
        ("there", THERE, ""),
        ("both", BOTH, r#", "congestion": "bbr""#),
        (
            "small",
            THERE,
            r#", "send_buffer": "16KiB", "congestion": "vegas""#,
        ),
    ] {
        let Some(emulation) = start(options(path(LOSSY))) else {
            return;
        };
        let _gateways = gateways(&emulation, hosts, keys);
        fetch(&emulation, &folder(name, 1_000_000));
    }
}

#[test]
fn gateway_splits_large_packets_of_the_kernel() {
    if !has("curl") || !has("python3") {
        return;
    }
    let Some(emulation) = start(options(path(r#"{"delay": "2ms"}"#))) else {
        return;
    };
    let _gateways = gateways(&emulation, THERE, "");
    fetch(&emulation, &folder("large", 3_000_000));
}

#[test]
fn gateway_relays_refusals() {
    if !has("curl") {
        return;
    }
    let Some(emulation) = start(options(path(r#"{"delay": "2ms"}"#))) else {
        return;
    };
    let _gateways = gateways(&emulation, BOTH, "");
    let address = emulation.host_address(FAR);
    let output = run(
        &emulation,
        NEAR,
        &format!("curl -sS --max-time 10 http://{address}:81/"),
    );
    // "Failed to connect to host."
    assert_eq!(output.status.code(), Some(7), "{output:?}");
}

#[test]
fn iperf3_measures_the_projects_tcp() {
    if !has("iperf3") {
        return;
    }
    let keys = r#"{"rate": "20Mbit/s", "delay": "5ms", "queue": "100pkt"}"#;
    for (hosts, reverse) in [(HERE, ""), (THERE, "-R"), (BOTH, "")] {
        let Some(emulation) = start(options(path(keys))) else {
            return;
        };
        let _gateways = gateways(&emulation, hosts, "");
        let mut server = Command::new("iperf3");
        server
            .args(["-s", "-1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut server = emulation.spawn_in_host(FAR, server).unwrap();
        let address = emulation.host_address(FAR);
        let line = format!("sleep 0.5; exec timeout 30 iperf3 -J -t 3 -c {address} {reverse}");
        let output = run(&emulation, NEAR, &line);
        let _ = server.kill();
        let _ = server.wait();
        let events: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let rate = events["end"]["sum_received"]["bits_per_second"]
            .as_f64()
            .unwrap_or_else(|| panic!("{events}"));
        // At most the payload's share of the rate, and the data in the gateways' buffers.
        assert!(0.0 < rate && rate < 25e6, "{hosts:?}: {rate}");
    }
}
