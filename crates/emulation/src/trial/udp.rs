//! Datagrams between two hosts.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use experiment::plan::Group;

use super::context::TrialContext;
use super::flow::Flow;
use super::pace::Pace;
use super::waiting::{INTERVAL, sleep_until};

/// Sends datagrams at the workload's rate.
pub(super) fn source(context: &TrialContext<'_>, group: &Group, flow: &Flow, size: u32, to: SocketAddr) {
    let sent = (|| -> std::io::Result<()> {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
        let Some(rate) = group.workload.rate else {
            return Ok(());
        };
        let (datagram, mut packets) = (vec![0; size as usize], 0);
        let gap = rate.time_for(u64::from(size));
        for at in Pace::of(group, flow.id.number, context.clock.now(), gap) {
            if !sleep_until(context, at) {
                break;
            }
            flow.first_data_at.note(context.clock.now());
            socket.send_to(&datagram, to)?;
            packets += 1;
            flow.set_sent(packets, packets * u64::from(size));
        }
        Ok(())
    })();
    if let Err(error) = sent {
        flow.fail(error.to_string());
    }
    flow.end();
}

/// Counts received datagrams.
pub(super) fn sink(context: &TrialContext<'_>, flow: &Flow, socket: &UdpSocket) {
    let mut buffer = vec![0; 65_536];
    if socket.set_read_timeout(Some(INTERVAL)).is_err() {
        return;
    }
    while !context.stop.load(Ordering::Relaxed) {
        if let Ok(bytes) = socket.recv(&mut buffer) {
            flow.read(0, bytes as u64);
        }
    }
}
