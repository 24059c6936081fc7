//! Datagrams between two kernels.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;

use experiment::plan::Group;

use super::flow::Flow;
use super::pace::{LOOK, Pace, wait_until};
use super::tcp::Setting;

/// Sends datagrams at the rate of the workload.
pub(super) fn source(setting: &Setting<'_>, group: &Group, flow: &Flow, size: u32, to: SocketAddr) {
    let sent = (|| -> std::io::Result<()> {
        let socket = UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
        let Some(rate) = group.workload.rate else {
            return Ok(());
        };
        let (datagram, mut packets) = (vec![0; size as usize], 0);
        let gap = rate.time_for(u64::from(size));
        for at in Pace::of(group, flow.id.number, setting.clock.now(), gap) {
            if !wait_until(setting, at) {
                break;
            }
            flow.first_data_at.note(setting.clock.now());
            socket.send_to(&datagram, to)?;
            packets += 1;
            flow.has_sent(packets, packets * u64::from(size));
        }
        Ok(())
    })();
    if let Err(error) = sent {
        flow.fail(error.to_string());
    }
    flow.over.store(true, Ordering::Relaxed);
}

/// Counts the datagrams that arrive.
pub(super) fn sink(setting: &Setting<'_>, flow: &Flow, socket: &UdpSocket) {
    let mut buffer = vec![0; 65_536];
    if socket.set_read_timeout(Some(LOOK)).is_err() {
        return;
    }
    while !setting.stop.load(Ordering::Relaxed) {
        if let Ok(bytes) = socket.recv(&mut buffer) {
            flow.read(0, bytes as u64);
        }
    }
}
