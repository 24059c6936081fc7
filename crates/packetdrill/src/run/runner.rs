//! The order of events: lets time pass, acts, and compares.

use foundation::{Duration, Instant};

use super::calls::{self, Answer, Attempt, Stop};
use super::expect::{self, Found};
use super::info::Figures;
use super::link::Link;
use super::outcome::{Departure, Outcome, Report};
use super::segment::Mapping;
use super::settings::Settings;
use super::symbols;
use super::world::{START, World};
use crate::code::{Fault, Snippets};
use crate::language::{
    Action, Call, Direction, Event, Icmp, PacketSpec, ParseError, Payload, TcpFlags, TcpSpec, Time, parse,
};

/// How long to look for what a script expects beyond the time it may come, so that a departure can tell when
/// it came.
const PATIENCE: Duration = Duration::from_secs(300);

/// Reads and runs a script.
#[must_use]
pub fn run(text: &str) -> Report {
    let script = match parse(text) {
        Ok(script) => script,
        Err(error) => {
            let outcome = match error {
                ParseError::Syntax { line, message } => Outcome::Invalid { line, message },
                ParseError::Unsupported { line, what } => Outcome::Unsupported { line, what },
            };
            return Report {
                outcome,
                printed: Vec::new(),
            };
        }
    };
    let mut settings = Settings::default();
    for (name, value, line) in &script.options {
        if let Err(what) = settings.option(name, value.as_deref()) {
            return Report {
                outcome: Outcome::Unsupported { line: *line, what },
                printed: Vec::new(),
            };
        }
    }
    let mut runner = Runner {
        world: World::new(settings),
        snippets: Snippets::default(),
        pending: None,
        last: None,
        line: 1,
    };
    let outcome = match runner.all(&script.setup, &script.events) {
        Ok(()) => Outcome::Pass,
        Err(Stop::Unsupported(what)) => Outcome::Unsupported {
            line: runner.line,
            what,
        },
        Err(Stop::Departs { expected, seen }) => Outcome::Fail(Departure {
            line: runner.line,
            expected,
            seen,
            at: Instant::ZERO + runner.world.elapsed(),
        }),
    };
    Report {
        outcome,
        printed: runner.snippets.take_printed(),
    }
}

/// A call that has not returned yet.
struct Pending<'a> {
    call: &'a Call,
    line: u32,
    attempt: Attempt,
    /// When it should return.
    end: Instant,
    tolerance: Duration,
    /// When it gives up waiting by itself.
    until: Option<Instant>,
}

struct Runner<'a> {
    world: World,
    snippets: Snippets,
    pending: Option<Pending<'a>>,
    /// When the last event was to happen, and whether it was an inbound packet.
    last: Option<(Instant, bool)>,
    line: u32,
}

/// When an event is to happen, and how far off it may be.
#[derive(Clone, Copy)]
struct When {
    from: Instant,
    to: Instant,
    tolerance: Duration,
    any: bool,
}

impl<'a> Runner<'a> {
    fn all(&mut self, setup: &Option<(String, u32)>, events: &'a [Event]) -> Result<(), Stop> {
        if let Some((commands, line)) = setup {
            self.line = *line;
            self.world.settings.command(commands).map_err(Stop::Unsupported)?;
        }
        let problems = self.world.settings.tcp.validate();
        if let Some(problem) = problems.first() {
            return Err(Stop::Unsupported(problem.to_string()));
        }
        for event in events {
            self.line = event.line;
            self.event(event)?;
        }
        match self.pending.take() {
            Some(pending) => self.finish(pending),
            None => Ok(()),
        }
    }

    fn event(&mut self, event: &'a Event) -> Result<(), Stop> {
        let inbound =
            matches!(&event.action, Action::Packet(packet) if packet.direction == Direction::Inbound);
        let when = self.when(event.time, inbound);
        let outbound = matches!(&event.action, Action::Packet(packet) if packet.outbound());
        if !outbound {
            self.until(when)?;
        }
        let happened = match &event.action {
            Action::Packet(packet) if outbound => {
                self.outbound(packet, when)?;
                self.world.now
            }
            Action::Packet(packet) => {
                self.inbound(packet)?;
                when.from
            }
            Action::Call(call) => {
                self.call(call, event, when)?;
                when.from
            }
            Action::Command(command) => {
                self.world.settings.command(command).map_err(Stop::Unsupported)?;
                when.from
            }
            Action::Code(code) => {
                self.code(code)?;
                when.from
            }
        };
        self.retry()?;
        self.last = Some((happened, inbound));
        Ok(())
    }

    /// Times are counted from now, but those of inbound packets in a row from each other.
    fn when(&self, time: Time, inbound: bool) -> When {
        let base = match self.last {
            Some((at, true)) if inbound => at,
            _ => self.world.now,
        };
        let (from, to, any) = match time {
            Time::Absolute(at) => (START + at, START + at, false),
            Time::AbsoluteRange(from, to) => (START + from, START + to, false),
            Time::Relative(after) => (base + after, base + after, false),
            Time::RelativeRange(from, to) => (base + from, base + to, false),
            Time::Any => (self.world.now, Instant::MAX, true),
        };
        let since = self.last.map_or(Duration::ZERO, |(at, _)| from - at);
        let settings = &self.world.settings;
        let part = since.mul_f64(settings.tolerance_percent / 100.0);
        When {
            from,
            to,
            tolerance: settings.tolerance.max(part),
            any,
        }
    }

