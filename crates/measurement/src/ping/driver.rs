//! Echo requests and datagrams on wall time.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use foundation::{Duration, Instant};
use rustix::event::{PollFd, PollFlags};
use socket::clock::Clock;
use socket::spin::{Pause, SpinBudget, SpinLimits};
use socket::wait::{sharpen_timers, wait_any};

use super::datagrams::{Arrival, Datagrams, QueueEvent};
use super::icmp::Number;
use super::plan::{Match, Plan, Probe, State};
use super::{Answer, Method, Options, Progress, Report, Sample};
use crate::Stamp;
use kernel::Error;

/// How often the loop checks whether to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Spinning before each request keeps the processor and its caches ready; otherwise a measurement on loopback is
/// mostly the wake-up time of the thread.
const AWAKE: SpinLimits = SpinLimits {
    lead: Duration::from_micros(150),
    share: 8,
    most: Duration::from_millis(2),
    awake_when_busy: false,
};
/// Requests that may wait for their stamp.
const UNSETTLED: usize = 64;

struct Driver<'a> {
    options: &'a Options,
    progress: &'a Progress,
    clock: Clock,
    plan: Plan,
    datagrams: Datagrams,
    samples: Vec<Sample>,
    /// When each request was sent, on the monotonic clock.
    sent: Vec<Instant>,
    /// Sent requests without a stamp; the first has the count `left`.
    leaving: VecDeque<u32>,
    left: u32,
    strangers: u64,
    budget: SpinBudget,
}

pub fn run(options: &Options, progress: &Progress) -> Result<Report, Error> {
    let (datagrams, note) = Datagrams::open(options)?;
    let clock = Clock::new();
    let plan = Plan::new(clock.now(), options.schedule.clone());
    let total = plan.total() as usize;
    let mut driver = Driver {
        options,
        progress,
        clock,
        plan,
        datagrams,
        samples: Vec::with_capacity(total),
        sent: Vec::with_capacity(total),
        leaving: VecDeque::with_capacity(UNSETTLED),
        left: 0,
        strangers: 0,
        budget: SpinBudget::new(AWAKE),
    };
    driver.run()?;
    Ok(driver.report(note))
}

