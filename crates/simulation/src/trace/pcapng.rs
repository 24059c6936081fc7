//! The packets of a trial as a capture file that Wireshark opens: every host is an interface, which saw what
//! it sent and what reached it.

use std::collections::BTreeMap;
use std::io::{Error, Result, Write};

use experiment::record::FlowRecord;

use super::capture::{AddressPlan, Capture};
use super::packets;
use super::recorder::Sighting;
use crate::body::Side;

/// What of a trial a capture holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// The end of each flow that is listened at; both where it is `None`. Then every packet that arrives is
    /// there twice, which Wireshark takes for a retransmission unless it is told to tell interfaces apart.
    pub side: Option<Side>,
    /// Bytes kept of each packet; all of them where it is `None`.
    pub snap: Option<u32>,
}

/// Writes a capture of `sightings`, which are in order of time. `hosts` are the trial's, `flows` those that
/// began in it.
///
/// # Errors
/// What the writer gives, and a packet that is larger than IP allows.
pub fn write(
    out: impl Write,
    sightings: &[Sighting],
    hosts: &[String],
    flows: &[FlowRecord],
    extent: Extent,
) -> Result<()> {
    let plan = AddressPlan::new(hosts.len());
    let place = |name: &String| hosts.iter().position(|host| host == name);
    let ends: BTreeMap<u32, (usize, usize)> = flows
        .iter()
        .filter_map(|flow| Some((flow.flow, (place(&flow.from)?, place(&flow.to)?))))
        .collect();
    let mut capture = Capture::new(out, hosts, extent.snap)?;
    let mut bytes = Vec::new();
    let heard = |sighting: &&Sighting| extent.side.is_none_or(|side| side == sighting.side);
    for sighting in sightings.iter().filter(heard) {
        let body = &sighting.body;
        let &(from, to) = ends
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
        // A packet that is seen where it leaves is whole.
        let corrupt = body.corrupt && sighting.side == body.to;
        packets::write(&body.content, endpoints, corrupt, &mut bytes)?;
        capture.write(sighting.at, host, &bytes)?;
    }
    Ok(())
}
