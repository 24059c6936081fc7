//! Measures the goodput of one TCP connection of the kernel.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use network::{HostId, Topology};
use serde::Serialize;

use crate::emulation::Emulation;

/// Timeout of the handshake.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a blocked end checks for the end of the measurement.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// The goodput of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goodput {
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Bytes read by the application.
    pub bytes: u64,
    /// Time from the first to the last read, in seconds.
    pub seconds: f64,
    /// Goodput in bit/s.
    pub goodput_bps: Option<f64>,
    /// The rate of the slowest link in bit/s; null without a limit.
    pub slowest_bps: Option<f64>,
}

pub(super) fn measure(
    emulation: &Emulation,
    topology: &Topology,
    from: HostId,
    to: HostId,
    span: Duration,
    stopped: &mut dyn FnMut() -> bool,
) -> io::Result<Goodput> {
    let listener = emulation.in_host(to, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    let address = SocketAddr::from((emulation.host_address(to), listener.local_addr()?.port()));
    let mut client = emulation.in_host(from, || TcpStream::connect_timeout(&address, TIMEOUT))?;
    let (mut server, _) = listener.accept()?;
    client.set_write_timeout(Some(STOP_INTERVAL))?;
    server.set_read_timeout(Some(STOP_INTERVAL))?;
    let over = AtomicBool::new(false);
    let (bytes, seconds) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let block = vec![0; 1 << 16];
            while !over.load(Ordering::Relaxed) {
                match client.write(&block) {
                    Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        return Err(error);
                    }
                    _ => {}
                }
            }
            Ok(())
        });
        let read = read_for(&mut server, span, stopped);
        over.store(true, Ordering::Relaxed);
        writing
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        read
    })?;
    let name = |host: HostId| topology.hosts()[host.0 as usize].clone();
    let way = topology.links_between(from, to).unwrap_or_default();
    let rates = way
        .iter()
        .filter_map(|link| topology.links()[link.0 as usize].spec.capacity.mean_rate());
    Ok(Goodput {
        from: name(from),
        to: name(to),
        bytes,
        seconds,
        goodput_bps: (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds),
        slowest_bps: rates
            .map(|rate| rate.bits_per_second() as f64)
            .min_by(f64::total_cmp),
    })
}

/// Returns the bytes read within `span` after the first read, and the time from the first to the last read.
fn read_for(
    server: &mut TcpStream,
    span: Duration,
    stopped: &mut dyn FnMut() -> bool,
) -> io::Result<(u64, f64)> {
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 16]);
    let begun = Instant::now();
    let (mut first, mut last) = (None, Instant::now());
    loop {
        let since = first.unwrap_or(begun);
        if since.elapsed() >= span || stopped() {
            return Ok((
                bytes,
                first.map_or(0.0, |first: Instant| (last - first).as_secs_f64()),
            ));
        }
        match server.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                last = Instant::now();
                // The bytes of the first read arrived before the measured time.
                match first {
                    None => first = Some(last),
                    Some(_) => bytes += length as u64,
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}
