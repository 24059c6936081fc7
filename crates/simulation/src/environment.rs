//! A trial whose TCP senders a program controls, for learning: it advances by monitor intervals.

use experiment::spec::{SpecError, TrialSpec};
use foundation::{Duration, Instant, Rate};

use crate::steering::{Account, Steering};
use crate::trial;
use crate::world::World;

/// Time after which connections that are not established have failed.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKE_STEP: Duration = Duration::from_millis(1);
/// Packets of the window before the first action (RFC 6928).
const INITIAL_PACKETS: u64 = 10;

/// What a program sets for one sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Action {
    /// Congestion window in bytes.
    pub window: u64,
    /// Pacing rate; `None` for bursts up to the window.
    pub rate: Option<Rate>,
}

/// A trial with one agent for each of the first flows.
pub struct Environment {
    world: World,
    agents: Vec<Steering>,
}

impl Environment {
    /// Starts a trial and runs it until the first `agents` flows are established.
    ///
    /// # Errors
    /// Problems of the specification, and flows that are not established within 10 s.
    pub fn new(spec: &TrialSpec, agents: u32) -> Result<Self, String> {
        let world = trial::world(spec, (), None).map_err(|error: SpecError| error.to_string())?;
        let mut environment = Self {
            world,
            agents: Vec::new(),
        };
        let end = environment.world.now() + LONGEST_HANDSHAKE;
        while (environment.agents.len() as u32) < agents {
            let flow = environment.agents.len() as u32;
            let steering = Steering::default();
            let attached = environment.world.with_connection(flow, |connection| {
                let window = INITIAL_PACKETS * u64::from(connection.segment());
                connection.set_controller(steering.controller(window, None));
            });
            match attached {
                Some(()) => environment.agents.push(steering),
                None if environment.world.now() >= end || environment.world.is_over() => {
                    return Err(format!("flow {flow} has no TCP connection after 10 s"));
                }
                None => {
                    let next = environment.world.now() + HANDSHAKE_STEP;
                    environment.world.run_until(next, None);
                }
            }
        }
        Ok(environment)
    }

    /// Applies an action for each agent, runs for `interval`, and returns what each sender observed.
    pub fn step(&mut self, actions: &[Action], interval: Duration) -> Vec<Account> {
        for (flow, (steering, action)) in (0..).zip(self.agents.iter().zip(actions)) {
            self.world.with_connection(flow, |connection| {
                connection.set_controller(steering.controller(action.window, action.rate));
            });
        }
        self.world.run_until(self.world.now() + interval, None);
        self.agents.iter().map(Steering::take_account).collect()
    }

    /// Returns the virtual time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.world.now()
    }

    /// Returns whether the trial has ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.world.is_over()
    }
}
