//! Sends bytes from memory to memory over loopback with a QUIC library, and prints the rate and the CPU time of each end.
//!
//! `quic-peers s2n-quic|quinn [MIB] [mtu=BYTES] [window=BYTES] [gso=on|off]`: the receiver runs in a separate process.
//! Settings that are not given are the library's defaults.

mod quinn_peer;
mod s2n_peer;
mod settings;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use settings::Settings;

/// Bytes that the sender passes to the library at a time.
const CHUNK: usize = 1 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A self-signed certificate and its key, in DER and PEM.
struct Identity {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

fn cpu() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [peer, "receive", folder, rest @ ..] => {
            let settings = Settings::read(rest)?;
            let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
            let identity = Identity {
                certificate: certified.cert,
                key: certified.signing_key,
            };
            std::fs::write(format!("{folder}/certificate.pem"), identity.certificate.pem())?;
            match *peer {
                "s2n-quic" => s2n_peer::receive(&identity, settings).await?,
                "quinn" => quinn_peer::receive(&identity, settings).await?,
                other => return Err(format!("{other}: s2n-quic or quinn").into()),
            }
            println!("{}", cpu());
            Ok(())
        }
        [peer, rest @ ..] => {
            let (mib, words) = match rest.split_first() {
                Some((first, words)) if !first.contains('=') => (first.parse()?, words),
                _ => (1024, rest),
            };
            measure(peer, mib, words).await
        }
        [] => Err("quic-peers s2n-quic|quinn [MIB] [mtu=BYTES] [window=BYTES] [gso=on|off]".into()),
    }
}

async fn measure(peer: &str, mib: usize, words: &[&str]) -> Result<(), Failure> {
    let settings = Settings::read(words)?;
    let folder = std::env::temp_dir().join(format!("quic-peers-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([peer, "receive"])
        .arg(&folder)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    let to = lines.next().ok_or("no address")??.parse()?;
    let certificate = std::fs::read_to_string(folder.join("certificate.pem"))?;
    std::fs::remove_dir_all(&folder)?;
    let (before, started) = (cpu(), Instant::now());
    match peer {
        "s2n-quic" => s2n_peer::send(to, &certificate, mib, settings).await?,
        _ => quinn_peer::send(to, &certificate, mib, settings).await?,
    }
    let seconds = started.elapsed().as_secs_f64();
    let sender = cpu() - before;
    let receiver: f64 = lines.next().ok_or("no time")??.parse()?;
    child.wait()?;
    let gib = mib as f64 / 1024.0;
    println!(
        "{:.2} Gbit/s; CPU s/GiB: send {:.2}, receive {:.2}",
        gib * 1.073_741_824 * 8.0 / seconds,
        sender / gib,
        receiver / gib,
    );
    Ok(())
}
