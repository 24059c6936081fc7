//! One change to a passing script causes one mismatch with its line.

use packetdrill::run::{Outcome, Report};

use crate::common::NoCode;

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
+.050 < . 1:1(0) ack 1001 win 511 <sack 2001:3001,nop,nop>
   +0 > . 1001:2001(1000) ack 1
";

fn run(text: &str) -> Report {
    packetdrill::run::run(text, &mut NoCode)
}

/// Returns the mismatch of the script with `old` replaced by `new`.
fn mismatch(old: &str, new: &str) -> (u32, String) {
    assert!(SCRIPT.contains(old), "{old}");
    match run(&SCRIPT.replacen(old, new, 1)).outcome {
        Outcome::Fail(mismatch) => (mismatch.line, mismatch.to_string()),
        other => panic!("{old} -> {new}: {other}"),
    }
}

#[test]
fn the_script_itself_passes() {
    assert_eq!(run(SCRIPT).outcome, Outcome::Pass);
}

#[test]
fn compares_each_field_of_a_packet() {
    for (old, new, line, difference) in [
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
        let (at, text) = mismatch(old, new);
        assert_eq!(at, line, "{old} -> {new}: {text}");
        assert!(text.contains(difference), "{old} -> {new}: {text}");
    }
}

#[test]
fn compares_times() {
    let (line, text) = mismatch("+.0145 > .", "+.005 > .");
    assert_eq!(line, 12);
    assert!(text.contains("the packet at 0.1145"), "{text}");
    mismatch("+.0145 > .", "+.050~+.060 > .");
    let later = mismatch(
        "   +0 > . 1001:2001(1000) ack 1",
        "0.020 > . 1001:2001(1000) ack 1",
    );
    assert_eq!(later.0, 14);
}

#[test]
fn compares_results_of_calls() {
    let (line, text) = mismatch("write(4, ..., 3000) = 3000", "write(4, ..., 3000) = 2000");
    assert_eq!(line, 9);
    assert!(text.contains("seen 3000"), "{text}");
    let (_, text) = mismatch(
        "write(4, ..., 3000) = 3000",
        "write(4, ..., 3000) = -1 EPIPE (Broken pipe)",
    );
    assert!(text.contains("EPIPE"), "{text}");
}

#[test]
fn detects_a_missing_packet() {
    let text = format!("{SCRIPT}+.050 < . 1:1(0) ack 3001 win 511\n+0 > . 3001:3002(1) ack 1\n");
    match run(&text).outcome {
        Outcome::Fail(mismatch) => assert_eq!((mismatch.line, mismatch.seen.as_str()), (16, "nothing")),
        other => panic!("{other}"),
    }
}

#[test]
fn compares_fast_open_options() {
    let with = |option: &str| SCRIPT.replacen("<mss 1000,sackOK", &format!("<mss 1000,{option}sackOK"), 1);
    // A server without Fast Open ignores its options (RFC 7413, section 4.2.2).
    let plain = run(SCRIPT).outcome;
    for option in [
        "FO,",
        "FO 12345678,",
        "FO a1b2c3d4e5f60718,nop,nop,",
        "FO 1122,",
        "FOEXP 00000000,",
    ] {
        assert_eq!(run(&with(option)).outcome, plain, "{option}");
    }
    assert!(matches!(run(&with("FO 123,")).outcome, Outcome::Invalid { .. }));
    let granted = SCRIPT.replacen("nop,wscale 7>\n+.050", "nop,wscale 7,FO a1b2c3d4>\n+.050", 1);
    match run(&granted).outcome {
        Outcome::Fail(mismatch) => assert!(mismatch.to_string().contains("FO a1b2c3d4"), "{mismatch}"),
        other => panic!("{other}"),
    }
}

/// A script with one completion in the error queue.
const COMPLETION: &str = "\
`sysctl -q net.ipv4.tcp_timestamps=0`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
   +0 setsockopt(3, SOL_SOCKET, SO_ZEROCOPY, [1], 4) = 0
   +0 bind(3, ..., ...) = 0
   +0 listen(3, 1) = 0
   +0 < S 0:0(0) win 65535 <mss 1000,sackOK,nop,nop,nop,wscale 7>
   +0 > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK,nop,wscale 7>
+.050 < . 1:1(0) ack 1 win 511
   +0 accept(3, ..., ...) = 4
   +0 send(4, ..., 1000, MSG_ZEROCOPY) = 1000