impl Driver<'_> {
    fn run(&mut self) -> Result<(), Error> {
        sharpen_timers();
        while !self.progress.is_stopped() {
            let now = self.clock.now();
            self.plan.handle_timeout(now);
            if let Some(probe) = self.plan.poll_send(now) {
                self.send(probe)?;
            }
            let arrived = self.receive()?;
            if !arrived && !self.options.spin {
                // Read the stamp of the request just sent; otherwise it would end the wait at once.
                self.take_errors()?;
            }
            if self.plan.is_finished() {
                break;
            }
            if !arrived && !self.options.spin {
                self.wait();
            }
        }
        self.take_errors()
    }

    fn send(&mut self, probe: Probe) -> Result<(), Error> {
        self.datagrams.prepare(probe);
        let mut tried = 0;
        loop {
            let (wall, at) = (Stamp::now(), self.clock.now());
            let sent = self.datagrams.send();
            let failed = match sent {
                Ok(_) => None,
                Err(error) => match (error.kind(), error.raw_os_error()) {
                    // A pending ICMP error of an earlier request makes this call fail; the error queue contains it,
                    // too.
                    (
                        ErrorKind::ConnectionRefused
                        | ErrorKind::HostUnreachable
                        | ErrorKind::NetworkUnreachable,
                        _,
                    ) if tried < 3 => {
                        tried += 1;
                        self.take_errors()?;
                        continue;
                    }
                    (_, Some(number)) => Some(number),
                    _ => return Err(Error::system(format!("send to {}", self.options.to.ip()), error)),
                },
            };
            let mut sample = Sample::new(probe.size, wall);
            sample.error = failed;
            self.plan.sent(at);
            self.sent.push(at);
            self.samples.push(sample);
            self.progress.sent.fetch_add(1, Relaxed);
            match failed {
                None => self.leaving.push_back(probe.number),
                Some(number) if number == libc::EACCES || number == libc::EPERM => {
                    let remedy = "a firewall rule of this host forbids it, or it is a broadcast address";
                    return Err(Error::Permission {
                        what: format!("send to {}", self.options.to.ip()),
                        remedy: remedy.into(),
                    });
                }
                Some(_) => self.plan.handle_failure(probe.number),
            }
            return Ok(());
        }
    }

    /// Receives all pending packets; returns whether there was any.
    fn receive(&mut self) -> Result<bool, Error> {
        let mut any = false;
        loop {
            match self.datagrams.receive() {
                Arrival::Answer {
                    number,
                    answer,
                    stamp,
                } => {
                    // Take the time first.
                    let (at, wall) = (self.clock.now(), Stamp::now());
                    any = true;
                    let number = self.number(number);
                    self.answered(at, wall, number, answer, stamp);
                }
                Arrival::Stranger => {
                    any = true;
                    self.strangers += 1;
                }
                Arrival::Error => {
                    any = true;
                    self.take_errors()?;
                }
                Arrival::Nothing => break,
            }
            if self.plan.unanswered() == 0 {
                break;
            }
        }
        if any {
            self.take_errors()?;
        }
        Ok(any)
    }

    fn number(&self, number: Number) -> Option<u32> {
        match number {
            Number::Whole(number) => Some(number),
            Number::Low(low) => self.plan.latest_with(low),
        }
    }

    fn answered(
        &mut self,
        at: Instant,
        wall: Stamp,
        number: Option<u32>,
        answer: Answer,
        stamp: Option<Stamp>,
    ) {
        let found = number.map_or(Match::Unknown, |number| self.plan.handle_answer(at, number));
        let (Some(number), true) = (number, found != Match::Unknown) else {
            // A raw socket receives everybody's packets.
            self.strangers += u64::from(self.datagrams.method != Method::IcmpRaw);
            return;
        };
        let sample = &mut self.samples[number as usize];
        if found == Match::Duplicate {
            sample.duplicates = sample.duplicates.saturating_add(1);
            return;
        }
        let took = at - self.sent[number as usize];
        sample.application = Some(took);
        (sample.answer, sample.arrived, sample.read) = (Some(answer), stamp, Some(wall));
        sample.compute_spans();
        if found == Match::First {
            self.progress.answered.fetch_add(1, Relaxed);
            self.progress.last.store(took.as_nanos(), Relaxed);
            self.progress.size.store(sample.size, Relaxed);
        }
    }

    fn take_errors(&mut self) -> Result<(), Error> {
        loop {
            let queued = match self.datagrams.take_error() {
                Ok(Some(queued)) => queued,
                Ok(None) => return Ok(()),
                Err(error) => return Err(Error::system("read a socket's errors", error)),
            };
            match queued {
                QueueEvent::Left { count, stamp } => self.has_left(count, stamp),
                QueueEvent::Closed { number, stamp } => {
                    let (at, wall) = (self.clock.now(), Stamp::now());
                    let number = match number {
                        Some(number) => self.number(number),
                        None => self.plan.oldest(),
                    };
                    self.answered(at, wall, number, Answer::Closed, stamp);
                }
                QueueEvent::Failed { number, error } => {
                    let number = match number {
                        Some(number) => self.number(number),
                        None => self.plan.oldest(),
                    };
                    if let Some(number) = number
                        && let Some(sample) = self.samples.get_mut(number as usize)
                    {
                        sample.error = Some(error);
                        self.plan.handle_failure(number);
                    }
                }
                QueueEvent::Other => {}
            }
        }
    }

    /// Records the stamp of the sent request with this count.
    fn has_left(&mut self, count: u32, stamp: Stamp) {
        let place = count.wrapping_sub(self.left) as usize;
        // Requests without a stamp are skipped; a fragmented one has several.
        if let Some(&number) = self.leaving.get(place) {
            let sample = &mut self.samples[number as usize];
            if sample.left.is_none() {
                sample.left = Some(stamp);
                sample.compute_spans();
            }
            self.leaving.drain(..place);
            self.left = count;
        }
    }

    fn wait(&mut self) {
        let now = self.clock.now();
        if let Pause::Sleep(left) = self.budget.pause(now, self.plan.poll_timeout(), LOOK) {
            wait_any(&mut [PollFd::new(&self.datagrams.as_fd(), PollFlags::IN)], left);
        }
    }

    fn report(self, note: Option<String>) -> Report {
        let mut samples = self.samples;
        for (sample, state) in samples.iter_mut().zip(self.plan.states()) {
            sample.state = state;
        }
        samples.retain(|sample| sample.state != State::Waiting);
        Report {
            method: self.datagrams.method,
            samples,
            strangers: self.strangers,
            took: self.clock.now() - Instant::ZERO,
            note,
        }
    }
}
