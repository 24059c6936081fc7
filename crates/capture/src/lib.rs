//! Capture files (pcapng) for Wireshark: [`Capture`] writes packets into one, and [`CaptureWriter`] does so in a thread of its own, while a loop
//! in real time passes packets to its [`CaptureTap`] without waiting.

#![forbid(unsafe_code)]

mod file;
mod writer;

pub use file::Capture;
pub use writer::{CaptureReport, CaptureTap, CaptureWriter};
