//! Compares a congestion controller of this package with a built-in one.
//!
//!     cargo run --manifest-path examples/own-controller/Cargo.toml

mod aimd;

use experiment::TrialSpec;
use foundation::extension::install;
use serde_json::json;
use simulation::trial::run;
use transport::congestion::Registration;

fn main() -> Result<(), String> {
    let aimd =
        Registration::of::<aimd::AimdSettings>("own:aimd", "additive increase, multiplicative decrease");
    install(vec![aimd]).map_err(|problem| problem.to_string())?;

    for congestion in [
        json!("own:aimd"),
        json!({"kind": "own:aimd", "keep": 0.8}),
        json!("reno"),
    ] {
        let spec = json!({
            "path": {"rate": "20Mbit/s", "delay": "10ms", "queue": "50pkt", "loss": "0.5%"},
            "protocol": {"kind": "tcp", "congestion": congestion},
            "workload": {"kind": "file", "size": "5MB"},
            "seed": 1,
            "trial": 0,
        });
        let spec = TrialSpec::from_json(&spec.to_string()).map_err(|error| error.to_string())?;
        let record = run(&spec, None).map_err(|error| error.to_string())?;
        let metrics = record.metrics.ok_or("the transfer failed")?;
        let goodput = metrics["goodput_bps"].ok_or("there is no goodput")?;
        println!("{congestion}: {:.2} Mbit/s", goodput / 1e6);
    }
    Ok(())
}
