//! A TCP relay without Python, for measurements: `relay LISTEN TARGET [PATH [TCP [SEED]]]`, with the keys of a path and of TCP as JSON. Each
//! connection has its own path. The relay ends with standard input and prints its report.

use std::error::Error;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use foundation::Streams;
use network::PathConfig;
use proxy::{Listener, Mode, ProxyOptions, Relay, RelayOptions, Target};
use transport::tcp::TcpConfig;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, target, options @ ..] = arguments.as_slice() else {
        return Err("write LISTEN TARGET [PATH [TCP [SEED]]]".into());
    };
    let option = |at: usize, default: &'static str| options.get(at).map_or(default, String::as_str);
    let path: PathConfig = serde_json::from_str(option(0, "{}"))?;
    let path = path
        .resolve(&mut |file| std::fs::read_to_string(file).map_err(|error| error.to_string()))
        .map_err(|problems| format!("{problems:?}"))?;
    let tcp: TcpConfig = serde_json::from_str(option(1, r#"{"kind": "tcp"}"#))?;
    let relay = Relay::bind(RelayOptions {
        listeners: vec![Listener {
            listen: listen.parse()?,
            mode: Mode::Fixed(Target::parse(target).ok_or("the target is not HOST:PORT")?),
        }],
        udp: Vec::new(),
        proxy: ProxyOptions {
            separate: true,
            ..ProxyOptions::new(path, tcp, Streams::new(option(2, "1").parse()?, 0))
        },
    })?;
    println!("{}", relay.addresses()[0]);
    let has_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&has_ended);
    std::thread::spawn(move || {
        // Any error of standard input ends the relay, too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Ordering::Relaxed);
    });
    let report = relay.run(&mut |_| match has_ended.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })?;
    println!("{report:#?}");
    Ok(())
}
