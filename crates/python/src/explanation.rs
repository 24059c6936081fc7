//! What limited the connections of a capture.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use explanation::report::CaptureReport;
use explanation::sequence::{Chosen, sequence};
use explanation::{CaptureError, CaptureFile, Connections};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::calls::{Callback, json, without_number, wrong};

/// Frames between two reports of progress.
const FRAMES: u64 = 1 << 16;

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
    let result = py.detach(|| {
        let input: Box<dyn Read + Send> = match &path {
            Some(path) => {
                Box::new(File::open(path).map_err(|error| PyOSError::new_err(without_number(&error)))?)
            }
            None => Box::new(std::io::stdin()),
        };
        let mut file = CaptureFile::open(input).map_err(raised)?;
        let found = Connections::read(&mut file, |frames| {
            !frames.is_multiple_of(FRAMES) || callback.call((frames,)).is_continue()
        })
        .map_err(raised)?;
        json(&CaptureReport::of(&file, &found))
    });
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
    most: usize,
) -> PyResult<String> {
    let chosen = Chosen {
        sender: sender.parse().map_err(wrong)?,
        receiver: receiver.parse().map_err(wrong)?,
        frames,
    };
    py.detach(|| {
        let input = File::open(&path).map_err(|error| PyOSError::new_err(without_number(&error)))?;
        let mut file = CaptureFile::open(input).map_err(raised)?;
        json(&sequence(&mut file, chosen, most).map_err(raised)?)
    })
}

fn raised(error: CaptureError) -> PyErr {
    match error {
        CaptureError::Read(error) => PyOSError::new_err(without_number(&error)),
        CaptureError::Format | CaptureError::Empty => wrong(error),
    }
}
