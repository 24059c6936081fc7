//! Sends datagrams at a rate from one host to another and measures their delays.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use network::HostId;
use socket::datagrams::{Datagrams, Inbox, Peer};

use crate::emulation::Emulation;

/// Bytes of the IP and UDP headers.
pub(super) const HEADERS: u64 = 28;
/// Bytes of the smallest packet: its payload is the time of sending.
pub(super) const LEAST: u64 = HEADERS + 8;
/// Datagrams per system call at high rates.
const TRAIN: usize = 16;
/// How long to wait for packets after the last one was sent.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Interval between calls of `stopped`.
const STOP_INTERVAL: Duration = Duration::from_millis(20);

/// A load.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketLoad {
    /// Packet size in bytes with headers.
    pub bytes: u64,
    /// Packets a second.
    pub per_second: f64,
    /// Packets sent first, at full speed.
    pub burst: u64,
    /// Duration.
    pub span: Duration,
    /// Delay of the unloaded path.
    pub way: Duration,
}

/// The packets that arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// Packets sent.
    pub sent: u64,
    /// Packets received.
    pub received: u64,
    /// Delays in seconds, sorted: one of each group of packets received together.
    pub delays: Vec<f64>,
    /// Time from the first to the last received packet, in seconds.
    pub span: f64,
}

fn wall() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// Sends a load from one host to another.
pub(super) fn send(
    emulation: &Emulation,
    from: HostId,
    to: HostId,
    stream: PacketLoad,
    stopped: &mut dyn FnMut() -> bool,
) -> io::Result<Arrivals> {
    // Any free port: a process that was started meanwhile may still hold the socket of the load before.
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let receiver = emulation.in_host(to, || Datagrams::bind(any))?;
    let sender = emulation.in_host(from, || Datagrams::bind(any))?;
    let port = receiver.local_address()?.port();
    let peer = Peer::new(SocketAddr::from((emulation.host_address(to), port)));
    let (done, given_up) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver, &done, stream.way + TIMEOUT));
        let sending = scope.spawn(|| feed(&sender, peer, stream, &given_up));
        while !sending.is_finished() {
            std::thread::sleep(STOP_INTERVAL);
            if stopped() {
                given_up.store(true, Ordering::Relaxed);
            }
        }
        let sent = sending.join();
        done.store(true, Ordering::Relaxed);
        let mut arrivals = receiving
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        arrivals.sent = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        arrivals.delays.sort_by(f64::total_cmp);
        Ok(arrivals)
    })
}

fn feed(sender: &Datagrams, peer: Peer, stream: PacketLoad, given_up: &AtomicBool) -> io::Result<u64> {
    socket::wait::raise_priority();
    socket::wait::sharpen_timers();
    let size = (stream.bytes.max(LEAST) - HEADERS) as usize;
    let gap = 1.0 / stream.per_second;
    // Packets far apart are sent one by one.
    let train = if gap < 1e-4 { TRAIN } else { 1 };
    let mut payload = vec![0; size * train];
    let offer = |payload: &mut [u8]| {
        payload[..8].copy_from_slice(&wall().to_be_bytes());
        match sender.send(peer, payload, size) {
            // The host's device is full; the path does not lose these packets.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            result => result.map(|()| true),
        }
    };
    let (start, mut sent) = (Instant::now(), 0);
    while sent < stream.burst && start.elapsed() < stream.span {
        sent += u64::from(offer(&mut payload[..size])?);
    }
    let (start, mut offered) = (Instant::now(), 0_u64);
    while start.elapsed() < stream.span {
        if given_up.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        while (offered as f64) < start.elapsed().as_secs_f64() * stream.per_second
            && start.elapsed() < stream.span
        {
            if offer(&mut payload)? {
                sent += train as u64;
            }
            offered += train as u64;
        }
        let next = offered as f64 * gap - start.elapsed().as_secs_f64();
        if next > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(next.min(0.1)));
        }
    }
    Ok(sent)
}

fn receive(receiver: &Datagrams, done: &AtomicBool, patience: Duration) -> Arrivals {
    socket::wait::raise_priority();
    let (mut arrivals, mut inbox) = (Arrivals::default(), Inbox::new(32));
    let (mut last, mut begun) = (Instant::now(), None);
    while !done.load(Ordering::Relaxed) || last.elapsed() < patience {
        if !done.load(Ordering::Relaxed) {
            last = Instant::now();
        }
        socket::wait::wait(receiver.socket(), false, foundation::Duration::from_millis(20));
        while receiver.receive(&mut inbox).is_ok_and(|slots| slots > 0) {
            for train in inbox.trains() {
                let mut is_first = true;
                if let Some(stamp) = train.stamp.map(|stamp| stamp.as_secs_f64()) {
                    let begun = *begun.get_or_insert(stamp);
                    arrivals.span = stamp - begun;
                }
                for datagram in train.datagrams() {
                    arrivals.received += 1;
                    let stamp = train.stamp.filter(|_| std::mem::take(&mut is_first));
                    if let (Some(stamp), Some(&[a, b, c, d, e, f, g, h])) =
                        (stamp, datagram.first_chunk::<8>())
                    {
                        let sent = f64::from_be_bytes([a, b, c, d, e, f, g, h]);
                        if sent > 0.0 {
                            arrivals.delays.push(stamp.as_secs_f64() - sent);
                        }
                    }
                }
            }
        }
    }
    arrivals
}
