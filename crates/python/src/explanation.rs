//! What limited the connections of a capture.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use explanation::report::CaptureReport;
use explanation::sequence::{Chosen, sequence};
use explanation::{CaptureError, CaptureFile, Connections};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

use crate::calls::{Callback, Signals, TICK, json, plain, wrong};

/// Frames between two reports of progress.
const FRAMES: u64 = 1 << 16;

/// Bytes that are read from standard input at once, and parts that wait.
const PART: usize = 1 << 16;
const PARTS: usize = 16;

/// Standard input, which a thread reads. Ctrl-C ends it, as it ends `tcpdump` in the same pipeline.
struct Live {
    parts: Receiver<io::Result<Vec<u8>>>,
    /// The newest part, and how much of it is used.
    part: (Vec<u8>, usize),
    signals: Arc<Signals>,
}

impl Live {
    fn new(signals: Arc<Signals>) -> Self {
        let (sender, parts) = sync_channel(PARTS);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut part = vec![0; PART];
                let read = input.read(&mut part).map(|length| {
                    part.truncate(length);
                    part
                });
                let is_last = read
                    .as_ref()
                    .map_or_else(|error| error.kind() != io::ErrorKind::Interrupted, Vec::is_empty);
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            parts,
            part: (Vec::new(), 0),
            signals,
        }
    }
}

impl Read for Live {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.part.1 == self.part.0.len() {
            if self.signals.raised() {
                return Ok(0);
            }
            match self.parts.recv_timeout(TICK) {
                Ok(Ok(part)) if part.is_empty() => return Ok(0),
                Ok(Ok(part)) => self.part = (part, 0),
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
        let rest = &self.part.0[self.part.1..];
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        self.part.1 += length;
        Ok(length)
    }
}

/// Explains a capture, or standard input without a path; see the stub.
#[pyfunction]
#[pyo3(signature = (path, on_progress))]
pub fn explain_capture(
    py: Python<'_>,
    path: Option<PathBuf>,
    on_progress: &Bound<'_, PyAny>,
) -> PyResult<String> {
    let on_progress = on_progress.clone().unbind();
    let mut callback = Callback::new(Some(&on_progress));
    let signals = Arc::new(Signals::new());
    let result = py.detach(|| {
        let input: Box<dyn Read + Send> = match &path {
            Some(path) => Box::new(File::open(path).map_err(|error| PyOSError::new_err(plain(&error)))?),
            None => Box::new(Live::new(Arc::clone(&signals))),
        };
        let mut file = CaptureFile::open(input).map_err(raised)?;
        let found = Connections::read(&mut file, |frames| {
            !frames.is_multiple_of(FRAMES) || callback.call((frames,)).is_continue()
        })
        .map_err(raised)?;
        let mut report = CaptureReport::of(&file, &found);
        if let Err(error) = signals.check() {
            let is_end = Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py));
            if !is_end || report.frames == 0 {
                return Err(error);
            }
            report.ended_early = Some(format!("interrupted after frame {}", report.frames));
        }
        json(&report)
    });
    if result.is_err() {
        signals.check()?;
    }
    callback.finish(result)
}

/// Returns the packets of one direction of a connection for a graph; see the stub.
#[pyfunction]
pub fn capture_sequence(
    py: Python<'_>,
    path: PathBuf,
    sender: &str,
    receiver: &str,
    frames: (u64, u64),
    interface: u32,
    most: usize,
) -> PyResult<String> {
    let chosen = Chosen {
        sender: sender.parse().map_err(wrong)?,
        receiver: receiver.parse().map_err(wrong)?,
        frames,
        interface,
    };
    py.detach(|| {
        let input = File::open(&path).map_err(|error| PyOSError::new_err(plain(&error)))?;
        let mut file = CaptureFile::open(input).map_err(raised)?;
        json(&sequence(&mut file, chosen, most).map_err(raised)?)
    })
}

fn raised(error: CaptureError) -> PyErr {
    match error {
        CaptureError::Read(error) => PyOSError::new_err(plain(&error)),
        CaptureError::Format | CaptureError::Empty => wrong(error),
    }
}