    /// Lets time pass until an event that the script brings about.
    fn until(&mut self, when: When) -> Result<(), Stop> {
        if self.world.now > when.from + when.tolerance {
            return Err(Stop::Departs {
                expected: format!("this at {}", seconds(when.from)),
                seen: format!("that time passed: it is {}", seconds(self.world.now)),
            });
        }
        self.advance(when.from)
    }

    /// Lets time pass, seeing to the call that waits on the way.
    fn advance(&mut self, to: Instant) -> Result<(), Stop> {
        loop {
            let waits = self.pending.as_ref().and_then(|pending| pending.until);
            let next = self
                .world
                .timeout()
                .into_iter()
                .chain(waits)
                .min()
                .unwrap_or(to)
                .min(to);
            self.world.step(next).map_err(Stop::Unsupported)?;
            self.retry()?;
            if next == to && self.world.timeout().is_none_or(|due| due > to) {
                return Ok(());
            }
        }
    }

    fn inbound(&mut self, packet: &PacketSpec) -> Result<(), Stop> {
        match &packet.payload {
            Payload::Tcp(spec) => {
                let bare = Mapping::default()
                    .inbound(spec, packet.ecn)
                    .map_err(Stop::Unsupported)?;
                let make = |link: &Link| link.mapping.inbound(spec, packet.ecn);
                self.world.arrive(make, bare).map_err(Stop::Unsupported)
            }
            Payload::Icmp(message) => self.icmp(message),
        }
    }

    fn icmp(&mut self, message: &Icmp) -> Result<(), Stop> {
        let now = self.world.now;
        let too_big = matches!(
            (message.kind.as_str(), message.code.as_deref()),
            ("unreachable", Some("frag_needed")) | ("packet_too_big", _)
        );
        match (too_big, message.mtu, self.world.link()) {
            (true, Some(mtu), Some(link)) => {
                link.path_mtu(now, mtu);
                Ok(())
            }
            _ => {
                let code = message.code.as_deref().unwrap_or("");
                Err(Stop::Unsupported(format!("ICMP {} {code}", message.kind)))
            }
        }
    }

    fn outbound(&mut self, packet: &PacketSpec, when: When) -> Result<(), Stop> {
        let Payload::Tcp(spec) = &packet.payload else {
            return Err(Stop::Unsupported("outbound ICMP".to_owned()));
        };
        let expected = || {
            let time = match (when.any, when.from == when.to) {
                (true, _) => String::new(),
                (false, true) => format!(" at {}", seconds(when.from)),
                (false, false) => format!(" from {} to {}", seconds(when.from), seconds(when.to)),
            };
            format!("{}{time}", expect::expectation(spec, packet.ecn))
        };
        let deadline = when.to.min(self.world.now + PATIENCE) + when.tolerance + PATIENCE;
        let found = loop {
            match self.head(spec) {
                Found::Packet(found) => break found,
                Found::Wait => {
                    let next = self.world.timeout().filter(|next| *next <= deadline);
                    let Some(next) = next else {
                        return Err(Stop::Departs {
                            expected: expected(),
                            seen: self.waiting(),
                        });
                    };
                    self.advance(next)?;
                }
            }
        };
        let since_start = self.world.elapsed();
        let settings = self.world.settings.clone();
        let mut strays = Mapping::default();
        let link = self.world.link();
        let mapping = match link {
            Some(link) => {
                if spec.flags.contains(TcpFlags::SYN) {
                    // The script says what it calls the initial sequence number.
                    link.mapping.name_initial(spec.sequence);
                }
                &mut link.mapping
            }
            None => &mut strays,
        };
        if let Some(seen) = expect::mismatch(&found, spec, packet.ecn, mapping, &settings, since_start) {
            return Err(Stop::Departs {
                expected: expected(),
                seen: format!("{seen}, sent at {}", seconds(found.at)),
            });
        }
        let early = found.at + when.tolerance < when.from;
        let late = found.at > when.to + when.tolerance;
        if !when.any && (early || late) {
            return Err(Stop::Departs {
                expected: expected(),
                seen: format!("it at {}", seconds(found.at)),
            });
        }
        Ok(())
    }

    fn head(&mut self, spec: &TcpSpec) -> Found {
        let settings = self.world.settings.clone();
        match self.world.link() {
            Some(link) => expect::take(&mut link.sent, spec.length, &settings),
            None => expect::take(&mut self.world.strays, spec.length, &settings),
        }
    }

    /// What is there when nothing more comes.
    fn waiting(&mut self) -> String {
        let Some(link) = self.world.link() else {
            return "nothing".to_owned();
        };
        match link.sent.front() {
            Some(sent) => format!(
                "only {}, sent at {}",
                link.mapping.describe(&sent.segment),
                seconds(sent.at)
            ),
            None => "nothing".to_owned(),
        }
    }

