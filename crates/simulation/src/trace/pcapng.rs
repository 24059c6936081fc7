//! The packets of a trial as a capture file for Wireshark: each host is an interface with the packets that it sent and
//! received.

use std::collections::BTreeMap;
use std::io::{Error, Result, Write};

use capture::Capture;
use experiment::flow_table::FlowRecord;
use experiment::trace::capture::CaptureOptions;
use transport::mptcp::MptcpOption;
use transport::mptcp::keys::Keys;

use super::addresses::AddressPlan;
use super::packets;
use super::recorder::CapturedPacket;
use crate::body::{Content, Side};

/// The hosts of the two ends of each flow, as indices.
pub type FlowEnds = BTreeMap<u32, [usize; 2]>;

/// Writes `captured`, in order of time, as a capture file. `hosts` are the hosts of the trial, `flows` its flows.
///
/// # Errors
/// Errors of the writer, and a packet larger than IP allows.
pub fn write(
    out: impl Write,
    captured: &[CapturedPacket],
    hosts: &[String],
    flows: &[FlowRecord],
    extent: CaptureOptions,
) -> Result<()> {
    let place = |name: &String| hosts.iter().position(|host| host == name);
    let ends = flows
        .iter()
        .filter_map(|flow| Some((flow.flow, [place(&flow.from)?, place(&flow.to)?])));
    write_between(out, captured, hosts, &ends.collect(), extent)
}

/// As [`write`], with the ends of the flows.
///
/// # Errors
/// As [`write`].
pub fn write_between<'a>(
    out: impl Write,
    captured: impl IntoIterator<Item = &'a CapturedPacket>,
    hosts: &[String],
    ends: &FlowEnds,
    extent: CaptureOptions,
) -> Result<()> {
    let plan = AddressPlan::new(hosts.len());
    let mut capture = Capture::new(out, hosts, extent.snap)?;
    let mut bytes = Vec::new();
    let mut keys: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    // The subflows of a flow on one path, in order of appearance; their ports distinguish them on the wire.
    let mut subflows: BTreeMap<(u32, u8), Vec<u8>> = BTreeMap::new();
    let is_included = |sighting: &&'a CapturedPacket| extent.side.is_none_or(|side| side == sighting.side);
    for sighting in captured.into_iter().filter(is_included) {
        let body = &sighting.body;
        let &[from, to] = ends
            .get(&body.flow)
            .ok_or_else(|| Error::other(format!("flow {} has no hosts", body.flow)))?;
        let opened = plan.flow(body.flow, from, to);
        let endpoints = if sighting.is_forward() {
            opened
        } else {
            opened.reversed()
        };
        let host = match sighting.side {
            Side::Sender => from,
            Side::Receiver => to,
        };
        let mut endpoints = plan.on_way(endpoints, body.way);
        if let Content::Mptcp(segment) = &body.content {
            let on_way = subflows.entry((body.flow, body.way)).or_default();
            let known = on_way.iter().position(|&subflow| subflow == segment.subflow);
            let number = known.unwrap_or_else(|| {
                on_way.push(segment.subflow);
                on_way.len() - 1
            });
            if number > 0 {
                endpoints = plan.further(endpoints, sighting.is_forward(), number);
            }
        }
        let known = keys.entry(body.flow).or_default();
        if let Content::Mptcp(segment) = &body.content {
            learn_keys(known, &segment.option, sighting.is_forward());
        }
        let (mine, theirs) = if sighting.is_forward() { (0, 1) } else { (1, 0) };
        let keys = Keys {
            sender: known[mine],
            receiver: known[theirs],
        };
        // A packet is intact where it leaves.
        let corrupt = body.corrupt && sighting.side == body.to;
        packets::write(&body.content, keys, endpoints, corrupt, &mut bytes)?;
        capture.write(sighting.at, host, &bytes)?;
    }
    Ok(())
}

/// Records the keys of a multipath connection from its handshake, the opener's first (RFC 8684, section 3.1).
fn learn_keys(known: &mut [u64; 2], option: &MptcpOption, is_forward: bool) {
    if let MptcpOption::Capable { sender, receiver, .. } = *option {
        let (sender, receiver) = if is_forward {
            (sender, receiver)
        } else {
            (receiver, sender)
        };
        known[0] = sender.unwrap_or(known[0]);
        known[1] = receiver.unwrap_or(known[1]);
    }
}
