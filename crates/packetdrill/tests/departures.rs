//! What does not fit is noticed, and told with its line: one change to a script that passes, one departure.

use packetdrill::run::{Outcome, run};

const SCRIPT: &str = "\
`sysctl -q net.ipv4.tcp_timestamps=0`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.050 < . 1:1(0) ack 1 win 511
   +0 accept(3, ..., ...) = 4
   +0 write(4, ..., 3000) = 3000
   +0 > [noecn] P. 1:3001(3000) ack 1
+.050 < . 1:1(0) ack 1 win 511 <sack 2001:3001,nop,nop>
+.0145 > . 1:1001(1000) ack 1
   +0 %{ assert tcpi_lost == 2, tcpi_lost }%
+.050 < . 1:1(0) ack 1001 win 511 <sack 2001:3001,nop,nop>
   +0 > . 1001:2001(1000) ack 1
";

/// The departure of the script with `old` replaced by `new`.
fn departure(old: &str, new: &str) -> (u32, String) {
    assert!(SCRIPT.contains(old), "{old}");
    match run(&SCRIPT.replacen(old, new, 1)).outcome {
        Outcome::Fail(departure) => (departure.line, departure.to_string()),
        other => panic!("{old} -> {new}: {other}"),
    }
}

#[test]
fn the_script_itself_passes() {
    assert_eq!(run(SCRIPT).outcome, Outcome::Pass);
}

#[test]
fn each_field_of_a_packet_counts() {
    for (old, new, line, told) in [
        ("> . 1:1001(1000)", "> P. 1:1001(1000)", 12, "other flags"),
        (
            "> . 1:1001(1000)",
            "> . 2:1002(1000)",
            12,
            "another sequence number",
        ),
        ("> . 1:1001(1000)", "> . 1:1000(999)", 12, "another length"),
        (
            "P. 1:3001(3000) ack 1",
            "P. 1:3001(3000) ack 2",
            10,
            "another acknowledgement number",
        ),
        (
            "P. 1:3001(3000) ack 1",
            "P. 1:3001(3000) ack 1 win 7",
            10,
            "another window",
        ),
        ("[noecn] P.", "[ect01] P.", 10, "another ECN codepoint"),
        ("<mss 1460,nop", "<mss 1400,nop", 6, "another MSS option"),
        (
            "nop,wscale 7>\n+.050",
            "nop,wscale 8>\n+.050",
            6,
            "another window scale option",
        ),
        (
            "<mss 1460,nop,nop,sackOK,",
            "<mss 1460,nop,nop,",
            6,
            "another SACK-permitted option",
        ),
        (
            "wscale 7>\n+.050",
            "wscale 7,TS val 1 ecr 0>\n+.050",
            6,
            "another timestamps option",
        ),
        (
            "P. 1:3001(3000) ack 1",
            "P. 1:3001(3000) ack 1 <sack 5:6>",
            10,
            "other SACK blocks",
        ),
    ] {
        let (at, text) = departure(old, new);
        assert_eq!(at, line, "{old} -> {new}: {text}");
        assert!(text.contains(told), "{old} -> {new}: {text}");
    }
}

#[test]
fn times_count() {
    let (line, text) = departure("+.0145 > .", "+.005 > .");
    assert_eq!(line, 12);
    assert!(text.contains("it at 0.1145"), "{text}");
    departure("+.0145 > .", "+.050~+.060 > .");
    let later = departure(
        "   +0 > . 1001:2001(1000) ack 1",
        "0.020 > . 1001:2001(1000) ack 1",
    );
    assert_eq!(later.0, 15);
}

#[test]
fn results_of_calls_and_assertions_count() {
    let (line, text) = departure("write(4, ..., 3000) = 3000", "write(4, ..., 3000) = 2000");
    assert_eq!(line, 9);
    assert!(text.contains("seen 3000"), "{text}");
    let (line, text) = departure("tcpi_lost == 2", "tcpi_lost == 1");
    assert_eq!(line, 13);
    assert!(text.contains("tcpi_lost = 2"), "{text}");
    let (_, text) = departure(
        "write(4, ..., 3000) = 3000",
        "write(4, ..., 3000) = -1 EPIPE (Broken pipe)",
    );
    assert!(text.contains("EPIPE"), "{text}");
}

#[test]
fn a_packet_that_never_comes_is_missed() {
    let text = format!("{SCRIPT}+.050 < . 1:1(0) ack 3001 win 511\n+0 > . 3001:3002(1) ack 1\n");
    match run(&text).outcome {
        Outcome::Fail(departure) => assert_eq!((departure.line, departure.seen.as_str()), (17, "nothing")),
        other => panic!("{other}"),
    }
}

#[test]
fn options_of_fast_open_are_read_and_compared() {
    let with = |option: &str| SCRIPT.replacen("<mss 1000,sackOK", &format!("<mss 1000,{option}sackOK"), 1);
    // Who does not serve Fast Open passes its options over (RFC 7413, section 4.2.2).
    let plain = run(SCRIPT).outcome;
    for option in ["FO,", "FO 12345678,", "FO a1b2c3d4e5f60718,nop,nop,"] {
        assert_eq!(run(&with(option)).outcome, plain, "{option}");
    }
    assert!(matches!(
        run(&with("FO 123,")).outcome,
        Outcome::Unsupported { .. }
    ));
    let granted = SCRIPT.replacen("nop,wscale 7>\n+.050", "nop,wscale 7,FO a1b2c3d4>\n+.050", 1);
    match run(&granted).outcome {
        Outcome::Fail(departure) => assert!(departure.to_string().contains("FO a1b2c3d4"), "{departure}"),
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_not_supported_is_named_and_nothing_is_passed_over() {
    for (line, named) in [
        ("+0 splice(4, 5, 10) = 10", "splice"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0",
            "TCP_FASTOPEN",
        ),
        ("+0 send(4, ..., 10, MSG_OOB) = 10", "flags 0x1"),
        ("+0 `sysctl -q net.ipv4.tcp_nonesuch=1`", "tcp_nonesuch"),
        ("+0 %{ assert tcpi_nonesuch == 1 }%", "tcpi_nonesuch"),
        (
            "+0 < icmp unreachable host_unreachable [1:1001(1000)]",
            "host_unreachable",
        ),
    ] {
        match run(&format!("{SCRIPT}{line}\n")).outcome {
            Outcome::Unsupported { line: at, what } => {
                assert_eq!(at, 16, "{line}");
                assert!(what.contains(named), "{line}: {what}");
            }
            other => panic!("{line}: {other}"),
        }
    }
    assert!(matches!(
        run("+0 what is this").outcome,
        Outcome::Invalid { line: 1, .. }
    ));
}
