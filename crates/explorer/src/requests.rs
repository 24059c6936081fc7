//! Requests and replies.

use base64::prelude::{BASE64_STANDARD, Engine};
use experiment::Side;
use experiment::spec::TrialSpec;
use experiment::trace::{Decision, Series, TraceDetail, TraceEvent, TraceEventKind};
use foundation::{Duration, Size};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulation::session::Session;
use simulation::trace::Crossings;
use simulation::trace::recorder::StartedFlow;

use crate::shape::NetworkShape;

/// Number of the format of requests and replies. It increases with each change that a page of another version cannot read.
const INTERFACE: &str = include_str!("interface.txt");

/// Limit of the events of one step. A step with more stops early, and `now_s` shows it.
const MOST_EVENTS: usize = 200_000;

/// Longest step and interval.
const LONGEST_S: f64 = 3600.0;

/// Bytes of each packet in a capture: all headers.
const CAPTURED_BYTES: u32 = 160;

/// Shortest step: the resolution of the clock.
const SHORTEST_STEP_S: f64 = 1e-9;

/// Shortest interval of samples.
const SHORTEST_INTERVAL_S: f64 = 1e-6;

/// The end of each flow whose packets a capture contains.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Captured {
    /// As tcpdump on the sender: lost packets are in the capture, so that analysis shows the losses.
    #[default]
    Sender,
    /// As tcpdump on the receiver: lost packets are gaps.
    Receiver,
    /// Each delivered packet twice, on two interfaces.
    Both,
}

impl Captured {
    /// Returns the end, or `None` for both.
    fn end(self) -> Option<Side> {
        match self {
            Self::Sender => Some(Side::Sender),
            Self::Receiver => Some(Side::Receiver),
            Self::Both => None,
        }
    }
}

/// An event that ends a step.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stop {
    /// A dropped packet.
    Drop,
    /// An expired retransmission timer.
    Timeout,
    /// A retransmission.
    Retransmission,
}

impl Stop {
    fn matches(self, event: &TraceEvent) -> bool {
        match self {
            Self::Drop => event.what == TraceEventKind::Drop,
            Self::Timeout => event.what == TraceEventKind::Timeout,
            Self::Retransmission => event.what == TraceEventKind::Send && event.retransmission,
        }
    }
}

/// A request of a page. Times are in seconds.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
enum Request {
    /// Replies with the versions of longfat and of this interface.
    Version,
    /// Starts a trial with a sample of machines and queues every `interval`; replies with its number.
    Open { spec: Value, interval: f64 },
    /// Advances a trial by `step`, or until 1 ms after the first event of a kind.
    Advance {
        session: usize,
        step: f64,
        #[serde(default)]
        detail: TraceDetail,
        #[serde(default)]
        until: Option<Stop>,
        /// Whether the reply contains the way of each packet over the links.
        #[serde(default)]
        links: bool,
    },
    /// Changes one key of a link.
    Link {
        session: usize,
        link: String,
        key: String,
        value: Value,
    },
    /// Changes one key of the protocol of a group, for all of its flows. Group 0 has the measured flows, then follows the traffic.
    Protocol {
        session: usize,
        #[serde(default)]
        group: u32,
        key: String,
        value: Value,
    },
    /// Replies with the latest packets as a capture file in base64.
    Capture {
        session: usize,
        #[serde(default)]
        side: Captured,
    },
    /// Requests the loss of a packet on the path.
    Lose { session: usize, id: u64 },
    /// Requests the loss of the next packet of a flow: of data, or of those to the sender.
    LoseNext {
        session: usize,
        flow: u32,
        #[serde(default)]
        reverse: bool,
    },
    /// Starts a flow of a group between a pair of its hosts and replies with its number. Without `size`, that of the workload
    /// applies.
    StartFlow {
        session: usize,
        #[serde(default)]
        group: u32,
        #[serde(default)]
        pair: u32,
        #[serde(default)]
        size: Option<Size>,
    },
    /// Stops a flow.
    StopFlow { session: usize, flow: u32 },
    /// Ends a trial and replies with its record.
    Finish { session: usize },
    /// Runs a whole trial and replies with its record.
    Run { spec: Value },
}

/// A new session.
#[derive(Serialize)]
struct Opened {
    session: usize,
    #[serde(flatten)]
    network: NetworkShape,
}

/// One step of a session.
#[derive(Serialize)]
struct Step {
    now_s: f64,
    over: bool,
    events: Vec<TraceEvent>,
    series: Series,
    #[serde(skip_serializing_if = "Option::is_none")]
    crossings: Option<Crossings>,
    decisions: Vec<Decision>,
    /// The flows that started.
    started: Vec<StartedFlow>,
}

/// Open sessions by number.
#[derive(Default)]
pub struct Sessions(Vec<Option<Session>>);

