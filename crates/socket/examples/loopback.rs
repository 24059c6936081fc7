//! Sends a file over loopback and prints the rate, and the CPU time of each end.
//!
//! `loopback [MIB] [DIR] [insecure]`: DIR holds the file and the copy; default 1024 MiB, the system's temporary
//! directory. The transfer is encrypted unless `insecure` is given.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use security::{Code, Credentials};
use socket::Protection;
use socket::transfer::{ReceiveEvent, ReceiveOptions, SendOptions, receive, send_files};

fn cpu() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn protection(word: Option<&str>) -> Protection {
    match word {
        None => Protection::Secure(Credentials::Code(Code::new([7; 12]))),
        Some("insecure") => Protection::None,
        Some(other) => panic!("{other}: only `insecure` is known"),
    }
}

fn receiver(directory: PathBuf, protection: Protection) {
    let mut options = ReceiveOptions::new(([127, 0, 0, 1], 0).into(), directory, protection);
    options.once = true;
    receive(&options, &mut |event| {
        if let ReceiveEvent::Listening(address) = event {
            println!("{address}");
        }
        ControlFlow::Continue(())
    })
    .expect("receives");
    println!("{}", cpu());
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("receive") {
        let directory = arguments.next().expect("a directory");
        return receiver(directory.into(), protection(arguments.next().as_deref()));
    }
    let mib: usize = first.map_or(1024, |text| text.parse().expect("a number of MiB"));
    let base = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let word = arguments.next();
    let place = base.join(format!("longfat-loopback-{}", std::process::id()));
    std::fs::create_dir_all(place.join("to")).expect("a directory");
    let file = place.join("file");
    let mut contents = std::fs::File::create(&file).expect("a file");
    for _ in 0..mib {
        contents.write_all(&[0x5a; 1 << 20]).expect("room");
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["receive".into(), place.join("to")])
        .args(word.as_deref())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a receiver");
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("its output")));
    let to = lines
        .next()
        .expect("a line")
        .expect("an address")
        .parse()
        .expect("an address");
    let before = cpu();
    let options = SendOptions::new(vec![file], to, protection(word.as_deref()));
    let report = send_files(&options, &mut |_| ControlFlow::Continue(()));
    let sender = cpu() - before;
    let receiver: f64 = lines
        .next()
        .expect("a line")
        .expect("a time")
        .parse()
        .expect("a time");
    child.wait().expect("an end");
    std::fs::remove_dir_all(&place).expect("removed");
    let report = report.expect("sent");
    for (_, reason) in report.failures() {
        println!("failed: {reason}");
    }
    let s = &report.statistics;
    let network =
        (s.last_acknowledged_at.unwrap_or_default() - s.first_data_at.unwrap_or_default()).as_secs_f64();
    let gib = mib as f64 / 1024.0;
    println!(
        "{:.2} Gbit/s ({:.2} until written to disk); CPU s/GiB: send {:.2}, receive {:.2}; {} packets, {} retransmissions, {} timeouts, RTT {}",
        report.bytes as f64 * 8e-9 / network,
        report.goodput / 1e9,
        sender / gib,
        receiver / gib,
        s.packets_sent,
        s.retransmissions,
        s.timeouts,
        report.rtt,
    );
}