    fn code(&mut self, code: &str) -> Result<(), Stop> {
        let figures = Figures {
            link: self.world.current.map(|index| &self.world.links[index]),
            now: self.world.now,
        };
        self.snippets.run(code, &figures).map_err(|fault| match fault {
            Fault::Unsupported(what) => Stop::Unsupported(what),
            Fault::Wrong(message) => Stop::Unsupported(message),
            Fault::Assertion { line, seen, message } => {
                let asserted = code.lines().nth(line as usize).unwrap_or(code).trim();
                let told = message.map(|message| format!(" ({message})")).unwrap_or_default();
                Stop::Departs {
                    expected: asserted.to_owned(),
                    seen: format!("{seen}{told}"),
                }
            }
        })
    }

    fn call(&mut self, call: &'a Call, event: &Event, when: When) -> Result<(), Stop> {
        // One call at a time waits in the background; calls that do not wait may pass it.
        if let Some(pending) = self.pending.take_if(|_| call.end.is_some()) {
            self.finish(pending)?;
        }
        let mut attempt = Attempt {
            started: self.world.now,
            progress: 0,
        };
        let answer = calls::attempt(&mut self.world, call, &mut attempt)?;
        let end = match (call.end, event.time) {
            (Some(end), Time::Relative(after)) => (when.from - after) + end,
            (Some(end), _) => START + end,
            (None, _) => Instant::MAX,
        };
        let tolerance = match call.end {
            Some(_) => when
                .tolerance
                .max((end - when.from).mul_f64(self.world.settings.tolerance_percent / 100.0)),
            None => Duration::MAX,
        };
        let mut pending = Pending {
            call,
            line: event.line,
            attempt,
            end,
            tolerance,
            until: None,
        };
        match answer {
            Answer::Blocks(until) if call.end.is_some() => {
                pending.until = until;
                self.pending = Some(pending);
                Ok(())
            }
            Answer::Blocks(_) => self.finish(pending),
            answer => self.returned(&pending, answer),
        }
    }

    /// Tries the call that waits again, after something happened.
    fn retry(&mut self) -> Result<(), Stop> {
        let Some(mut pending) = self.pending.take() else {
            return Ok(());
        };
        match calls::attempt(&mut self.world, pending.call, &mut pending.attempt)? {
            Answer::Blocks(until) => {
                pending.until = until;
                self.pending = Some(pending);
                Ok(())
            }
            answer => self.returned(&pending, answer),
        }
    }

    /// Lets time pass until a call returns.
    fn finish(&mut self, mut pending: Pending<'a>) -> Result<(), Stop> {
        loop {
            let answer = calls::attempt(&mut self.world, pending.call, &mut pending.attempt)?;
            let Answer::Blocks(until) = answer else {
                return self.returned(&pending, answer);
            };
            let next = self.world.timeout().into_iter().chain(until).min();
            let Some(next) = next.filter(|next| *next <= pending.attempt.started + PATIENCE * 20) else {
                self.line = pending.line;
                return Err(Stop::Departs {
                    expected: format!("{}() to return {}", pending.call.name, pending.call.result),
                    seen: "it waiting for ever".to_owned(),
                });
            };
            self.world.step(next).map_err(Stop::Unsupported)?;
        }
    }

    /// Compares what a call returned with what the script says.
    fn returned(&mut self, pending: &Pending<'a>, answer: Answer) -> Result<(), Stop> {
        let call = pending.call;
        let departs = |expected, seen| Err(Stop::Departs { expected, seen });
        let (value, error) = match answer {
            Answer::Value(value) => (value, None),
            Answer::Error(error) => (-1, Some(error)),
            Answer::Blocks(_) => return Ok(()),
        };
        let wanted = match &call.result {
            crate::language::Expression::Ellipsis => None,
            result => Some(symbols::number(result).map_err(Stop::Unsupported)?),
        };
        let same_error = match (&call.errno, error) {
            (Some(wanted), Some(error)) => wanted == error,
            (Some(_), None) => false,
            (None, _) => true,
        };
        if wanted.is_some_and(|wanted| wanted != value) || !same_error {
            self.line = pending.line;
            let errno = call
                .errno
                .as_deref()
                .map(|name| format!(" {name}"))
                .unwrap_or_default();
            let found = error.map(|name| format!(" {name}")).unwrap_or_default();
            return departs(
                format!("{}() = {}{errno}", call.name, call.result),
                format!("{value}{found}"),
            );
        }
        if call.end.is_some() {
            let now = self.world.now;
            let off = (now - pending.end) + (pending.end - now);
            if off > pending.tolerance {
                self.line = pending.line;
                return departs(
                    format!("{}() to return at {}", call.name, seconds(pending.end)),
                    format!("it returning at {}", seconds(now)),
                );
            }
        }
        Ok(())
    }
}

fn seconds(at: Instant) -> String {
    if at == Instant::MAX {
        return "any time".to_owned();
    }
    format!("{:.6}s", (at - START).as_secs_f64())
}
