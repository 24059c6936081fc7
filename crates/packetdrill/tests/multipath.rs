//! One change to a script of multipath TCP causes one mismatch with its line.

use packetdrill::run::{Outcome, run};

use crate::common::NoCode;

const SCRIPT: &str = include_str!("../../../tests/packetdrill/mptcp-addresses.pkt");

/// Returns the outcome of the script with the first `old` after `line` replaced by `new`.
fn changed(line: usize, old: &str, new: &str) -> Outcome {
    let mut lines: Vec<String> = SCRIPT.lines().map(str::to_owned).collect();
    let text = &mut lines[line - 1];
    assert!(text.contains(old), "{text}");
    *text = text.replacen(old, new, 1);
    run(&lines.join("\n"), &mut NoCode).outcome
}

/// Returns the number of the first line that contains `part`.
fn line_of(part: &str) -> usize {
    SCRIPT.lines().position(|line| line.contains(part)).unwrap() + 1
}

#[test]
fn compares_each_part_of_an_option() {
    let (answer, announcement) = (line_of("> S. 0:0(0)"), line_of("> . 1:1(0) ack 1 <add_address"));
    let (join, refused) = (line_of("mp_join_syn_ack"), line_of("mp_reset 1>"));
    let (data, written) = (line_of("> . 1:1(0) ack 501"), line_of("P. 1:101(100)"));
    for (line, old, new, difference) in [
        (
            answer,
            "flags[flag_h]",
            "flags[flag_a, flag_h]",
            "another MP_CAPABLE",
        ),
        (answer, "key[skey]", "nokey", "another MP_CAPABLE"),
        (
            answer,
            ",mpcapable v1 flags[flag_h] key[skey]",
            "",
            "another MPTCP option",
        ),
        (announcement, "address_id=1", "address_id=2", "another ADD_ADDR"),
        (announcement, "hmac=auto", "addr_echo", "another ADD_ADDR"),
        (announcement, "addr[s1]", "addr[s0]", "another ADD_ADDR"),
        (announcement, "dack4=1", "dack8=1", "another DSS"),
        (
            announcement,
            "<add_address address_id=1 addr[s1] hmac=auto,dss dack4=1>",
            "<dss dack4=1>",
            "another MPTCP option",
        ),
        (
            join,
            "mp_join_syn_ack",
            "mp_join_syn_ack backup=1",
            "another MP_JOIN",
        ),
        (refused, "mp_reset 1", "mp_reset 2", "another MPTCP option"),
        (data, "dack4=1501", "dack4=1502", "another DSS"),
        (
            data,
            "dss dack4=1501",
            "dss dack4=1501,mp_prio backup=1",
            "a missing MPTCP option",
        ),
        (written, "dsn8=1", "dsn8=2", "another DSS"),
        (written, "ssn=1", "ssn=2", "another DSS"),
        (written, "dll=100 nocs", "dll=101 nocs", "another DSS"),
        (written, "nocs", "", "another DSS"),
        (written, "addr[s0] > addr[c0]", "addr[s1] > addr[c2]", "nothing"),
    ] {
        match changed(line, old, new) {
            Outcome::Fail(mismatch) => {
                assert_eq!(mismatch.line as usize, line, "{old} -> {new}: {mismatch}");
                assert!(mismatch.seen.contains(difference), "{old} -> {new}: {mismatch}");
            }
            other => panic!("{old} -> {new}: {other}"),
        }
    }
}

/// Options that RFC 8684 ignores have no effect, so that a later line fails.
#[test]
fn wrong_tokens_and_versions_have_no_subflow() {
    let join = line_of("token=sha256_32(skey)");
    for (line, old, new) in [
        (join, "token=sha256_32(skey)", "token=6"),
        (
            line_of("mp_join_ack"),
            "mp_join_ack sender_hmac=auto",
            "mp_prio backup=0",
        ),
        (line_of("key[ckey=2, skey]"), "mpcapable v1", "mpcapable v0"),
    ] {
        let outcome = changed(line, old, new);
        assert!(matches!(outcome, Outcome::Fail(_)), "{old} -> {new}: {outcome}");
    }
}
