//! The event loop: advances time, acts, and compares.

use foundation::{Duration, Instant};
use transport::mptcp::keys::Keys;
use transport::tcp::Flags;

use super::calls::{self, Answer, Attempt, Stop, mismatch};
use super::expect;
use super::info;
use super::multipath::{self, Addresses};
use super::outcome::{Mismatch, Outcome, Report};
use super::segment::{Mapping, describe_spec};
use super::settings::HostSettings;
use super::symbols;
use super::world::{START, World};
use crate::interpreter::{Failure, Interpreter};
use crate::language::{
    Action, Call, Direction, Event, Icmp, PacketSpec, Payload, Route, TcpSpec, Time, parse,
};

/// How long to look for an expected packet after its time, so that a mismatch can report when it was sent.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Parses and runs a script. `interpreter` evaluates its code snippets.
#[must_use]
pub fn run(text: &str, interpreter: &mut dyn Interpreter) -> Report {
    let mut printed = Vec::new();
    let outcome = execute(text, interpreter, &mut printed);
    Report {
        outcome: outcome.err().unwrap_or(Outcome::Pass),
        printed,
    }
}

fn execute(text: &str, interpreter: &mut dyn Interpreter, printed: &mut Vec<String>) -> Result<(), Outcome> {
    let script = parse(text)?;
    if script.events.is_empty() {
        let message = "the script has no events".to_owned();
        return Err(Outcome::Invalid { line: 1, message });
    }
    let mut settings = HostSettings::default();
    for &(ref name, ref value, line) in &script.options {
        let set = settings.option(name, value.as_deref());
        set.map_err(|what| Outcome::Unsupported { line, what })?;
    }
    // ICMPv6 implies IPv6.
    let is_ipv6 = script.events.iter().any(|event| match &event.action {
        Action::Packet(packet) => {
            matches!(&packet.payload, Payload::Icmp(message) if message.kind == "packet_too_big")
        }
        _ => false,
    });
    if is_ipv6 {
        settings.use_ipv6();
    }
    let mut runner = Runner {
        world: World::new(settings),
        interpreter,
        printed,
        pending: None,
        last: None,
        line: 1,
    };
    let ran = runner.all(&script.setup, &script.events);
    let line = runner.line;
    ran.map_err(|stop| match stop {
        Stop::Unsupported(what) => Outcome::Unsupported { line, what },
        Stop::Mismatch { expected, seen } => Outcome::Fail(Mismatch {
            line,
            expected,
            seen,
            at: Instant::ZERO + runner.world.elapsed(),
        }),
    })
}

/// A blocked call.
struct Pending<'a> {
    call: &'a Call,
    line: u32,
    attempt: Attempt,
    /// When it should return.
    end: Instant,
    tolerance: Duration,
    /// When it times out by itself.
    until: Option<Instant>,
}

struct Runner<'a> {
    world: World,
    interpreter: &'a mut dyn Interpreter,
    printed: &'a mut Vec<String>,
    pending: Option<Pending<'a>>,
    /// The scheduled time of the last event, and whether that was an inbound packet.
    last: Option<(Instant, bool)>,
    line: u32,
}

/// The scheduled time of an event with its tolerance.
#[derive(Clone, Copy)]
struct EventTime {
    from: Instant,
    to: Instant,
    tolerance: Duration,
    any: bool,
}

impl<'a> Runner<'a> {
    fn all(&mut self, setup: &Option<(String, u32)>, events: &'a [Event]) -> Result<(), Stop> {
        if let Some((commands, line)) = setup {
            self.line = *line;
            self.world.command(commands)?;
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
        self.world.apply_peer_updates();
        let inbound =
            matches!(&event.action, Action::Packet(packet) if packet.direction == Direction::Inbound);
        let when = self.when(event.time, inbound);
        let outbound = matches!(&event.action, Action::Packet(packet) if packet.outbound());
        if !outbound {
            self.until(when)?;
        }
        let at = match &event.action {
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
                self.world.command(command)?;
                when.from
            }
            Action::Code(code) => {
                self.code(code)?;
                when.from
            }
        };
        self.retry()?;
        self.last = Some((at, inbound));
        Ok(())
    }

    /// Converts a time. Relative times count from now; those of consecutive inbound packets count from each other.
    fn when(&self, time: Time, inbound: bool) -> EventTime {
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
        EventTime {
            from,
            to,
            tolerance: settings.tolerance.max(part),
            any,
        }
    }

    /// Advances time to an event of the script.
    fn until(&mut self, when: EventTime) -> Result<(), Stop> {
        if self.world.now > when.from + when.tolerance {
            let expected = format!("the event at {}", seconds(when.from));
            return mismatch(expected, format!("a later time: {}", seconds(self.world.now)));
        }
        self.advance(when.from)
    }

