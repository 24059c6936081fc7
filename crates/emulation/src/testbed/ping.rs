//! Echo requests between all hosts (RFC 792), over the kernel's ICMP datagram sockets (`icmp(7)`).

use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use experiment::censored::Censored;
use foundation::icmp::{self, Echo};
use network::{HostId, LinkId, Topology};
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;
use socket2::{Domain, Protocol, Socket, Type};

use crate::emulation::Emulation;

/// Request size in bytes with IP and ICMP headers, as of `ping`.
const SIZE: u64 = 84;
const HEADERS: u64 = 28;
/// The smallest gap between two requests of one pair of hosts.
const INTERVAL: Duration = Duration::from_millis(100);
/// The smallest gap between any two requests.
const GAP: Duration = Duration::from_micros(500);
/// Limit on the time for all requests; it reduces their number if necessary.
const LONGEST: Duration = Duration::from_secs(60);
/// Timeout of a reply: twice the expected RTT plus this.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Expected values from the links' configuration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// RTT in seconds: delays and transmission times.
    pub rtt_s: f64,
    /// Share of requests without a reply, 0 to 1.
    pub loss: f64,
}

/// The requests from one host to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ping {
    /// The sender.
    pub from: String,
    /// The destination.
    pub to: String,
    /// Requests sent.
    pub sent: u32,
    /// Replies received.
    pub answered: u32,
    /// The minimum RTT in seconds; null without a reply.
    pub min_s: Option<f64>,
    /// The median RTT in seconds; requests without a reply count as slower than all others: null if it falls among them.
    pub median_s: Option<f64>,
    /// Expected values; null without a path in both directions.
    pub expected: Option<Expected>,
}

/// One pair of hosts.
struct Pair {
    from: HostId,
    to: HostId,
    expected: Option<Expected>,
    /// Send time and reply time of each request.
    sent: Vec<(Instant, Option<Instant>)>,
}

/// Returns an empty list once `stopped` returns true.
pub(super) fn all(
    emulation: &Emulation,
    topology: &Topology,
    count: u32,
    stopped: &mut dyn FnMut() -> bool,
) -> io::Result<Vec<Ping>> {
    let hosts = || (0..emulation.hosts() as u32).map(HostId);
    let ends = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
    let mut pairs: Vec<Pair> = ends
        .filter(|(from, to)| from != to)
        .map(|(from, to)| Pair {
            from,
            to,
            expected: expected(topology, from, to),
            sent: Vec::new(),
        })
        .collect();
    let pingers = hosts()
        .map(|host| emulation.in_host(host, pinger))
        .collect::<io::Result<Vec<_>>>()?;
    let (interval, count) = pace(topology, pairs.len(), count);
    socket::wait::sharpen_timers();
    let begun = Instant::now();
    for number in 0..count {
        for place in 0..pairs.len() {
            let due = begun + interval * number + interval * place as u32 / pairs.len() as u32;
            receive_until(&pingers, &mut pairs, due, false, stopped)?;
            if stopped() {
                return Ok(Vec::new());
            }
            send(emulation, &pingers, &mut pairs[place])?;
        }
    }
    let longest = pairs.iter().filter_map(|pair| pair.expected);
    let longest = longest.map(|expected| expected.rtt_s).fold(0.0, f64::max);
    let deadline = Instant::now() + Duration::from_secs_f64(2.0 * longest) + TIMEOUT;
    receive_until(&pingers, &mut pairs, deadline, true, stopped)?;
    Ok(pairs.into_iter().map(|pair| pair.into_report(topology)).collect())
}

/// Returns the gap between two requests of a pair and their number. Requests use at most half of the slowest link.
fn pace(topology: &Topology, pairs: usize, count: u32) -> (Duration, u32) {
    let rates = topology
        .links()
        .iter()
        .filter_map(|link| link.spec.capacity.mean_rate());
    let slowest = rates.map(|rate| rate.time_for(SIZE)).max();
    let gap = GAP.max(slowest.map_or(Duration::ZERO, |time| Duration::from_nanos(2 * time.as_nanos())));
    let interval = INTERVAL.max(gap * pairs.max(1) as u32);
    let most = (LONGEST.as_nanos() / interval.as_nanos()).clamp(1, 1000) as u32;
    (interval, count.clamp(1, most))
}

