//! Packet schedulers of this project over the library.
//!
//! The library asks its paths in the order of their IDs, and sends data on the first one whose window and pacer allow a packet. Before
//! each request for a packet, the scheduler selects a path, and the controllers of all others report a full window. So the library
//! needs no change, and the peer receives no PATH_STATUS. Frames outside congestion control leave on any path: ACKs, and probes after
//! a timeout.

use std::num::NonZeroUsize;

use foundation::Instant;
use noq_proto::{Connection, PathStatus, Transmit};
use transport::mptcp::{Choice, DataView, PathIndex, Scheduler, SubflowView};

use super::clock::to_library;
use super::controller::Adapter;
use super::paths::Paths;
use crate::{PathScheduler, QuicConfig};

/// Selects the path of each packet with data.
#[derive(Debug)]
pub(super) struct Selection {
    scheduler: Box<dyn Scheduler>,
    segment: u32,
    /// Set when the scheduler requested copies.
    has_failed: bool,
}

impl Selection {
    /// Returns the selection of a connection; `None` of the library's scheduler.
    pub(super) fn new(config: &QuicConfig) -> Option<Self> {
        let PathScheduler::Own(scheduler) = config.scheduler() else {
            return None;
        };
        Some(Self {
            scheduler: scheduler.build(),
            segment: u32::try_from(config.segment()).unwrap_or(u32::MAX),
            has_failed: false,
        })
    }

    /// Returns once why the scheduler cannot select paths of QUIC.
    pub(super) fn take_failure(&mut self) -> Option<String> {
        let failed = std::mem::take(&mut self.has_failed);
        failed.then(|| "the packet scheduler requests copies, which QUIC does not send".to_owned())
    }

    /// Returns the next packet, on the path that the scheduler selects. A path whose pacer delays the packet counts as one without
    /// room, and the scheduler selects again.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        inner: &mut Connection,
        paths: &Paths,
        data: &DataView,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let at = to_library(now);
        let usable: Vec<(SubflowView, Adapter)> = self.views(now, inner, paths).collect();
        if usable.len() < 2 {
            return inner.poll_transmit(at, NonZeroUsize::MIN, buffer);
        }
        let mut views: Vec<SubflowView> = usable.iter().map(|(view, _)| *view).collect();
        let mut tried = 0_u64;
        loop {
            let chosen = match self.scheduler.choose(now, data, &views) {
                Choice::Wait => None,
                Choice::Take(place) => Some(place).filter(|&place| place < views.len()),
                Choice::Copies(_) => {
                    self.has_failed = true;
                    None
                }
            };
            let chosen = chosen.filter(|place| tried >> place & 1 == 0);
            for (place, (_, adapter)) in usable.iter().enumerate() {
                adapter.set_gate(Some(place) != chosen);
            }
            let transmit = inner.poll_transmit(at, NonZeroUsize::MIN, buffer);
            for (_, adapter) in &usable {
                adapter.set_gate(false);
            }
            if transmit.is_some() {
                return transmit;
            }
            let Some(place) = chosen else { break };
            tried |= 1 << place;
            views[place].room = false;
        }
        for (place, (view, adapter)) in usable.iter().enumerate() {
            adapter.set_spared(view.room && tried >> place & 1 == 0);
        }
        None
    }

    fn views(
        &self,
        now: Instant,
        inner: &Connection,
        paths: &Paths,
    ) -> impl Iterator<Item = (SubflowView, Adapter)> {
        let datagram = u64::from(inner.current_mtu());
        let segment = self.segment;
        paths.usable().filter_map(move |path| {
            let adapter = Paths::adapter(inner, path)?;
            let state = adapter.view(now);
            let measured = Some(state.sibling.rtt).filter(|rtt| !rtt.is_zero());
            let view = SubflowView {
                id: path.number,
                path: PathIndex(path.way),
                srtt: measured.unwrap_or_default(),
                rtt_variation: state.rtt_variation,
                base_rtt: state.sibling.base_rtt,
                latest_rtt: state.latest_rtt,
                window: state.window,
                in_flight: state.in_flight,
                queued: 0,
                segment,
                room: state.in_flight + datagram <= state.window,
                backup: inner.path_status(path.id) == Ok(PathStatus::Backup),
                timeouts: state.is_stalled.into(),
            };
            Some((view, adapter))
        })
    }
}