    /// Advances time and retries the blocked call meanwhile.
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
            self.world.step(next)?;
            self.retry()?;
            if next == to && self.world.timeout().is_none_or(|due| due > to) {
                return Ok(());
            }
        }
    }

    fn inbound(&mut self, packet: &PacketSpec) -> Result<(), Stop> {
        match &packet.payload {
            Payload::Tcp(spec) => self.world.arrive(packet, spec).map_err(Stop::Unsupported),
            Payload::Icmp(message) => self.icmp(message),
        }
    }

    fn icmp(&mut self, message: &Icmp) -> Result<(), Stop> {
        let now = self.world.now;
        // The machine counts the headers of IPv4.
        let longer = self.world.settings.headers() - 40;
        let too_big = matches!(
            (message.kind.as_str(), message.code.as_deref()),
            ("unreachable", Some("frag_needed")) | ("packet_too_big", _)
        );
        match (too_big, message.mtu, self.world.connection()) {
            (true, Some(mtu), Some(tested)) => {
                let mtu = mtu.saturating_sub(longer);
                tested.path_mtu(now, mtu);
                let known = self.world.path_mtu.unwrap_or(u32::MAX);
                self.world.path_mtu = Some(mtu.min(known));
                Ok(())
            }
            (false, _, Some(tested)) if message.kind == "unreachable" => {
                let error = match message.code.as_deref() {
                    Some("net_unreachable") => "ENETUNREACH",
                    Some("host_unreachable") | None => "EHOSTUNREACH",
                    Some("port_unreachable") => "ECONNREFUSED",
                    Some("protocol_unreachable") => "ENOPROTOOPT",
                    Some(code) => return Err(Stop::Unsupported(format!("ICMP unreachable {code}"))),
                };
                tested.unreachable(message.quoted, error);
                Ok(())
            }
            _ => {
                let code = message.code.as_deref().unwrap_or("");
                Err(Stop::Unsupported(format!("ICMP {} {code}", message.kind)))
            }
        }
    }

    fn outbound(&mut self, packet: &PacketSpec, when: EventTime) -> Result<(), Stop> {
        let Payload::Tcp(spec) = &packet.payload else {
            return Err(Stop::Unsupported("outbound ICMP".to_owned()));
        };
        let expected = || {
            let time = match (when.any, when.from == when.to) {
                (true, _) => String::new(),
                (false, true) => format!(" at {}", seconds(when.from)),
                (false, false) => format!(" from {} to {}", seconds(when.from), seconds(when.to)),
            };
            format!("{}{time}", describe_spec(spec, packet.ecn))
        };
        let deadline = when.to.min(self.world.now + TIMEOUT) + when.tolerance + TIMEOUT;
        let found = loop {
            match self.head(packet, spec) {
                Some(found) => break found,
                None => {
                    let next = self.world.timeout().filter(|next| *next <= deadline);
                    let Some(next) = next else {
                        return mismatch(expected(), self.waiting(packet));
                    };
                    self.advance(next)?;
                }
            }
        };
        if let Some(seen) = self.difference(&found, packet, spec) {
            return mismatch(expected(), format!("{seen}, sent at {}", seconds(found.at)));
        }
        let early = found.at + when.tolerance < when.from;
        let late = found.at > when.to + when.tolerance;
        if !when.any && (early || late) {
            return mismatch(expected(), format!("the packet at {}", seconds(found.at)));
        }
        Ok(())
    }

    /// Returns how a sent packet differs from the expected one.
    fn difference(&mut self, found: &expect::Packet, packet: &PacketSpec, spec: &TcpSpec) -> Option<String> {
        let since_start = self.world.elapsed();
        let flow = self.flow(packet);
        let World {
            settings,
            names,
            connections,
            ..
        } = &mut self.world;
        let mut stamps = expect::Stamps {
            settings,
            since_start,
            presence_only: false,
        };
        let mut strays = Mapping::default();
        let mut none = (Addresses::default(), Keys::default());
        let (mapping, addresses, keys, ends) = match flow {
            Some((index, flow)) => {
                let tested = &mut connections[index];
                let multipath = tested.machine.multipath();
                stamps.presence_only = multipath.is_some();
                none.1 = multipath.map_or(none.1, |connection| connection.keys());
                let flow = &mut tested.flows[flow];
                flow.is_shown = true;
                if spec.flags.contains(Flags::SYN) {
                    // The script chooses its number for the initial sequence number.
                    flow.mapping.name_initial(spec.sequence);
                }
                (&mut flow.mapping, &tested.addresses, none.1, Some(flow.ends))
            }
            None => (&mut strays, &none.0, none.1, None),
        };
        let what = expect::mismatch(found, spec, packet.ecn, mapping, stamps).or_else(|| {
            let expected = spec.options.as_deref()?;
            let options = (&found.option, &found.signal);
            multipath::mismatch(options, expected, names, addresses, (keys, ends.as_ref()))
        })?;
        let options = multipath::spec_of(&found.option, &found.signal, addresses);
        Some(format!("{} ({what})", mapping.describe(&found.segment, options)))
    }

    /// Returns the connection and the flow of an expected packet; `None` before any connection.
    fn flow(&mut self, packet: &PacketSpec) -> Option<(usize, usize)> {
        let index = self.world.current?;
        let Route { source, destination } = &packet.route;
        let is_syn = match &packet.payload {
            Payload::Tcp(spec) => spec.flags.contains(Flags::SYN),
            Payload::Icmp(_) => false,
        };
        let flow = self
            .world
            .flow(index, source.as_ref(), destination.as_ref(), !is_syn)?;
        Some((index, flow))
    }

    fn head(&mut self, packet: &PacketSpec, spec: &TcpSpec) -> Option<expect::Packet> {
        let settings = self.world.settings.clone();
        if self.world.current.is_none() {
            return expect::take(&mut self.world.strays, spec.length, &settings);
        }
        let (index, flow) = self.flow(packet)?;
        let sent = &mut self.world.connections[index].flows[flow].sent;
        expect::take(sent, spec.length, &settings)
    }

    /// Describes the pending segments when nothing more will be sent.
    fn waiting(&mut self, packet: &PacketSpec) -> String {
        let Some((index, flow)) = self.flow(packet) else {
            return "nothing".to_owned();
        };
        let tested = &self.world.connections[index];
        let flow = &tested.flows[flow];
        match flow.sent.front() {
            Some(sent) => {
                let options = multipath::spec_of(&sent.option, &sent.signal, &tested.addresses);
                let text = flow.mapping.describe(&sent.segment, options);
                format!("only {text}, sent at {}", seconds(sent.at))
            }
            None => "nothing".to_owned(),
        }
    }

    fn code(&mut self, code: &str) -> Result<(), Stop> {
        let tested = self.world.current.map(|index| &self.world.connections[index]);
        let values = info::values(tested, self.world.now);
        let evaluation = self.interpreter.run(code, &values);
        self.printed.extend(evaluation.printed);
        match evaluation.failure {
            None => Ok(()),
            Some(Failure::Unsupported(what)) => Err(Stop::Unsupported(what)),
            Some(Failure::Assertion { expected, seen }) => mismatch(expected, seen),
        }
    }

    fn call(&mut self, call: &'a Call, event: &Event, when: EventTime) -> Result<(), Stop> {
        // At most one call blocks in the background; nonblocking calls may overtake it.
        if let Some(pending) = self.pending.take_if(|_| call.end.is_some()) {
            self.finish(pending)?;
        }
        let mut attempt = Attempt {
            started: self.world.now,
            progress: 0,
            opened: false,
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

    /// Retries the blocked call after something happened.
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

    /// Advances time until a call returns.
    fn finish(&mut self, mut pending: Pending<'a>) -> Result<(), Stop> {
        loop {
            let answer = calls::attempt(&mut self.world, pending.call, &mut pending.attempt)?;
            let Answer::Blocks(until) = answer else {
                return self.returned(&pending, answer);
            };
            let next = self.world.timeout().into_iter().chain(until).min();
            let Some(next) = next.filter(|next| *next <= pending.attempt.started + TIMEOUT * 20) else {
                self.line = pending.line;
                let expected = format!("{}() to return {}", pending.call.name, pending.call.result);
                return mismatch(expected, "no return");
            };
            self.world.step(next)?;
        }
    }

    /// Compares the result of a call with the script's expectation.
    fn returned(&mut self, pending: &Pending<'a>, answer: Answer) -> Result<(), Stop> {
        let call = pending.call;
        let (value, error) = match answer {
            Answer::Value(value) => (value, None),
            Answer::Error(error) => (-1, Some(error)),
            Answer::Blocks(_) => return Ok(()),
        };
        let wanted = match &call.result {
            crate::language::Expression::Ellipsis => None,
            result => Some(symbols::number(result)?),
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
            return mismatch(
                format!("{}() = {}{errno}", call.name, call.result),
                format!("{value}{found}"),
            );
        }
        if call.end.is_some() {
            let now = self.world.now;
            let off = (now - pending.end) + (pending.end - now);
            if off > pending.tolerance {
                self.line = pending.line;
                return mismatch(
                    format!("{}() to return at {}", call.name, seconds(pending.end)),
                    format!("a return at {}", seconds(now)),
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
