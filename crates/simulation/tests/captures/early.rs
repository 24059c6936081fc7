//! Fast Open and T/TCP in captures: tshark decodes their options and data on SYNs.

use simulation::body::Side;

use super::{trial, tshark};

fn transactions(keys: &str) -> Option<Vec<String>> {
    let trial = trial(&format!(
        r#"{{"path": {{"rate": "20Mbit/s", "delay": "10ms"}}, "protocol": {{"kind": "tcp"{keys}}},
            "workload": {{"kind": "request-response", "requests": 2, "reconnect": true, "request_size": "300B",
                "response_size": "500B", "think": "1s"}}, "seed": 1}}"#
    ))?;
    let fields = [
        "tcp.flags.str",
        "tcp.len",
        "tcp.options.tfo.request",
        "tcp.options.tfo.cookie",
        // CC, CC.NEW and CC.ECHO, by their kinds.
        "tcp.options.cc",
    ];
    let mut arguments = vec!["-T", "fields", "-E", "separator=;", "-Y", "tcp.flags.syn == 1"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let reported = tshark(&trial.at(Side::Sender), &arguments);
    Some(reported.lines().map(str::to_owned).collect())
}

/// Returns the length in a line, and the positions of its non-empty fields.
fn fields(line: &str) -> (u32, Vec<usize>) {
    let parts: Vec<&str> = line.split(';').collect();
    let set = (2..parts.len()).filter(|&at| !parts[at].is_empty()).collect();
    (parts[1].parse().unwrap(), set)
}

#[test]
fn tshark_reads_cookies() {
    let Some(lines) = transactions(r#", "fast_open": true"#) else {
        return;
    };
    let [request, grant, shown, taken] = [0, 1, 2, 3].map(|at| fields(&lines[at]));
    assert_eq!((request, grant), ((0, vec![2]), (0, vec![3])), "{lines:?}");
    assert_eq!((shown, taken), ((300, vec![3]), (0, vec![])), "{lines:?}");
    let cookie = |line: &str| line.split(';').nth(3).map(str::to_owned);
    assert_eq!(cookie(&lines[1]), cookie(&lines[2]));
}

#[test]
fn tshark_reads_counts() {
    let Some(lines) = transactions(r#", "ttcp": true"#) else {
        return;
    };
    let found: Vec<(u32, Vec<&str>)> = lines
        .iter()
        .map(|line| {
            let options = line.rsplit(';').find(|part| !part.is_empty()).unwrap();
            let kinds = options.split(',').map(|option| &option[..4]).collect();
            (fields(line).0, kinds)
        })
        .collect();
    let [cc, new, echo] = ["0b06", "0c06", "0d06"];
    let expected = [
        (0, vec![new]),
        (0, vec![cc, echo]),
        (300, vec![cc]),
        (500, vec![cc, echo]),
    ];
    assert_eq!(found, expected, "{lines:?}");
}
