//! Ends with different versions of the transfer protocol.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::mpsc;

use crate::common::{Receiver, protection, send_to};
use crate::hostile::play;
use foundation::Instant;
use socket::server::{Server, Service, Sessions, Visitor};
use socket::session::{Application, Session, Work};
use socket::transfer::ReceiveEvent;
use transport::arq::{ArqConfig, StreamRange};

const OTHER: &[u8; 16] = b"longfat files 3\n";

/// A receiver of another version. It aborts the connection after its greeting.
struct OtherReceiver {
    has_greeted: bool,
    has_received: bool,
}

impl Application for OtherReceiver {
    fn append(&mut self, range: StreamRange, out: &mut Vec<u8>) {
        out.extend_from_slice(&OTHER[range.offset as usize..][..range.length as usize]);
    }
    fn acknowledged(&mut self, _: u64) {}
    fn receive(&mut self, _: &[u8]) {
        self.has_received = true;
    }
    fn work(&mut self, _: Instant, _: u64) -> Result<Work, String> {
        if self.has_greeted && self.has_received {
            return Err("another version".to_owned());
        }
        let written = if self.has_greeted { 0 } else { OTHER.len() as u64 };
        self.has_greeted = true;
        Ok(Work {
            written,
            ..Work::default()
        })
    }
    fn is_complete(&self) -> bool {
        false
    }
}

/// Serves one sender.
struct Once;

impl Service for Once {
    type Application = OtherReceiver;

    fn accept(&mut self, _: Instant, _: &Visitor, _: u64) -> Result<OtherReceiver, String> {
        Ok(OtherReceiver {
            has_greeted: false,
            has_received: false,
        })
    }
    fn turn(&mut self, _: Instant, _: &mut Sessions<OtherReceiver>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn ended(&mut self, _: Instant, _: u64, _: Session<OtherReceiver>) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

#[test]
fn a_sender_names_the_other_version_of_its_receiver() {
    let (address, bound) = mpsc::channel::<SocketAddr>();
    let thread = std::thread::spawn(move || {
        let server = Server::bind(
            ([127, 0, 0, 1], 0).into(),
            1,
            &protection(),
            ArqConfig::for_files(),
        )
        .unwrap();
        address.send(server.address()).unwrap();
        server.serve(&mut Once).unwrap();
    });
    let source = tempfile::tempdir().unwrap();
    let file = source.path().join("file");
    std::fs::write(&file, b"contents").unwrap();
    let error = send_to(bound.recv().unwrap(), vec![file]).unwrap_err();
    assert!(error.to_string().contains("another version"), "{error}");
    thread.join().unwrap();
}

#[test]
fn a_receiver_names_the_other_version_of_its_sender() {
    let receiver = Receiver::start();
    let (replies, _) = play(&receiver, OTHER.to_vec(), usize::MAX);
    // The receiver sends its greeting, so the sender can also name the version.
    assert_eq!(String::from_utf8_lossy(&replies), "longfat files 4\n");
    let is_named = |event: &ReceiveEvent| matches!(event, ReceiveEvent::Disconnected(_, Some(reason)) if reason.contains("another version"));
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !receiver.events.lock().unwrap().iter().any(is_named) {
        assert!(
            std::time::Instant::now() < until,
            "{:?}",
            receiver.events.lock().unwrap()
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    receiver.stop();
}
