//! `send_files`: sends files to a receiver over one connection.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;

use foundation::{Duration, Instant, Problem};
use transport::Statistics;
use transport::arq::ArqConfig;

use super::batch::{Batch, State};
use super::connections::Connections;
use super::folder::{self, Listing};
use super::message::MAX_TEXT;
use super::outgoing::Outcome;
use super::reader::Source;
use crate::clock::Clock;
use crate::error::Error;
use crate::wire::Protection;

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct SendOptions {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Send folders with all files in them. Links in them are skipped.
    pub recursive: bool,
    /// Send standard input, under this name, instead of files. An interrupted transfer of it cannot be resumed.
    pub input: Option<String>,
    /// The receiver.
    pub to: SocketAddr,
    /// Whether the connection is encrypted and authenticated.
    pub protection: Protection,
    /// How long to try again when a receiver disappears, since the last progress. Default: not at all.
    pub wait: Duration,
    /// The protocol, by default [`ArqConfig::for_files`].
    pub protocol: ArqConfig,
    /// Search for the longest datagrams that the path carries (RFC 8899) and send several packets in each. Default: yes.
    pub search_path_mtu: bool,
}

impl SendOptions {
    /// Sends `files` to `to` with the protocol that suits files.
    #[must_use]
    pub fn new(files: Vec<PathBuf>, to: SocketAddr, protection: Protection) -> Self {
        Self {
            files,
            recursive: false,
            input: None,
            to,
            protection,
            wait: Duration::ZERO,
            protocol: ArqConfig::for_files(),
            search_path_mtu: true,
        }
    }
}

/// Progress of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendProgress<'a> {
    /// The current file.
    pub name: &'a str,
    /// Its number, from 0.
    pub file: usize,
    /// Number of files.
    pub files: usize,
    /// Bytes of all files that the receiver has.
    pub done: u64,
    /// Bytes of all files, if they are known.
    pub total: Option<u64>,
    /// Whether the receiver has disappeared and the sender tries to connect again.
    pub waiting: bool,
    /// Time since the start.
    pub elapsed: Duration,
    /// Rate over the last seconds, in bytes per second.
    pub rate: f64,
    /// Estimated remaining time; `None` while nothing moves.
    pub left: Option<Duration>,
}

/// One file of a [`SendReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFile {
    /// Its local path.
    pub path: PathBuf,
    /// Its size in bytes; `None` for standard input that did not arrive.
    pub size: Option<u64>,
    /// Bytes of it that the receiver already had.
    pub resumed: u64,
    /// Its result.
    pub outcome: Outcome,
}

/// Result of sending.
#[derive(Clone, Debug)]
pub struct SendReport {
    /// The files in the given order. Some may have failed.
    pub files: Vec<SentFile>,
    /// Links and special files in the folders, which are not sent.
    pub skipped: u64,
    /// Bytes of the files that arrived, without those that the receiver had already.
    pub bytes: u64,
    /// Time from the start to the receiver's last confirmation, in seconds.
    pub seconds: f64,
    /// `bytes` over `seconds`, in bit/s.
    pub goodput: f64,
    /// Smoothed round-trip time at the end.
    pub rtt: Duration,
    /// How often the sender connected again.
    pub reconnections: u64,
    /// The counters of all connections.
    pub statistics: Statistics,
}

impl SendReport {
    /// Returns the files that were not transferred, with the reasons.
    pub fn failures(&self) -> impl Iterator<Item = (&SentFile, &str)> {
        self.files.iter().filter_map(|file| match &file.outcome {
            Outcome::Failed(reason) => Some((file, reason.as_str())),
            _ => None,
        })
    }
}

/// Returns the files to send with their names, those of folders included.
fn named_files(options: &SendOptions) -> Result<Listing, Error> {
    let mut all = Listing::default();
    for path in &options.files {
        if options.recursive && path.is_dir() {
            let listing = folder::list(path).map_err(|(path, reason)| Error::File { path, reason })?;
            all.files.extend(listing.files);
            all.skipped += listing.skipped;
            continue;
        }
        let name = path.file_name().ok_or_else(|| Error::File {
            path: path.clone(),
            reason: "has no name".to_owned(),
        })?;
        all.files
            .push((path.clone(), name.to_string_lossy().into_owned()));
    }
    Ok(all)
}

