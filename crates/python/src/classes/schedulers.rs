//! Multipath TCP schedulers written in Python: `longfat.extensions.scheduler`.

use std::fmt;

use foundation::{Instant, Problem};
use pyo3::prelude::*;
use pyo3::types::PyList;
use transport::mptcp::scheduler::{self, Choice, Scheduler, SchedulerSettings};

use super::instance::Instance;
use super::{Class, fail, problems, seconds};

event! {
    /// A usable subflow.
    "longfat.extensions.scheduler"
    pub struct Subflow {
        /// Number in the connection.
        number: u8;
        /// Number of the path.
        path: u8 = 0,
        /// Smoothed RTT; 0 before the first sample.
        srtt: f64 = 0.0,
        /// Mean deviation of the RTT.
        rtt_variation: f64 = 0.0,
        /// Minimum RTT; 0 before the first sample.
        base_rtt: f64 = 0.0,
        /// Latest RTT sample; 0 before the first.
        latest_rtt: f64 = 0.0,
        /// Congestion window.
        window: u64 = 0,
        /// Bytes in flight.
        in_flight: u64 = 0,
        /// Bytes assigned to it and not sent.
        queued: u64 = 0,
        /// Bytes of a full segment.
        segment: u32 = 1460,
        /// Whether a full segment would leave at once: windows and pacer allow it, and its queue is empty.
        room: bool = true,
        /// Whether either end marked it as a backup.
        backup: bool = false,
        /// Consecutive timeouts without an acknowledgement.
        timeouts: u32 = 0,
    }
}

event! {
    /// The data to send.
    "longfat.extensions.scheduler"
    pub struct DataView {
        /// Bytes written and not scheduled.
        unsent: u64;
        /// Bytes scheduled and not covered by a DATA_ACK.
        in_flight: u64 = 0,
        /// Free bytes of the peer's receive window (RFC 8684, section 3.3.1).
        window: u64 = 0,
        /// Whether the segment is a reinjection from a subflow that is not in the list.
        reinjection: bool = false,
    }
}

impl From<&scheduler::SubflowView> for Subflow {
    fn from(view: &scheduler::SubflowView) -> Self {
        Self {
            number: view.id,
            path: view.path.0,
            srtt: view.srtt.as_secs_f64(),
            rtt_variation: view.rtt_variation.as_secs_f64(),
            base_rtt: view.base_rtt.as_secs_f64(),
            latest_rtt: view.latest_rtt.as_secs_f64(),
            window: view.window,
            in_flight: view.in_flight,
            queued: view.queued,
            segment: view.segment,
            room: view.room,
            backup: view.backup,
            timeouts: view.timeouts,
        }
    }
}

impl From<&scheduler::DataView> for DataView {
    fn from(view: &scheduler::DataView) -> Self {
        Self {
            unsent: view.unsent,
            in_flight: view.in_flight,
            window: view.window,
            reinjection: view.reinjection,
        }
    }
}

/// The settings of a Python scheduler.
pub struct ClassSettings(pub(super) Class);

impl SchedulerSettings for ClassSettings {
    fn validate(&self) -> Vec<Problem> {
        problems(self.0.make(()))
    }

    fn build(&self) -> Box<dyn Scheduler> {
        Box::new(PythonScheduler(self.0.create(())))
    }
}

/// One connection's scheduler.
struct PythonScheduler(Instance);

impl fmt::Debug for PythonScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PythonScheduler").field(&self.0.name).finish()
    }
}

/// What `choose` may return.
const EXPECTED: &str = "expected a subflow of the list, a sequence of them for copies, or None to wait";

impl PythonScheduler {
    /// Returns the choice that a result of `choose` represents.
    fn read(&self, result: &Bound<'_, PyAny>, subflows: &[scheduler::SubflowView]) -> Result<Choice, String> {
        let wrong = || self.0.wrong("choose returned", result, EXPECTED);
        let place = |one: &Bound<'_, PyAny>| {
            let subflow = one.cast::<Subflow>().map_err(|_| wrong())?;
            let number = subflow.get().number;
            let place = subflows.iter().position(|view| view.id == number);
            place.ok_or_else(|| {
                let numbers: Vec<String> = subflows.iter().map(|view| view.id.to_string()).collect();
                let list = format!("it is not in the list (subflows {})", numbers.join(", "));
                self.0.wrong("choose returned", one, &list)
            })
        };
        if result.is_none() {
            return Ok(Choice::Wait);
        }
        if result.cast::<Subflow>().is_ok() {
            return place(result).map(Choice::Take);
        }
        let mut copies = 0;
        for one in result.try_iter().map_err(|_| wrong())? {
            copies |= 1 << place(&one.map_err(|_| wrong())?)?;
        }
        if copies == 0 {
            return Err(wrong());
        }
        Ok(Choice::Copies(copies))
    }
}

impl Scheduler for PythonScheduler {
    fn choose(
        &mut self,
        now: Instant,
        data: &scheduler::DataView,
        subflows: &[scheduler::SubflowView],
    ) -> Choice {
        let list =
            Python::attach(|py| PyList::new(py, subflows.iter().map(Subflow::from)).map(Bound::unbind));
        let list = list.unwrap_or_else(|error| fail(format!("{}.choose: {error}", self.0.name)));
        self.0.call(
            |py| pyo3::intern!(py, "choose"),
            (seconds(now), DataView::from(data), list),
            |_, result| self.read(&result, subflows),
        )
    }
}
