//! A receiver in a thread, and files to send to it.
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use security::{Code, Credentials};
use socket::transfer::{
    ReceiveEvent, ReceiveOptions, ReceiveReport, SendOptions, SendReport, receive, send_files,
};
use socket::{Error, Protection};

/// The protection of test transfers.
pub fn protection() -> Protection {
    Protection::Secure(Credentials::Code(Code::new([7; 12])))
}

pub struct Receiver {
    directory: tempfile::TempDir,
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    pub events: Arc<Mutex<Vec<ReceiveEvent>>>,
    thread: JoinHandle<ReceiveReport>,
}

impl Receiver {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut ReceiveOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = ReceiveOptions::new(
            ([127, 0, 0, 1], 0).into(),
            directory.path().to_owned(),
            protection(),
        );
        change(&mut options);
        let stop = Arc::new(AtomicBool::new(false));
        let events = Arc::new(Mutex::new(Vec::new()));
        let (tell, listening) = mpsc::channel();
        let (stopped, log) = (Arc::clone(&stop), Arc::clone(&events));
        let thread = std::thread::spawn(move || {
            receive(&options, &mut |event| {
                match event {
                    ReceiveEvent::Listening(address) => tell.send(address).unwrap(),
                    ReceiveEvent::Tick => {}
                    event => log.lock().unwrap().push(event),
                }
                if stopped.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .unwrap()
        });
        Self {
            directory,
            address: listening.recv().unwrap(),
            stop,
            events,
            thread,
        }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Names in the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub fn stop(self) -> ReceiveReport {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    /// Stops the receiver and calls `check` with its directory.
    pub fn stop_and(self, check: impl FnOnce(&Path)) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        check(self.directory.path());
    }

    /// Waits until the receiver stops.
    pub fn join(self) -> ReceiveReport {
        self.thread.join().unwrap()
    }
}

pub fn send(receiver: &Receiver, files: Vec<PathBuf>) -> Result<SendReport, Error> {
    send_to(receiver.address, files)
}

pub fn send_to(address: SocketAddr, files: Vec<PathBuf>) -> Result<SendReport, Error> {
    send_files(&SendOptions::new(files, address, protection()), &mut |_| {
        ControlFlow::Continue(())
    })
}

/// Returns reproducible pseudorandom bytes.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
