//! Keys without effect are refused, including those whose effect depends on other sections.

use experiment::TrialSpec;
use experiment::plan::Plan;
use serde_json::{Value, json};

fn spec(protocol: Value, workload: Value, traffic: Value) -> Result<TrialSpec, String> {
    let spec = json!({"path": {}, "protocol": protocol, "workload": workload, "traffic": traffic, "seed": 1});
    TrialSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())
}

#[test]
fn processes_read_only_kind_and_size() {
    let protocol = json!({"kind": "go-back-n"});
    let transfer = |more: Value| {
        let mut workload = json!({"kind": "file", "size": "1MB"});
        let keys = more.as_object().unwrap().clone();
        workload.as_object_mut().unwrap().extend(keys);
        let spec = spec(protocol.clone(), workload, json!([])).unwrap();
        spec.transfer().map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(transfer(json!({})), Ok(()));
    for more in [
        json!({"classes": ["100kB"]}),
        json!({"flows": 2}),
        json!({"each_path": true}),
        json!({"start": "1s"}),
        json!({"stagger": "1s"}),
        json!({"priority": 1}),
        json!({"start_jitter": "1s"}),
        json!({"from": "sender", "to": "receiver"}),
    ] {
        let reported = transfer(more.clone()).unwrap_err();
        let key = more.as_object().unwrap().keys().next().unwrap();
        assert!(reported.starts_with(&format!("workload.{key}: ")), "{reported}");
        assert!(
            reported.contains("remove this key") && !reported.contains('\n'),
            "{reported}"
        );
    }
}

#[test]
fn a_flow_that_has_a_path_does_not_choose_one() {
    let bulk = json!({"kind": "bulk", "duration": "1s", "each_path": true});
    let tcp = |path: Value| json!({"kind": "tcp", "path": path});
    let reported = spec(tcp(json!("random")), bulk.clone(), json!([])).unwrap_err();
    assert!(reported.starts_with("workload.each_path: "), "{reported}");
    assert!(spec(json!({"kind": "tcp"}), bulk.clone(), json!([])).is_ok());
    let traffic = json!([{"name": "x", "protocol": tcp(json!("random")), "workload": {"kind": "bulk", "each_path": true}}]);
    let reported = spec(json!({"kind": "tcp"}), bulk, traffic).unwrap_err();
    assert!(
        reported.starts_with("traffic.0.workload.each_path: "),
        "{reported}"
    );
}

/// Options of multipath TCP use up to 40 bytes of each packet; an MTU without room for payload is refused.
#[test]
fn multipath_tcp_needs_room_for_its_options() {
    let bulk = json!({"kind": "bulk", "duration": "1s"});
    let plan = |mtu: &str, protocol: &Value, traffic: Value| {
        let spec = json!({
            "path": {"mtu": mtu}, "protocol": protocol, "workload": bulk, "traffic": traffic, "seed": 1,
        });
        let spec = TrialSpec::from_json(&spec.to_string()).unwrap();
        Plan::of(&spec).map(|_| ()).map_err(|error| error.to_string())
    };
    let (mptcp, tcp) = (json!({"kind": "mptcp"}), json!({"kind": "tcp"}));
    for mtu in ["68B", "71B", "87B"] {
        assert_eq!(
            plan(mtu, &mptcp, json!([])),
            Err(format!(
                "protocol.kind: \"mptcp\" requires an MTU of at least \"88B\", but links from \"sender\" to \"receiver\" have \"{mtu}\""
            ))
        );
        assert_eq!(plan(mtu, &tcp, json!([])), Ok(()));
    }
    assert_eq!(plan("88B", &mptcp, json!([])), Ok(()));
    let traffic = json!([{"name": "rival", "protocol": {"kind": "mptcp"}, "workload": {"kind": "bulk"}}]);
    let refused = plan("70B", &tcp, traffic).unwrap_err();
    assert!(refused.starts_with("traffic.0.protocol.kind: "), "{refused}");
}