impl Sessions {
    /// Handles a request in JSON. The reply is `{"ok": ...}`, or `{"error": "..."}` with one line for each mistake.
    pub fn reply(&mut self, request: &[u8]) -> String {
        let found = serde_json::from_slice(request).map_err(|error| error.to_string());
        let found = found.and_then(|request| self.handle(request));
        let reply = match found {
            Ok(value) => serde_json::json!({ "ok": value }),
            Err(message) => serde_json::json!({ "error": message }),
        };
        reply.to_string()
    }

    fn handle(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Version => {
                let interface: u32 = INTERFACE.trim().parse().map_err(text)?;
                Ok(serde_json::json!({ "longfat": env!("CARGO_PKG_VERSION"), "interface": interface }))
            }
            Request::Open { spec, interval } => self.open(&spec, interval),
            Request::Advance {
                session,
                step,
                detail,
                until,
                links,
            } => {
                let step = seconds("step", step, SHORTEST_STEP_S)?;
                let session = self.session(session)?;
                session.set_detail(detail);
                session.record_crossings(links);
                let mut count = 0;
                let (events, series) = session.advance_until(step, |events| {
                    count += events.len();
                    count >= MOST_EVENTS
                        || until.is_some_and(|stop| events.iter().any(|event| stop.matches(event)))
                });
                if let Some(fault) = session.fault() {
                    return Err(fault);
                }
                value(&Step {
                    now_s: session.now().as_secs_f64(),
                    over: session.is_over(),
                    events,
                    series,
                    crossings: session.take_crossings(),
                    decisions: session.take_decisions(),
                    started: session.take_started(),
                })
            }
            Request::Link {
                session,
                link,
                key,
                value,
            } => {
                let session = self.session(session)?;
                session.change_link(&link, &key, &value).map_err(text)?;
                Ok(Value::Null)
            }
            Request::Protocol {
                session,
                group,
                key,
                value,
            } => {
                let session = self.session(session)?;
                session.set_protocol(group, &key, &value).map_err(text)?;
                Ok(Value::Null)
            }
            Request::Capture { session, side } => {
                let file = self
                    .session(session)?
                    .capture(side.end(), CAPTURED_BYTES)
                    .map_err(text)?;
                Ok(BASE64_STANDARD.encode(file).into())
            }
            Request::Lose { session, id } => {
                self.session(session)?.lose(id).map_err(text)?;
                Ok(Value::Null)
            }
            Request::LoseNext {
                session,
                flow,
                reverse,
            } => {
                let to = if reverse { Side::Sender } else { Side::Receiver };
                self.session(session)?.lose_next(flow, to).map_err(text)?;
                Ok(Value::Null)
            }
            Request::StartFlow {
                session,
                group,
                pair,
                size,
            } => {
                let (session, size) = (self.session(session)?, size.map(Size::bytes));
                let flow = session.start_flow(group, pair, size).map_err(text)?;
                Ok(flow.into())
            }
            Request::StopFlow { session, flow } => {
                self.session(session)?.stop_flow(flow).map_err(text)?;
                Ok(Value::Null)
            }
            Request::Finish { session } => {
                let ended = self.0.get_mut(session).and_then(Option::take);
                value(&ended.ok_or("no such session")?.finish())
            }
            Request::Run { spec } => {
                let spec = TrialSpec::from_json(&spec.to_string()).map_err(text)?;
                value(&simulation::trial::run(&spec, None).map_err(text)?)
            }
        }
    }

    fn open(&mut self, spec: &Value, interval: f64) -> Result<Value, String> {
        let spec = TrialSpec::from_json(&spec.to_string()).map_err(text)?;
        let mut session =
            Session::new(&spec, seconds("interval", interval, SHORTEST_INTERVAL_S)?).map_err(text)?;
        session.record_decisions();
        let network = NetworkShape::of(&session);
        let number = self.0.iter().position(Option::is_none).unwrap_or(self.0.len());
        if number == self.0.len() {
            self.0.push(None);
        }
        self.0[number] = Some(session);
        value(&Opened {
            session: number,
            network,
        })
    }

    fn session(&mut self, number: usize) -> Result<&mut Session, String> {
        let session = self.0.get_mut(number).and_then(Option::as_mut);
        session.ok_or_else(|| "no such session".into())
    }
}

fn seconds(name: &str, value: f64, shortest: f64) -> Result<Duration, String> {
    if (shortest..=LONGEST_S).contains(&value) {
        Ok(Duration::from_secs_f64(value))
    } else {
        Err(format!(
            "{name}: {value} s is out of range: {shortest:e} s to {LONGEST_S} s"
        ))
    }
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

fn value(content: &impl Serialize) -> Result<Value, String> {
    serde_json::to_value(content).map_err(text)
}
