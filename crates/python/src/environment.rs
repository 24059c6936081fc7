//! Environments for learning, on all cores.

use std::sync::{Mutex, PoisonError};
use std::thread;

use foundation::{Duration, Rate};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use simulation::environment::{Action, Environment};
use simulation::steering::Account;

use crate::calls::wrong;
use crate::classes::guarded;
use crate::trials::spec;

/// Numbers for each agent: window in bytes, and rate in bit/s (0 for none).
const ACTION: usize = 2;
/// Window without a limit, in bytes.
const UNLIMITED_WINDOW: f64 = (1_u64 << 40) as f64;

/// Several environments that advance together. Documented in the stub.
#[pyclass(frozen, module = "longfat._native")]
pub struct Environments {
    agents: u32,
    interval: Duration,
    threads: usize,
    slots: Mutex<Vec<Option<Environment>>>,
}

#[pymethods]
impl Environments {
    #[new]
    fn new(count: usize, agents: u32, interval: f64, threads: usize) -> Self {
        Self {
            agents,
            interval: Duration::from_secs_f64(interval),
            threads: threads.clamp(1, count.max(1)),
            slots: Mutex::new((0..count).map(|_| None).collect()),
        }
    }

    fn reset(&self, py: Python<'_>, index: usize, spec_json: &str) -> PyResult<()> {
        let spec = spec(spec_json)?;
        let made = py.detach(|| guarded(|| Environment::new(&spec, self.agents)));
        let environment = made.and_then(|made| made).map_err(wrong)?;
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = slots
            .get_mut(index)
            .ok_or_else(|| wrong(format!("there is no environment {index}")))?;
        *slot = Some(environment);
        Ok(())
    }

    fn step<'py>(&self, py: Python<'py>, actions: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let agents = self.agents as usize;
        let numbers: Vec<f64> = actions
            .chunks_exact(8)
            .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap_or_default()))
            .collect();
        let each: Vec<Action> = numbers
            .chunks_exact(ACTION)
            .map(|pair| action(pair[0], pair[1]))
            .collect();
        let stepped = py.detach(|| {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            if each.len() != slots.len() * agents {
                return Err(format!("{} actions expected", slots.len() * agents));
            }
            self.step_all(&mut slots, &each)
        });
        Ok(PyBytes::new(py, &stepped.map_err(wrong)?))
    }
}

impl Environments {
    /// Steps all environments, a share of them in each thread; returns the numbers of all agents.
    fn step_all(&self, slots: &mut [Option<Environment>], actions: &[Action]) -> Result<Vec<u8>, String> {
        let agents = self.agents as usize;
        let share = slots.len().div_ceil(self.threads);
        let step = |slots: &mut [Option<Environment>], actions: &[Action]| {
            guarded(|| {
                let mut found = Vec::with_capacity(slots.len() * agents * 80);
                for (slot, actions) in slots.iter_mut().zip(actions.chunks(agents)) {
                    let environment = slot.as_mut().ok_or("an environment was not reset")?;
                    for account in environment.step(actions, self.interval) {
                        write(&account, environment, &mut found);
                    }
                }
                Ok(found)
            })
            .and_then(|found: Result<Vec<u8>, &str>| found.map_err(str::to_owned))
        };
        if self.threads == 1 {
            return step(slots, actions);
        }
        let parts: Vec<Result<Vec<u8>, String>> = thread::scope(|scope| {
            let parts = slots.chunks_mut(share).zip(actions.chunks(share * agents));
            let running: Vec<_> = parts
                .map(|(slots, actions)| scope.spawn(|| step(slots, actions)))
                .collect();
            let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|_| Err("a thread failed".to_owned())))
                .collect()
        });
        parts
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map(|parts| parts.concat())
    }
}

fn action(window: f64, rate: f64) -> Action {
    Action {
        window: window.clamp(1.0, UNLIMITED_WINDOW) as u64,
        rate: (rate > 0.0)
            .then(|| Rate::from_bits_per_second((rate as u64).max(1)))
            .flatten(),
    }
}

/// Appends what an agent observed, as little-endian doubles in the order of the stub.
fn write(account: &Account, environment: &Environment, out: &mut Vec<u8>) {
    let numbers = [
        environment.now().as_secs_f64(),
        account.sent as f64,
        account.acknowledged as f64,
        account.lost as f64,
        account.samples as f64,
        account.rtt_mean().unwrap_or(f64::NAN),
        if account.samples > 0 {
            account.rtt_min
        } else {
            f64::NAN
        },
        account.rtt_slope(),
        account.timeouts as f64,
        f64::from(u8::from(environment.is_over())),
    ];
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes());
    }
}
