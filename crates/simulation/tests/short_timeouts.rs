//! Minimum RTOs below 1 ms, as in data centres.

use experiment::TrialSpec;
use serde_json::json;
use simulation::run;

/// The last packet is lost, so that only a timeout retransmits it.
#[test]
fn microseconds_are_a_minimum_rto_in_every_profile() {
    for profile in ["linux", "rfc", "ns3"] {
        for (min_rto, least, most) in [("200us", 200e-6, 900e-6), ("2ms", 2e-3, 3e-3)] {
            let protocol =
                json!({"kind": "tcp", "profile": profile, "min_rto": min_rto, "tail_loss_probe": false});
            // A SYN and three packets of data.
            let path = json!({"rate": "1Gbit/s", "delay": "10us", "loss": {"kind": "packets", "packets": [4]}, "reverse": {"loss": "0%"}});
            let workload = json!({"kind": "file", "size": "4000B"});
            let spec = json!({"path": path, "protocol": protocol, "workload": workload, "seed": 1});
            let record = run(&TrialSpec::from_json(&spec.to_string()).unwrap(), None).unwrap();
            let metrics = record.metrics.unwrap();
            assert_eq!(metrics["timeouts"], Some(1.0), "{profile}");
            let fct = metrics["fct_mean_s"].unwrap();
            assert!((least..most).contains(&fct), "{profile}, {min_rto}: {fct} s");
        }
    }
}
