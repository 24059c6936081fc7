//! A capture of all packets that hosts send and receive, written by a thread while the emulation runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use experiment::trace::capture::Capture;
use foundation::{Duration, Instant};
use network::HostId;
use socket::clock::Clock;

use crate::error::{Error, system_error};

/// Packets that wait for the writer: 60 MB of packets of 1500 bytes.
const MOST_WAITING: usize = 40_000;

/// A packet at a host.
struct CapturedPacket {
    at: Instant,
    host: HostId,
    bytes: Vec<u8>,
}

/// Where the emulator's thread passes packets. It never waits: packets are left out while the writer is behind.
pub(crate) struct CaptureTap {
    packets: SyncSender<CapturedPacket>,
    missing: Arc<AtomicU64>,
}

impl CaptureTap {
    /// Captures a packet that a host sends or receives.
    pub(crate) fn record(&self, at: Instant, host: HostId, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        if self.packets.try_send(CapturedPacket { at, host, bytes }).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes a capture.
#[derive(Debug)]
pub(crate) struct CaptureWriter {
    thread: JoinHandle<io::Result<u64>>,
    missing: Arc<AtomicU64>,
    file: String,
}

/// The contents of a finished capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CaptureReport {
    /// Packets in the file.
    pub packets: u64,
    /// Packets that are missing, because the file was written too slowly.
    pub missing: u64,
}

impl CaptureWriter {
    /// Creates the file, with one interface for each host. Timestamps are those of the wall clock.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(path: &Path, hosts: &[String], clock: Clock) -> Result<(Self, CaptureTap), Error> {
        let shown = path.display().to_string();
        let failed = |error| system_error(format!("write {shown}"), error);
        let file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(failed)?);
        let hosts = hosts.to_vec();
        let (packets, received) = sync_channel(MOST_WAITING);
        let missing = Arc::new(AtomicU64::new(0));
        let epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |span| span.as_nanos() as u64)
            .saturating_sub((clock.now() - Instant::ZERO).as_nanos());
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || write_all(file, &hosts, &received, Duration::from_nanos(epoch)))
            .map_err(failed)?;
        let tap = CaptureTap {
            packets,
            missing: Arc::clone(&missing),
        };
        let writer = Self {
            thread,
            missing,
            file: shown,
        };
        Ok((writer, tap))
    }

    /// Completes the file after its tap was dropped.
    ///
    /// # Errors
    /// The system's, for example for a full disk.
    pub(crate) fn finish(self) -> Result<CaptureReport, Error> {
        let failed = |error| system_error(format!("write {}", self.file), error);
        let packets = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(failed)?;
        Ok(CaptureReport {
            packets,
            missing: self.missing.load(Ordering::Relaxed),
        })
    }
}

fn write_all(
    mut file: BufWriter<File>,
    hosts: &[String],
    received: &Receiver<CapturedPacket>,
    epoch: Duration,
) -> io::Result<u64> {
    let mut capture = Capture::new(&mut file, hosts, None)?;
    let mut count = 0;
    while let Ok(packet) = received.recv() {
        capture.write(packet.at + epoch, packet.host.0 as usize, &packet.bytes)?;
        count += 1;
    }
    drop(capture);
    file.flush()?;
    Ok(count)
}
