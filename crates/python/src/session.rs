//! Trials in steps.

use std::sync::{Arc, Mutex, PoisonError};

use experiment::trace::{Series, TraceEvent};
use experiment::{Side, TrialRecord};
use foundation::{Duration, reading};
use pyo3::prelude::*;
use serde::Serialize;
use simulation::session::Session as Inner;
use transport::congestion::CongestionConfig;

use crate::calls::{Signals, json, wrong};
use crate::classes::{fault, guarded};
use crate::trials::spec;

/// A simulated trial that advances in steps. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct Session {
    trial: Mutex<Option<Inner>>,
    /// The signals that stop a step early.
    signals: Arc<Signals>,
}

/// What a step returns.
#[derive(Serialize)]
struct Step {
    now_s: f64,
    over: bool,
    events: Vec<TraceEvent>,
    series: Series,
}

impl Session {
    /// Acts on the trial without the interpreter's lock. An exception of a Python controller ends the session.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Inner) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut slot = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(mut session) = slot.take() else {
                return Err(wrong("the session is finished"));
            };
            let done = guarded(|| {
                let result = act(&mut session);
                (session, result)
            });
            let (session, result) = done.map_err(fault)?;
            *slot = Some(session);
            result
        })
    }
}

#[pymethods]
impl Session {
    #[new]
    fn new(py: Python<'_>, spec_json: &str, interval: f64) -> PyResult<Self> {
        let spec = spec(spec_json)?;
        let interval = Duration::from_secs_f64(interval);
        let made = py.detach(|| guarded(|| Inner::new(&spec, interval)));
        let mut session = made.map_err(fault)?.map_err(wrong)?;
        let signals = Arc::new(Signals::new());
        let interrupt = Arc::clone(&signals);
        session.interrupt_by(move || interrupt.raised());
        Ok(Self {
            trial: Mutex::new(Some(session)),
            signals,
        })
    }

    fn advance(&self, py: Python<'_>, step: f64) -> PyResult<String> {
        let step = Duration::from_secs_f64(step);
        let found = self.with(py, |session| {
            let (events, series) = session.advance(step);
            let (now_s, over) = (session.now().as_secs_f64(), session.is_over());
            if let Some(fault) = session.fault() {
                return Err(wrong(fault));
            }
            Ok(Step {
                now_s,
                over,
                events,
                series,
            })
        })?;
        self.signals.check()?;
        json(&found)
    }

    fn set_link(&self, py: Python<'_>, link: &str, key: &str, value_json: &str) -> PyResult<()> {
        let value = serde_json::from_str(value_json).map_err(wrong)?;
        self.with(py, |session| {
            session.change_link(link, key, &value).map_err(wrong)
        })
    }

    fn set_protocol(&self, py: Python<'_>, group: u32, key: &str, value_json: &str) -> PyResult<()> {
        let value = serde_json::from_str(value_json).map_err(wrong)?;
        self.with(py, |session| {
            session.set_protocol(group, key, &value).map_err(wrong)
        })
    }

    fn set_controller(&self, py: Python<'_>, flow: Option<u32>, congestion_json: &str) -> PyResult<()> {
        let config: CongestionConfig = reading::read(congestion_json).map_err(wrong)?;
        self.with(py, |session| {
            let done = match flow {
                Some(flow) => session.set_controller(flow, &config),
                None => session.set_later_controllers(&config),
            };
            done.map_err(wrong)
        })
    }

    fn start_flow(&self, py: Python<'_>, group: u32, pair: u32, size: Option<u64>) -> PyResult<u32> {
        self.with(py, |session| session.start_flow(group, pair, size).map_err(wrong))
    }

    fn stop_flow(&self, py: Python<'_>, flow: u32) -> PyResult<()> {
        self.with(py, |session| session.stop_flow(flow).map_err(wrong))
    }

    fn drop_packet(&self, py: Python<'_>, packet: u64) -> PyResult<()> {
        self.with(py, |session| session.lose(packet).map_err(wrong))
    }

    fn drop_next(&self, py: Python<'_>, flow: u32) -> PyResult<()> {
        self.with(py, |session| {
            session.lose_next(flow, Side::Receiver).map_err(wrong)
        })
    }

    fn links(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |session| Ok(session.links()))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let taken = self.trial.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = taken.ok_or_else(|| wrong("the session is finished"))?;
        let ended = py.detach(|| guarded(|| session.finish()));
        json(&ended.unwrap_or_else(|fault| TrialRecord::of_transfer(Err(&fault))))
    }
}
