//! A capture of all packets that hosts send and receive, written by a thread in real time.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use foundation::{Duration, Instant};

use crate::Capture;

/// Packets that wait for the writer: 60 MB of packets of 1500 bytes.
const MOST_WAITING: usize = 40_000;

/// A packet at a host.
struct CapturedPacket {
    at: Instant,
    host: usize,
    bytes: Vec<u8>,
}

/// Where a loop in real time passes packets. It never waits: packets are left out while the writer is behind.
#[derive(Clone, Debug)]
pub struct CaptureTap {
    packets: SyncSender<CapturedPacket>,
    missing: Arc<AtomicU64>,
}

impl CaptureTap {
    /// Captures a packet, from its IP header on, that a host sends or receives. Hosts are numbered as in [`CaptureWriter::create`], and times do
    /// not decrease.
    pub fn record(&self, at: Instant, host: usize, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        if self.packets.try_send(CapturedPacket { at, host, bytes }).is_err() {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread that writes a capture.
#[derive(Debug)]
pub struct CaptureWriter {
    file: PathBuf,
    thread: JoinHandle<io::Result<u64>>,
    missing: Arc<AtomicU64>,
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
    /// Creates the file, with one interface for each host. Its timestamps are those of the wall clock: `now` is the time of the packets' clock
    /// at the call.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, hosts: &[String], now: Instant) -> io::Result<(Self, CaptureTap)> {
        let file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        let hosts = hosts.to_vec();
        let (packets, received) = sync_channel(MOST_WAITING);
        let missing = Arc::new(AtomicU64::new(0));
        let epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |span| span.as_nanos() as u64)
            .saturating_sub((now - Instant::ZERO).as_nanos());
        let thread = std::thread::Builder::new()
            .name("capture".into())
            .spawn(move || write_all(file, &hosts, &received, Duration::from_nanos(epoch)))?;
        let tap = CaptureTap {
            packets,
            missing: Arc::clone(&missing),
        };
        let writer = Self {
            file: path.to_owned(),
            thread,
            missing,
        };
        Ok((writer, tap))
    }

    /// Returns the file's name.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Completes the file after its tap was dropped.
    ///
    /// # Errors
    /// The system's, for example for a full disk.
    pub fn finish(self) -> io::Result<CaptureReport> {
        let packets = self
            .thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
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
        capture.write(packet.at + epoch, packet.host, &packet.bytes)?;
        count += 1;
    }
    drop(capture);
    file.flush()?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_packets_and_those_for_which_the_writer_is_too_slow() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("some.pcapng");
        let (writer, tap) = CaptureWriter::create(&file, &["a".into(), "b".into()], Instant::ZERO).unwrap();
        for number in 0..10 {
            tap.record(Instant::ZERO, number % 2, &[0x45, 0]);
        }
        drop(tap);
        let report = writer.finish().unwrap();
        assert_eq!((report.packets, report.missing), (10, 0));
        assert!(std::fs::metadata(&file).unwrap().len() > 10 * 32);

        // Nothing reads from this tap.
        let (packets, _received) = sync_channel(1);
        let missing = Arc::new(AtomicU64::new(0));
        let tap = CaptureTap { packets, missing };
        tap.record(Instant::ZERO, 0, &[]);
        tap.record(Instant::ZERO, 0, &[]);
        assert_eq!(tap.missing.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn reports_a_file_that_cannot_be_created() {
        let folder = tempfile::tempdir().unwrap();
        let found = CaptureWriter::create(&folder.path().join("none/a.pcapng"), &[], Instant::ZERO);
        assert_eq!(found.err().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