fn expected(topology: &Topology, from: HostId, to: HostId) -> Option<Expected> {
    let mut way = topology.links_between(from, to)?;
    way.extend(topology.links_between(to, from)?);
    let specs = || {
        way.iter()
            .map(|&LinkId(link)| &topology.links()[link as usize].spec)
    };
    let sending = |link: &network::LinkSpec| {
        let rate = link.capacity.mean_rate();
        rate.map_or(0.0, |rate| rate.time_for(SIZE).as_secs_f64())
    };
    let kept = |link: &network::LinkSpec| 1.0 - link.loss.as_ref().map_or(0.0, network::LossConfig::mean);
    Some(Expected {
        rtt_s: specs().map(|link| link.delay.as_secs_f64() + sending(link)).sum(),
        loss: 1.0 - specs().map(kept).product::<f64>(),
    })
}

fn pinger() -> io::Result<Socket> {
    let pinger = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::ICMPV4))?;
    pinger.set_nonblocking(true)?;
    Ok(pinger)
}

/// The kernel sets the identifier; the payload has the destination's number.
fn send(emulation: &Emulation, pingers: &[Socket], pair: &mut Pair) -> io::Result<()> {
    let mut request = vec![0; (SIZE - HEADERS) as usize + icmp::HEADER];
    Echo::request(true, 0, pair.sent.len() as u16).write(&mut request);
    request[icmp::HEADER..icmp::HEADER + 4].copy_from_slice(&pair.to.0.to_be_bytes());
    let to = SocketAddr::from((emulation.host_address(pair.to), 0));
    pair.sent.push((Instant::now(), None));
    let sent = pingers[pair.from.0 as usize].send_to(&request, &to.into());
    match sent.map_err(|error| error.kind()) {
        // An error about an earlier request is reported here; this request is then lost.
        Ok(_) | Err(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::WouldBlock) => {
            Ok(())
        }
        Err(kind) => Err(kind.into()),
    }
}

/// Receives replies until a time; with `early`, only until all have arrived.
fn receive_until(
    pingers: &[Socket],
    pairs: &mut [Pair],
    until: Instant,
    early: bool,
    stopped: &mut dyn FnMut() -> bool,
) -> io::Result<()> {
    let hosts = pingers.len();
    let mut buffer = [0; 256];
    while !early || pairs.iter().any(Pair::waits) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stopped() {
            break;
        }
        let mut ready: Vec<PollFd<'_>> = pingers
            .iter()
            .map(|one| PollFd::new(one, PollFlags::IN))
            .collect();
        socket::wait::wait_any(&mut ready, left.min(INTERVAL).into());
        let now = Instant::now();
        for (from, pinger) in pingers
            .iter()
            .enumerate()
            .filter(|&(from, _)| !ready[from].revents().is_empty())
        {
            // An error of the socket is not a reply.
            while let Ok(length) = (&*pinger).read(&mut buffer) {
                if let Some((to, number)) = answer(&buffer[..length])
                    && let Some(pair) = pairs.get_mut(from * (hosts - 1) + to - usize::from(to > from))
                    && let Some((_, answered)) = pair.sent.get_mut(number)
                {
                    answered.get_or_insert(now);
                }
            }
        }
    }
    Ok(())
}

/// Returns the replying host and the request's number.
fn answer(reply: &[u8]) -> Option<(usize, usize)> {
    let echo = Echo::read(true, reply).filter(|echo| echo.is_reply)?;
    let to = u32::from_be_bytes(*reply[icmp::HEADER..].first_chunk()?);
    Some((to as usize, echo.sequence.into()))
}

impl Pair {
    fn waits(&self) -> bool {
        self.sent.iter().any(|(_, answered)| answered.is_none())
    }

    fn into_report(self, topology: &Topology) -> Ping {
        let trip = |&(sent, answered): &(Instant, Option<Instant>)| Some((answered? - sent).as_secs_f64());
        let trips: Vec<f64> = self.sent.iter().filter_map(trip).collect();
        let answered = trips.len() as u32;
        let trips = Censored::new(trips, self.sent.len() as u64 - u64::from(answered));
        let name = |host: HostId| topology.hosts()[host.0 as usize].clone();
        Ping {
            from: name(self.from),
            to: name(self.to),
            sent: self.sent.len() as u32,
            answered,
            min_s: trips.minimum(),
            median_s: trips.quantile(0.5),
            expected: self.expected,
        }
    }
}