/// Sends files. `progress` is called about 20 times a second and may stop it.
///
/// Without protection every file's contents are hashed with BLAKE3, and the receiver publishes a file only if its hash
/// matches. Bytes that the receiver has from an earlier attempt are verified by hash and skipped. If the receiver disappears after the
/// first contact, the sender connects again, for up to [`SendOptions::wait`].
///
/// # Errors
/// [`Error`] if a file cannot be read before anything was sent, or the connection cannot be opened or breaks. A single
/// failed file is no error: see [`SendReport::failures`].
pub fn send_files(
    options: &SendOptions,
    progress: &mut dyn FnMut(&SendProgress<'_>) -> ControlFlow<()>,
) -> Result<SendReport, Error> {
    if let Some(problem) = options.protocol.validate().into_iter().next() {
        return Err(Error::Settings(problem));
    }
    let (mss, most) = (options.protocol.mss, options.protection.max_payload());
    if mss.bytes() > u64::from(most) {
        let message = format!("{mss} is out of range: 1B to {most}B with encryption");
        return Err(Error::Settings(Problem::new("mss", message)));
    }
    let listing = named_files(options)?;
    let mut batch = Batch::default();
    for (path, name) in listing.files {
        let file = |reason: String| Error::File {
            path: path.clone(),
            reason,
        };
        if name.len() > MAX_TEXT {
            return Err(file(format!("its path is longer than {MAX_TEXT} bytes")));
        }
        batch.add(Source::new(&path).map_err(file)?, name);
    }
    if let Some(name) = &options.input {
        if !batch.is_complete() {
            let message = "standard input is sent alone, without other files".to_owned();
            return Err(Error::Abandoned(message));
        }
        batch.add(Source::standard_input(), name.clone());
    }
    if batch.is_complete() {
        return Err(Error::Abandoned("no file to send".to_owned()));
    }
    let clock = Clock::new();
    let mut meter = Meter::default();
    let mut report = |state: State<'_>| {
        let now = clock.now();
        let rate = meter.rate(now, state.done);
        progress(&SendProgress {
            name: state.name,
            file: state.file,
            files: state.files,
            done: state.done,
            total: state.total,
            waiting: state.waiting,
            elapsed: now - Instant::ZERO,
            rate,
            left: state
                .total
                .filter(|_| rate > 0.0)
                .map(|total| Duration::from_secs_f64((total - state.done) as f64 / rate)),
        })
    };
    let mut connections = Connections::new(options);
    connections.run(&mut batch, &clock, &mut report)?;
    let completed_at = connections.completed_at.unwrap_or_else(|| clock.now());
    let seconds = (completed_at - Instant::ZERO).as_secs_f64();
    Ok(SendReport {
        bytes: batch.sent(),
        goodput: batch.sent() as f64 * 8.0 / seconds.max(1e-9),
        files: batch.into_files(),
        skipped: listing.skipped,
        seconds,
        rtt: connections.rtt,
        reconnections: connections.count.saturating_sub(1),
        statistics: connections.statistics,
    })
}

/// The rate over the last seconds.
#[derive(Debug, Default)]
struct Meter {
    past: std::collections::VecDeque<(Instant, u64)>,
}

impl Meter {
    const SPAN: Duration = Duration::from_secs(3);

    /// Records that `done` bytes are done by `now`; returns bytes per second.
    fn rate(&mut self, now: Instant, done: u64) -> f64 {
        self.past.push_back((now, done));
        while self.past.len() > 2 && self.past[1].0 + Self::SPAN < now {
            self.past.pop_front();
        }
        let (then, before) = self.past[0];
        done.saturating_sub(before) as f64 / (now - then).as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut meter = Meter::default();
        for tenth in 0..100 {
            let rate = meter.rate(Instant::from_nanos(tenth * 100_000_000), tenth * 1000);
            assert!(tenth == 0 || (rate - 10_000.0).abs() < 1.0, "{rate}");
        }
        // After a stall of the whole span the old rate is forgotten.
        let rate = (100..140)
            .map(|tenth| meter.rate(Instant::from_nanos(tenth * 100_000_000), 99_000))
            .last();
        assert!(rate.is_some_and(|rate| rate < 1.0));
    }
}