+.050 < . 1:1(0) ack 1001 win 511
   +0 recvmsg(4, {msg_iov(1)=[{..., 0}], msg_control=[{cmsg_level=CMSG_LEVEL_IP, cmsg_type=CMSG_TYPE_RECVERR, \
cmsg_data={ee_type=0, ee_info=0}}]}, MSG_ERRQUEUE) = 0
";

#[test]
fn compares_level_type_and_fields_of_control_messages() {
    assert_eq!(run(COMPLETION).outcome, Outcome::Pass);
    let changed = |old: &str, new: &str| {
        assert!(COMPLETION.contains(old), "{old}");
        run(&COMPLETION.replacen(old, new, 1)).outcome
    };
    let level = "CMSG_LEVEL_IP";
    let level_and_type = "CMSG_LEVEL_IP, cmsg_type=CMSG_TYPE_RECVERR";
    let stamp = "SOL_SOCKET, cmsg_type=SCM_TIMESTAMPING";
    let with_length = "CMSG_LEVEL_IP, cmsg_len=1";
    for (old, new, is_supported, named) in [
        ("ee_info=0", "ee_info=1", true, "ee_info=1"),
        ("ee_type=0", "ee_type=1", true, "ee_type=1"),
        (level_and_type, stamp, true, "a time stamp"),
        (level, "SOL_SOCKET", false, "SOL_SOCKET"),
        ("CMSG_TYPE_RECVERR", "SCM_RIGHTS", false, "SCM_RIGHTS"),
        ("ee_type=0", "ee_pad=0", false, "ee_pad"),
        ("cmsg_level=CMSG_LEVEL_IP, ", "", false, "control message"),
        (level, with_length, false, "cmsg_len"),
    ] {
        let text = match changed(old, new) {
            Outcome::Fail(mismatch) if is_supported => mismatch.expected,
            Outcome::Unsupported { what, .. } if !is_supported => what,
            other => panic!("{new}: {other}"),
        };
        assert!(text.contains(named), "{new}: {text}");
    }
}

#[test]
fn default_addresses_of_cookies_follow_the_ip_version() {
    let script = |options: &str| {
        format!(
            "{options}`sysctl -q net.ipv4.tcp_timestamps=0 net.ipv4.tcp_fastopen=0x402`\n\
             0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 65535 <mss 1000,sackOK,FO>\n+0 > S. 0:0(0) ack 1 <FO 00>\n"
        )
    };
    let cookie = |options: &str| match run(&script(options)).outcome {
        Outcome::Fail(mismatch) => mismatch.seen.split("FO ").nth(1).unwrap()[..16].to_owned(),
        other => panic!("{options}: {other}"),
    };
    let explicit = "--local_ip=fd3d:fa7b:d17d::1\n--remote_ip=2001:db8::1\n";
    assert_eq!(
        cookie("--ip_version=ipv6\n"),
        cookie(&format!("--ip_version=ipv6\n{explicit}"))
    );
    assert_ne!(cookie("--ip_version=ipv6\n"), cookie(""));
    let other = "--remote_ip=2001:db8::7\n";
    assert_eq!(
        cookie(&format!("{other}--ip_version=ipv6\n")),
        cookie(&format!("--ip_version=ipv6\n{other}"))
    );
}

#[test]
fn names_unsupported_features() {
    for (line, named) in [
        ("+0 splice(4, 5, 10) = 10", "splice"),
        (
            "+0 setsockopt(4, SOL_TCP, TCP_NOTSENT_LOWAT, [1], 4) = 0",
            "TCP_NOTSENT_LOWAT",
        ),
        ("+0 send(4, ..., 10, MSG_OOB) = 10", "flags 0x1"),
        (
            "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5\n+0 sendto(5, ..., 10, MSG_FASTOPEN|MSG_EOR, ..., ...) = 10",
            "MSG_EOR",
        ),
        (
            "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5\n+0 sendto(5, ..., 10, MSG_FASTOPEN|MSG_MORE, ..., ...) = 10",
            "MSG_MORE",
        ),
        ("+0 `sysctl -q net.ipv4.tcp_nonesuch=1`", "tcp_nonesuch"),
        ("+0 < icmp unreachable sr_failed [1:1001(1000)]", "sr_failed"),
    ] {
        match run(&format!("{SCRIPT}{line}\n")).outcome {
            Outcome::Unsupported { line: at, what } => {
                assert_eq!(at as usize, 14 + line.lines().count(), "{line}");
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
