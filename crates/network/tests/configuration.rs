//! `[path]`: valid keys, messages about invalid ones, presets and `reverse`.

use crate::common;
use network::loss::{Every, Packets};
use network::{Capacity, LossConfig, PathConfig, Preset, QueueConfig, TopologyConfig};

fn read(json: &str) -> PathConfig {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn refusal(json: &str) -> String {
    serde_json::from_str::<PathConfig>(json).unwrap_err().to_string()
}

fn problems(json: &str) -> Vec<String> {
    read(json).validate().iter().map(ToString::to_string).collect()
}

#[test]
fn all_forms_round_trip() {
    for json in [
        r#"{}"#,
        r#"{"preset":"geo-satellite","reverse":{"rate":"1Mbit/s"}}"#,
        r#"{"rate":"100Mbit/s","delay":"5ms","jitter":{"spread":"1ms","distribution":"normal","keep_order":false}}"#,
        r#"{"trace":"cell.down","loss":"2%","queue":"64KiB","mtu":"1500B"}"#,
        r#"{"loss":{"kind":"gilbert-elliott","enter_bad":"1%","leave_bad":"25%","loss_good":"0%","loss_bad":"100%"}}"#,
        r#"{"loss":{"kind":"every","every":50},"duplicate":"1%","corrupt":"0.5%"}"#,
        r#"{"loss":{"kind":"packets","packets":[3,7]},"reorder":{"probability":"1%","delay":"5ms"}}"#,
        r#"{"queue":{"kind":"drop-head","limit":"20pkt"}}"#,
        r#"{"queue":{"kind":"red","limit":"90pkt","min_threshold":"5pkt","max_probability":"2%","weight":0.01,"gentle":false,"adaptive":true,"mean_packet":"500B","ecn":true}}"#,
        r#"{"queue":{"kind":"codel","limit":"64KiB","target":"1ms","interval":"20ms","ecn":true}}"#,
        r#"{"queue":{"kind":"fq-codel","limit":"10240pkt","flows":16,"quantum":"300B","target":"5ms","interval":"100ms","ecn":false}}"#,
        r#"{"queue":{"kind":"pie","limit":"90pkt","target":"20ms","update":"30ms","max_burst":"1ms","alpha":0.25,"beta":2.5,"ecn":true,"mark_threshold":"5%"}}"#,
        r#"{"rate":"9Mbit/s","queue":{"kind":"pi2","limit":"90pkt","target":"20ms","update":"30ms","alpha":0.25,"beta":2.5,"coupling":1.5}}"#,
        r#"{"trace":"cell.down","queue":{"kind":"dualpi2","limit":"90pkt","target":"20ms","update":"30ms","alpha":0.25,"beta":2.5,"coupling":1.5,"step":"800us","protection":"5%","drop_on_overload":false}}"#,
        r#"{"rate":"9Mbit/s","queue":{"kind":"prio","limit":"90pkt"}}"#,
        r#"{"rate":"9Mbit/s","queue":{"kind":"cake","limit":"90pkt","rate":"8Mbit/s","rtt":"50ms","isolation":"dual-srchost","overhead":"44B","mpu":"64B","framing":"atm"}}"#,
    ] {
        let config = read(json);
        assert_eq!(config.validate(), []);
        assert_eq!(serde_json::to_string(&config).unwrap(), json);
    }
}

#[test]
fn short_and_long_forms_are_equivalent() {
    let same = [
        (
            r#"{"loss": "2%"}"#,
            r#"{"loss": {"kind": "bernoulli", "probability": "2%"}}"#,
        ),
        (
            r#"{"loss": {"kind": "every", "every": 5}}"#,
            r#"{"loss": {"every": 5}}"#,
        ),
        (
            r#"{"loss": {"every": 5}}"#,
            r#"{"loss": {"model": "every", "every": 5}}"#,
        ),
        (
            r#"{"loss": {"packets": [5]}}"#,
            r#"{"loss": {"model": "packets", "packets": [5]}}"#,
        ),
        (
            r#"{"delay": "9ms", "jitter": "5ms"}"#,
            r#"{"delay": "9ms", "jitter": {"spread": "5ms"}}"#,
        ),
        (
            r#"{"queue": "9pkt"}"#,
            r#"{"queue": {"kind": "drop-tail", "limit": "9pkt"}}"#,
        ),
        (r#"{"queue": {"kind": "drop-tail"}}"#, r#"{"queue": "1000pkt"}"#),
        (r#"{"queue": "drop-tail"}"#, r#"{"queue": "1000pkt"}"#),
        (r#"{"queue": "fq-codel"}"#, r#"{"queue": {"kind": "fq-codel"}}"#),
        (
            r#"{"queue": {"kind": "codel"}}"#,
            r#"{"queue": {"kind": "codel", "limit": "1000pkt", "target": "5ms", "interval": "100ms", "ecn": false}}"#,
        ),
        (
            r#"{"queue": {"kind": "fq-codel"}}"#,
            r#"{"queue": {"kind": "fq-codel", "limit": "10240pkt", "flows": 1024, "quantum": "1514B", "interval": "100ms"}}"#,
        ),
        (
            r#"{"queue": {"kind": "pie"}}"#,
            r#"{"queue": {"kind": "pie", "target": "15ms", "update": "15ms", "max_burst": "150ms", "alpha": 0.125, "beta": 1.25}}"#,
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": "pi2"}"#,
            r#"{"rate": "9Mbit/s", "queue": {"kind": "pi2", "limit": "1000pkt", "target": "20ms", "update": "32ms", "alpha": 0.3125, "beta": 3.125, "coupling": 2}}"#,
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": "dualpi2"}"#,
            r#"{"rate": "9Mbit/s", "queue": {"kind": "dualpi2", "limit": "10000pkt", "target": "15ms", "update": "16ms", "alpha": 0.16015625, "beta": 3.19921875, "coupling": 2, "step": "1ms", "protection": "10%", "drop_on_overload": true}}"#,
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": "cake"}"#,
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "limit": "4MiB", "rtt": "100ms", "isolation": "triple-isolate", "framing": "none"}}"#,
        ),
        (
            r#"{"queue": {"kind": "red"}}"#,
            r#"{"queue": {"kind": "red", "max_probability": "10%", "weight": 0.002, "gentle": true, "adaptive": false}}"#,
        ),
    ];
    for (short, long) in same {
        assert_eq!(common::path(short), common::path(long));
    }
}

#[test]
fn errors_list_the_allowed_forms() {
    for (json, words) in [
        (r#"{"loss": 0.02}"#, &["0.02", "\"2%\"", "every = 50"][..]),
        (r#"{"loss": "0.02"}"#, &["0.02", "percent"]),
        (r#"{"loss": "gilbert-elliott"}"#, &["kind = \"gilbert-elliott\""]),
        (r#"{"loss": "120%"}"#, &["120%", "0% to 100%"]),
        (r#"{"loss": {}}"#, &["bernoulli, gilbert-elliott, every, packets"]),
        (
            r#"{"loss": {"model": "gilbert-eliott"}}"#,
            &["did you mean \"gilbert-elliott\""],
        ),
        (
            r#"{"loss": {"model": "gilbert-elliott", "enter_bad": "1%"}}"#,
            &["leave_bad: the key is missing"],
        ),
        (
            r#"{"loss": {"every": 5, "loss_bad": "1%"}}"#,
            &["loss_bad: unknown key", "allowed: every"],
        ),
        (r#"{"loss": {"evry": 5}}"#, &["kind: the key is missing", "every"]),
        (r#"{"loss": {"every": -5}}"#, &["every: ", "-5"]),
        (r#"{"loss": {"packets": [1, 2.5]}}"#, &["packets[1]: ", "2.5"]),
        (r#"{"loss": [3]}"#, &["\"2%\"", "packets = [3, 7]"]),
        (r#"{"jitter": 5}"#, &["`5`", "\"5ms\""]),
        (r#"{"jitter": "5"}"#, &["no unit", "ms"]),
        (
            r#"{"jitter": {"spread": "1ms", "distribution": "pareto"}}"#,
            &["distribution: \"pareto\" is not known: allowed: uniform, normal"],
        ),
        (
            r#"{"reorder": "1%"}"#,
            &["{ probability = \"1%\", delay = \"5ms\" }"],
        ),
        (
            r#"{"queue": 100}"#,
            &[
                "`100`",
                "\"100pkt\"",
                "drop-tail, drop-head, red, codel, fq-codel, pie, pi2, dualpi2, step, prio, cake",
            ],
        ),
        (
            r#"{"queue": "codle"}"#,
            &["did you mean \"codel\"", "fq-codel, pie", "100pkt"],
        ),
        (r#"{"queue": {"kind": "pie", "target": 15}}"#, &["15", "ms"]),
        (
            r#"{"queue": {"kind": "red", "min_threshold": "5"}}"#,
            &["\"5pkt\""],
        ),
        (
            r#"{"queue": {"kind": "codle"}}"#,
            &["did you mean \"codel\"", "drop-tail, drop-head"],
        ),
        (
            r#"{"queue": {"kind": "drop-head", "limt": "9pkt"}}"#,
            &["limt: unknown key: did you mean \"limit\""],
        ),
        (r#"{"dealy": "5ms"}"#, &["dealy", "`delay`"]),
        (r#"{"preset": "6g"}"#, &["6g", "`lte`", "`geo-satellite`"]),
        (r#"{"reverse": {"reverse": {}}}"#, &["`reverse`"]),
        (
            r#"{"reverse": "1Mbit/s"}"#,
            &["{ rate = \"1Mbit/s\", delay = \"5ms\" }"],
        ),
    ] {
        let message = refusal(json);
        for word in words {
            assert!(message.contains(word), "{json}: {word} is missing in {message}");
        }
        assert!(
            !message.contains("untagged") && !message.contains('\n'),
            "{message}"
        );
    }
}

/// Includes tables with a kind, which can also be strings or lists.
#[test]
fn errors_name_the_key_of_a_wrong_value() {
    fn key<T: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
        let value = serde_json::from_str(json).unwrap();
        foundation::reading::read_value::<T>(value).unwrap_err().key
    }
    for (json, expected) in [
        (r#"{"loss": {"every": -1}}"#, "loss.every"),
        (
            r#"{"reverse": {"loss": {"model": "gilbert-elliott", "enter_bad": 1}}}"#,
            "reverse.loss.enter_bad",
        ),
        (r#"{"jitter": {"spread": 1}}"#, "jitter.spread"),
        (r#"{"loss": {"kind": 1}}"#, "loss.kind"),
        (r#"{"queue": {"kind": "codel", "target": "5"}}"#, "queue.target"),
    ] {
        assert_eq!(key::<PathConfig>(json), expected);
    }
    for (json, expected) in [
        (
            r#"{"kind": "dumbbell", "access": [{}, {"delay": 5}]}"#,
            "access[1].delay",
        ),
        (
            r#"{"kind": "dumbbell", "bottleneck": {"loss": {"every": -1}}}"#,
            "bottleneck.loss.every",
        ),
        (r#"{"kind": "free", "links": [{"from": 1}]}"#, "links[0].from"),
    ] {
        assert_eq!(key::<TopologyConfig>(json), expected);
    }
}

#[test]
fn out_of_range_values_are_problems_of_their_key() {
    for (json, key, words) in [
        (r#"{"delay": "61min"}"#, "delay", "\"3600s\""),
        (
            r#"{"delay": "1ms", "jitter": "2ms"}"#,
            "jitter",
            "at most delay = ",
        ),
        (
            r#"{"rate": "1Mbit/s", "trace": "a"}"#,
            "trace",
            "exclude each other",
        ),
        (r#"{"queue": "0pkt"}"#, "queue", "1pkt"),
        (
            r#"{"queue": {"kind": "drop-head", "limit": "0B"}}"#,
            "queue.limit",
            "1pkt",
        ),
        (
            r#"{"queue": {"kind": "drop-tail", "limit": "0B"}}"#,
            "queue",
            "1pkt",
        ),
        (
            r#"{"queue": {"kind": "step", "threshold": "101pkt", "limit": "100pkt"}}"#,
            "queue.threshold",
            "below limit = \"100pkt\"",
        ),
        (
            r#"{"queue": {"kind": "step", "threshold": "0B"}}"#,
            "queue.threshold",
            "at least",
        ),
        (
            r#"{"queue": {"kind": "codel", "target": "0s"}}"#,
            "queue.target",
            "above 0",
        ),
        (
            r#"{"queue": {"kind": "codel", "target": "200ms"}}"#,
            "queue.target",
            "at most interval = \"100ms\"",
        ),
        (
            r#"{"queue": {"kind": "fq-codel", "flows": 0}}"#,
            "queue.flows",
            "1 to 65536",
        ),
        (
            r#"{"queue": {"kind": "fq-codel", "ce_ect1_only": true}}"#,
            "queue.ce_ect1_only",
            "requires ce_threshold",
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "rtt": "19us"}}"#,
            "queue.rtt",
            "at least \"20us\"",
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "rate": "9Mbit/s", "overhead": "257B"}}"#,
            "queue.overhead",
            "at most \"256B\"",
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "framing": "ptm"}}"#,
            "queue.framing",
            "requires rate",
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "mpu": "64B"}}"#,
            "queue.mpu",
            "requires rate",
        ),
        (
            r#"{"rate": "9Mbit/s", "queue": {"kind": "cake", "rate": "10Mbit/s"}}"#,
            "queue.rate",
            "at most \"9Mbit/s\", the rate of the link",
        ),
        (
            r#"{"queue": {"kind": "prio", "limit": "0pkt"}}"#,
            "queue.limit",
            "1pkt",
        ),
        (
            r#"{"queue": {"kind": "fq-codel", "quantum": "0B"}}"#,
            "queue.quantum",
            "\"1B\"",
        ),
        (
            r#"{"queue": {"kind": "fq-codel", "limit": "0pkt"}}"#,
            "queue.limit",
            "1pkt",
        ),
        (
            r#"{"queue": {"kind": "pie", "update": "0s"}}"#,
            "queue.update",
            "above 0",
        ),
        (
            r#"{"queue": {"kind": "pie", "alpha": 0}}"#,
            "queue.alpha",
            "above 0",
        ),
        (
            r#"{"queue": {"kind": "red", "weight": 1.5}}"#,
            "queue.weight",
            "at most 1",
        ),
        (
            r#"{"queue": {"kind": "red", "max_probability": "0%"}}"#,
            "queue.max_probability",
            "above 0%",
        ),
        (
            r#"{"queue": {"kind": "red", "min_threshold": "9pkt", "max_threshold": "9pkt"}}"#,
            "queue.max_threshold",
            "above min_threshold = \"9pkt\"",
        ),
        (
            r#"{"queue": {"kind": "red", "min_threshold": "9pkt", "max_threshold": "9kB"}}"#,
            "queue.max_threshold",
            "write both in packets",
        ),
        (
            r#"{"queue": {"kind": "red", "min_threshold": "0pkt"}}"#,
            "queue.min_threshold",
            "1pkt",
        ),
        (r#"{"mtu": "67B"}"#, "mtu", "\"68B\" to \"64KiB\""),
        (r#"{"mtu": "65537B"}"#, "mtu", "\"68B\" to \"64KiB\""),
        (
            r#"{"reorder": {"probability": "1%", "delay": "0s"}}"#,
            "reorder.delay",
            "above 0",
        ),
        (
            r#"{"loss": {"model": "gilbert-elliott", "enter_bad": "1%", "leave_bad": "0%"}}"#,
            "loss.leave_bad",
            "above 0%",
        ),
        (r#"{"reverse": {"mtu": "1B"}}"#, "reverse.mtu", "68B"),
        (
            r#"{"delay": "9ms", "jitter": "9ms", "reverse": {"delay": "8ms"}}"#,
            "reverse.jitter",
            "\"8ms\"",
        ),
        // Compared with the preset's delay of 2 ms.
        (r#"{"preset": "wifi", "jitter": "3ms"}"#, "jitter", "\"2ms\""),
    ] {
        let found = problems(json);
        assert_eq!(found.len(), 1, "{json}: {found:?}");
        assert!(found[0].starts_with(&format!("{key}: ")), "{json}: {found:?}");
        assert!(found[0].contains(words), "{json}: {found:?}");
    }
    assert_eq!(
        problems(r#"{"mtu": "1B", "queue": "0B", "reverse": {"delay": "2000s", "jitter": "2001s"}}"#).len(),
        3
    );
    let zero = LossConfig::Every(Every { every: 0 });
    assert_eq!(zero.validate().len(), 1);
    assert_eq!(
        LossConfig::Packets(Packets { packets: vec![4, 0] })
            .validate()
            .len(),
        1
    );
}

#[test]
fn resolve_rejects_out_of_range_values() {
    let refused = read(r#"{"mtu": "1B"}"#).resolve(&mut |_| unreachable!());
    assert_eq!(refused.unwrap_err().len(), 1);
}

#[test]
fn reverse_keys_override_a_symmetric_path() {
    let path =
        common::path(r#"{"rate": "10Mbit/s", "delay": "5ms", "loss": "1%", "reverse": {"loss": "3%"}}"#);
    assert_eq!(path.forward.capacity, path.reverse.capacity);
    assert_eq!(path.forward.loss.as_ref().unwrap().mean(), 0.01);
    assert_eq!(path.reverse.loss.as_ref().unwrap().mean(), 0.03);
    assert_eq!(path.reverse.delay.to_string(), "5ms");
}

#[test]
fn own_keys_override_the_preset() {
    let lte = common::path(r#"{"preset": "lte"}"#);
    let rate = |capacity: &Capacity| match capacity {
        Capacity::Rate(rate) => rate.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(rate(&lte.forward.capacity), "13Mbit/s");
    assert_eq!(rate(&lte.reverse.capacity), "6Mbit/s");
    assert_eq!(lte.reverse.delay.to_string(), "35ms");
    // A key of the path overrides an asymmetric preset in both directions.
    let path = common::path(r#"{"preset": "lte", "rate": "20Mbit/s", "reverse": {"delay": "50ms"}}"#);
    assert_eq!(rate(&path.forward.capacity), "20Mbit/s");
    assert_eq!(rate(&path.reverse.capacity), "20Mbit/s");
    assert_eq!(path.reverse.delay.to_string(), "50ms");
    assert_eq!(path.forward.delay.to_string(), "35ms");
    // A trace replaces a rate, and a rate replaces a trace.
    let config = read(r#"{"preset": "lte", "trace": "a", "reverse": {"rate": "1Mbit/s"}}"#);
    let path = config.resolve(&mut |_| Ok("5".into())).unwrap();
    assert!(matches!(path.forward.capacity, Capacity::Trace(_)));
    assert_eq!(rate(&path.reverse.capacity), "1Mbit/s");
}

/// 10 packets of 1500 bytes at 1 Gbit/s take 120 us: no packet waits longer.
#[test]
fn ce_thresholds_are_within_the_queue() {
    for kind in ["codel", "fq-codel"] {
        let of = |link: &str, threshold: &str| {
            let keys = format!(r#""kind": "{kind}", "limit": "10pkt", "ce_threshold": "{threshold}""#);
            problems(&format!(r#"{{{link}"queue": {{{keys}}}}}"#))
        };
        let link = r#""rate": "1Gbit/s", "#;
        assert_eq!(of(link, "120us"), [""; 0]);
        assert_eq!(
            of(link, "121us"),
            [
                "queue.ce_threshold: \"121us\" is out of range: at most \"120us\", the delay of a full queue (10pkt of 1500B at 1Gbit/s)"
            ]
        );
        assert_eq!(
            of("", "120us"),
            ["queue.ce_threshold: requires a link with a rate: set rate, trace, cell or wifi"]
        );
    }
}

/// The delay of a full queue is at most its limit at the link's rate.
#[test]
fn coupled_queues_require_a_rate_and_thresholds_within_the_queue() {
    for kind in ["pi2", "dualpi2", "cake"] {
        assert_eq!(
            problems(&format!(r#"{{"queue": {kind:?}}}"#)),
            [format!(
                "queue: {kind:?} requires a link with a rate: set rate, trace, cell or wifi"
            )]
        );
        let second = format!(r#"{{"hops": [{{"rate": "1Mbit/s"}}, {{"queue": {kind:?}}}]}}"#);
        assert_eq!(
            problems(&second),
            [format!(
                "hops.2.queue: {kind:?} requires a link with a rate: set rate, trace, cell or wifi"
            )]
        );
        assert_eq!(
            problems(&format!(r#"{{"trace": "a", "queue": {kind:?}}}"#)),
            [""; 0]
        );
    }
    // 10 packets of 1500 bytes at 1 Gbit/s take 120 us.
    let step = |keys: &str| {
        problems(&format!(
            r#"{{"rate": "1Gbit/s", "queue": {{"kind": "dualpi2", {keys}}}}}"#
        ))
    };
    assert_eq!(
        step(r#""limit": "10pkt""#),
        [
            "queue.step: \"1ms\" is out of range: at most \"120us\", the delay of a full queue (10pkt of 1500B at 1Gbit/s)"
        ]
    );
    assert_eq!(step(r#""limit": "10pkt", "step": "120us""#), [""; 0]);
    assert_eq!(
        step(r#""limit": "15kB", "step": "121us""#),
        [
            "queue.step: \"121us\" is out of range: at most \"120us\", the delay of a full queue (15kB at 1Gbit/s)"
        ]
    );
    let keys = r#""target": "0s", "coupling": 0.5, "alpha": 101, "limit": "0pkt""#;
    let keys: Vec<String> = step(keys)
        .iter()
        .map(|problem| problem[..12].to_owned())
        .collect();
    assert_eq!(
        keys,
        ["queue.limit:", "queue.target", "queue.alpha:", "queue.coupli"]
    );
}

#[test]
fn a_queue_without_a_limit_inherits_the_preset_limit() {
    let limits = |json: &str| {
        let path = common::path(json);
        (
            path.forward.queue.limit().to_string(),
            path.reverse.queue.limit().to_string(),
        )
    };
    let own = |forward: &str, reverse: &str| (forward.to_owned(), reverse.to_owned());
    for queue in [
        r#""drop-tail""#,
        r#""codel""#,
        r#"{"kind": "drop-head"}"#,
        r#"{"kind": "fq-codel", "flows": 8}"#,
        r#"{"kind": "red", "ecn": true}"#,
        r#""pie""#,
        r#""pi2""#,
        r#""dualpi2""#,
    ] {
        let json = format!(r#"{{"preset": "dsl", "queue": {queue}}}"#);
        assert_eq!(limits(&json), own("100pkt", "64KiB"), "{json}");
    }
    assert_eq!(
        limits(r#"{"preset": "dsl", "queue": "9pkt"}"#),
        own("9pkt", "9pkt")
    );
    assert_eq!(
        limits(r#"{"preset": "dsl", "queue": {"kind": "codel", "limit": "9pkt"}}"#),
        own("9pkt", "9pkt")
    );
    assert_eq!(
        limits(r#"{"queue": "50pkt", "reverse": {"queue": "codel"}}"#),
        own("50pkt", "50pkt")
    );
    // The discipline's default limit applies if no other limit is set.
    assert_eq!(limits(r#"{"queue": "fq-codel"}"#), own("10240pkt", "10240pkt"));
    let written = serde_json::to_string(&read(r#"{"queue": "drop-tail"}"#)).unwrap();
    assert_eq!(written, r#"{"queue":"drop-tail"}"#);
}

#[test]
fn a_near_subscriber_uploads_forward() {
    for preset in Preset::ALL {
        let name = preset.name();
        let far = common::path(&format!(r#"{{"preset": {name:?}, "subscriber": "far"}}"#));
        let near = common::path(&format!(r#"{{"preset": {name:?}, "subscriber": "near"}}"#));
        assert_eq!(far, common::path(&format!(r#"{{"preset": {name:?}}}"#)));
        assert_eq!((&near.forward, &near.reverse), (&far.reverse, &far.forward));
    }
    // Keys outside the preset keep their directions.
    let path =
        common::path(r#"{"preset": "dsl", "subscriber": "near", "delay": "1ms", "reverse": {"loss": "1%"}}"#);
    assert!(matches!(path.forward.capacity, Capacity::Rate(rate) if rate.to_string() == "1Mbit/s"));
    assert_eq!(
        (path.forward.loss, path.reverse.loss.unwrap().mean()),
        (None, 0.01)
    );
    let lone = problems(r#"{"subscriber": "near", "rate": "1Mbit/s"}"#);
    assert_eq!(lone.len(), 1);
    assert!(lone[0].starts_with("subscriber: requires preset"), "{lone:?}");
    assert!(problems(r#"{"hops": [{"preset": "dsl", "subscriber": "near"}]}"#).is_empty());
}

#[test]
fn every_preset_is_valid_and_round_trips_by_name() {
    for preset in Preset::ALL {
        let name = preset.name();
        assert_eq!(serde_json::to_string(&preset).unwrap(), format!("{name:?}"));
        let path = common::path(&format!("{{\"preset\": {name:?}}}"));
        assert_eq!(preset.path().resolve(&mut |_| unreachable!()).unwrap(), path);
        assert_ne!(path.forward.capacity, Capacity::Unlimited);
        assert!(!path.forward.delay.is_zero());
    }
}

#[test]
fn an_empty_path_is_an_ideal_link() {
    let path = common::path("{}");
    assert_eq!(path.forward, network::LinkSpec::default());
    assert_eq!(
        path.forward.queue,
        QueueConfig::drop_tail("1000pkt".parse().unwrap())
    );
}

/// The schema and serde have the same keys, each with a description and without null.
#[test]
fn the_schema_names_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(PathConfig)).unwrap();
    let keys = |table: &serde_json::Value| {
        let properties = table["properties"].as_object().unwrap();
        for (key, property) in properties {
            assert!(property["description"].is_string(), "{key} has no help");
        }
        let mut keys: Vec<String> = properties.keys().cloned().collect();
        keys.sort();
        keys
    };
    // Serde's message about an unknown key lists the known ones.
    let known = |message: String| {
        let mut keys: Vec<String> = message.split('`').skip(3).step_by(2).map(str::to_owned).collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&schema), known(refusal(r#"{"?": 1}"#)));
    assert_eq!(
        keys(&schema["$defs"]["Link"]),
        known(refusal(r#"{"reverse": {"?": 1}}"#))
    );
    assert_eq!(
        keys(&schema["$defs"]["Reorder"]),
        known(refusal(r#"{"reorder": {"?": 1}}"#))
    );
}

#[test]
fn hops_are_links_in_series() {
    let config = read(
        r#"{"hops": [{"rate": "10Mbit/s", "delay": "2ms", "reverse": {"delay": "3ms"}}, {"preset": "lan", "mtu": "576B"}]}"#,
    );
    assert_eq!(config.validate(), []);
    let links = config.links(&mut |_| Err("no files".into())).unwrap();
    let millis = |link: &network::LinkSpec| link.delay.as_nanos() as f64 / 1e6;
    assert_eq!(links.len(), 2);
    assert_eq!((millis(&links[0].forward), millis(&links[0].reverse)), (2.0, 3.0));
    assert_eq!(
        (links[1].forward.mtu, millis(&links[1].reverse)),
        (Some(576), 0.1)
    );
    let chain = network::Topology::chain(&links);
    assert_eq!(chain.nodes().collect::<Vec<_>>(), ["sender", "r1", "receiver"]);
    let one = read(r#"{"hops": [{"delay": "1ms"}]}"#)
        .links(&mut |_| Ok("1".into()))
        .unwrap();
    assert_eq!(
        one,
        vec![
            read(r#"{"delay": "1ms"}"#)
                .resolve(&mut |_| Ok("1".into()))
                .unwrap()
        ]
    );
}

#[test]
fn hops_exclude_other_keys() {
    let reported = |json: &str| {
        let problems = read(json).validate();
        problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ")
    };
    let two = reported(r#"{"delay": "1ms", "reverse": {"loss": "1%"}, "hops": [{}, {}]}"#);
    assert_eq!(
        two,
        "delay: cannot be set next to hops: set it for each link, e.g. path.hops.1.delay (links 1 to 2); \
         reverse.loss: cannot be set next to hops: set it for each link, e.g. path.hops.1.reverse.loss (links 1 to 2)"
    );
    assert!(reported(r#"{"hops": []}"#).contains("0 links are out of range: 1 to 64"));
    assert!(reported(r#"{"hops": [{}, {"delay": "61min"}]}"#).starts_with("hops.2.delay: "));
    assert!(refusal(r#"{"hops": [{"hops": []}]}"#).contains("unknown field"));
    let inside = serde_json::from_str::<TopologyConfig>(
        r#"{"kind": "dumbbell", "pairs": 1, "bottleneck": {"hops": [{}, {}]}}"#,
    );
    let problems = inside.unwrap().validate();
    assert!(
        problems[0]
            .to_string()
            .starts_with("bottleneck.hops: only one link is possible here")
    );
}
