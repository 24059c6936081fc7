//! Applications with several requests in progress at once: web pages, and requests on several streams.
//!
//! A protocol with streams carries each request and its response on a stream of their own. Over a single byte stream, the server
//! answers in the order of the requests, as HTTP/2 does at equal urgency (RFC 9218, section 4.2), so a lost packet delays all
//! responses behind it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use foundation::Instant;

use crate::application::{Progress, Stream};
use crate::outcome::Transaction;
use crate::workload::Exchanges;

/// The exchanges of the requests in their order, which the content of each request names. Simulated bytes have no content.
type Requests = Arc<Mutex<Vec<u32>>>;

/// A request without its complete response.
#[derive(Debug)]
struct Pending {
    group: usize,
    awaited: u64,
    requested_at: Instant,
}

/// Sends requests when the exchanges before them are complete.
#[derive(Debug)]
pub struct ParallelClient {
    exchanges: Arc<[Exchanges]>,
    requests: Requests,
    /// The exchanges that follow each.
    followers: Vec<Vec<usize>>,
    /// Incomplete responses of each in its round, and further rounds.
    left: Vec<(u32, u32)>,
    /// Exchanges that wait for their pause, by time.
    due: BTreeMap<Instant, Vec<usize>>,
    /// By number of the request.
    pending: BTreeMap<u32, Pending>,
    sent: u32,
    /// Requests of the flow that are not sent.
    unsent: u64,
}

impl ParallelClient {
    /// Sends the first requests.
    pub(crate) fn start(&mut self, now: Instant, machine: &mut impl Stream) {
        for (index, exchanges) in self.exchanges.iter().enumerate() {
            if exchanges.after.is_none() {
                self.due.entry(now + exchanges.pause).or_default().push(index);
            }
        }
        self.send_due(now, machine);
    }

    /// Returns when the next requests are due.
    pub(crate) fn timeout(&self) -> Instant {
        self.due.first_key_value().map_or(Instant::MAX, |(&at, _)| at)
    }

    /// Sends the requests that are due.
    pub(crate) fn send_due(&mut self, now: Instant, machine: &mut impl Stream) {
        while let Some(due) = self.due.first_entry().filter(|entry| *entry.key() <= now) {
            for group in due.remove() {
                self.send(now, group, machine);
            }
        }
    }

    fn send(&mut self, now: Instant, group: usize, machine: &mut impl Stream) {
        let Exchanges {
            request,
            response,
            count,
            ..
        } = self.exchanges[group];
        for _ in 0..count {
            let number = self.sent;
            self.sent += 1;
            self.unsent -= 1;
            lock(&self.requests).push(group as u32);
            let pending = Pending {
                group,
                awaited: response,
                requested_at: now,
            };
            self.pending.insert(number, pending);
            machine.send_message(now, number, request);
        }
        if self.unsent == 0 {
            machine.finish(now);
        }
    }

    /// Reads bytes of a single byte stream: responses in the order of their requests.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        mut bytes: u64,
        machine: &mut impl Stream,
        progress: &mut Progress,
    ) {
        while bytes > 0
            && let Some((&first, pending)) = self.pending.first_key_value()
        {
            let part = bytes.min(pending.awaited);
            bytes -= part;
            self.read_message(now, first, part, machine, progress);
        }
    }

    /// Reads bytes of the response to request `number`.
    pub(crate) fn read_message(
        &mut self,
        now: Instant,
        number: u32,
        bytes: u64,
        machine: &mut impl Stream,
        progress: &mut Progress,
    ) {
        let Some(pending) = self.pending.get_mut(&number) else {
            return;
        };
        pending.awaited = pending.awaited.saturating_sub(bytes);
        if pending.awaited > 0 {
            return;
        }
        let (group, requested_at) = (pending.group, pending.requested_at);
        self.pending.remove(&number);
        progress.records_mut().transactions.push(Transaction {
            requested_at,
            responded_at: now,
            on_wire: None,
        });
        let (responses, rounds) = &mut self.left[group];
        *responses -= 1;
        if *responses > 0 {
            return;
        }
        if *rounds > 0 {
            let exchanges = &self.exchanges[group];
            (*responses, *rounds) = (exchanges.count, *rounds - 1);
            self.due.entry(now + exchanges.think).or_default().push(group);
        } else {
            for &next in &self.followers[group] {
                let at = now + self.exchanges[next].pause;
                self.due.entry(at).or_default().push(next);
            }
        }
        self.send_due(now, machine);
    }
}

/// Answers requests.
#[derive(Debug)]
pub struct ParallelServer {
    exchanges: Arc<[Exchanges]>,
    requests: Requests,
    /// Bytes read of each request that is not complete.
    partial: BTreeMap<u32, u64>,
    /// The next request of a single byte stream.
    next: u32,
    /// Responses that the server works on, by the time at which they are complete.
    due: BTreeMap<Instant, Vec<(u32, u64)>>,
    /// When the last response of a single byte stream is complete: the next one follows it.
    ready: Instant,
    /// Whether the client sends no more requests.
    is_last: bool,
}

impl ParallelServer {
    /// Returns when the next response is complete.
    pub(crate) fn timeout(&self) -> Instant {
        self.due.first_key_value().map_or(Instant::MAX, |(&at, _)| at)
    }

    /// Sends the responses that are complete.
    pub(crate) fn send_due(&mut self, now: Instant, machine: &mut impl Stream) {
        while let Some(due) = self.due.first_entry().filter(|entry| *entry.key() <= now) {
            for (number, response) in due.remove() {
                machine.send_message(now, number, response);
            }
            self.finish_if_done(now, machine);
        }
    }

    /// Ends the stream after the last response: the client has ended its own.
    pub(crate) fn peer_finished(&mut self, now: Instant, machine: &mut impl Stream) {
        self.is_last = true;
        self.finish_if_done(now, machine);
    }

    fn finish_if_done(&self, now: Instant, machine: &mut impl Stream) {
        if self.is_last && self.due.is_empty() {
            machine.finish(now);
        }
    }

    /// Reads bytes of a single byte stream.
    pub(crate) fn read(&mut self, now: Instant, mut bytes: u64, machine: &mut impl Stream) {
        while bytes > 0
            && let Some(exchanges) = self.exchanges_of(self.next)
        {
            let number = self.next;
            let before = self.partial.get(&number).copied().unwrap_or(0);
            let part = bytes.min(exchanges.request - before);
            bytes -= part;
            self.next += u32::from(before + part == exchanges.request);
            self.take(now, number, part, true);
        }
        self.send_due(now, machine);
    }

    /// Reads bytes of request `number`.
    pub(crate) fn read_message(&mut self, now: Instant, number: u32, bytes: u64, machine: &mut impl Stream) {
        self.take(now, number, bytes, false);
        self.send_due(now, machine);
    }

    fn take(&mut self, now: Instant, number: u32, bytes: u64, in_order: bool) {
        let Some(exchanges) = self.exchanges_of(number) else {
            return;
        };
        let read = self.partial.entry(number).or_default();
        *read += bytes;
        if *read >= exchanges.request {
            self.partial.remove(&number);
            let mut at = now + exchanges.work;
            if in_order {
                at = at.max(self.ready);
                self.ready = at;
            }
            self.due.entry(at).or_default().push((number, exchanges.response));
        }
    }

    fn exchanges_of(&self, number: u32) -> Option<Exchanges> {
        let group = lock(&self.requests).get(number as usize).copied()?;
        Some(self.exchanges[group as usize])
    }
}

fn lock(requests: &Requests) -> std::sync::MutexGuard<'_, Vec<u32>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns both ends of a flow with these exchanges.
pub(crate) fn ends(exchanges: Vec<Exchanges>) -> (ParallelClient, ParallelServer) {
    let mut followers = vec![Vec::new(); exchanges.len()];
    for (index, one) in exchanges.iter().enumerate() {
        if let Some(before) = one.after {
            followers[before].push(index);
        }
    }
    let exchanges: Arc<[Exchanges]> = exchanges.into();
    let requests = Requests::default();
    let client = ParallelClient {
        requests: Arc::clone(&requests),
        followers,
        left: exchanges.iter().map(|one| (one.count, one.rounds - 1)).collect(),
        due: BTreeMap::new(),
        pending: BTreeMap::new(),
        sent: 0,
        unsent: exchanges
            .iter()
            .map(|one| u64::from(one.count) * u64::from(one.rounds))
            .sum(),
        exchanges: Arc::clone(&exchanges),
    };
    let server = ParallelServer {
        exchanges,
        requests,
        partial: BTreeMap::new(),
        next: 0,
        due: BTreeMap::new(),
        ready: Instant::ZERO,
        is_last: false,
    };
    (client, server)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use foundation::Duration;

    use super::*;

    /// Messages sent, in order, and whether the stream has ended.
    #[derive(Debug, Default)]
    struct Sent {
        messages: VecDeque<(u32, u64)>,
        finished: bool,
    }

    impl Stream for Sent {
        fn write(&mut self, _: Instant, _: u64) {
            unreachable!("messages only");
        }

        fn finish(&mut self, _: Instant) {
            self.finished = true;
        }

        fn send_message(&mut self, _: Instant, number: u32, bytes: u64) {
            self.messages.push_back((number, bytes));
        }
    }

    fn exchanges(response: u64, count: u32, after: Option<usize>, pause: u64) -> Exchanges {
        Exchanges {
            request: 100,
            response,
            count,
            rounds: 1,
            think: Duration::ZERO,
            after,
            pause: Duration::from_millis(pause),
            work: Duration::ZERO,
        }
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// A page of 30 kB, two scripts after it, and an image that the scripts request 5 ms later.
    fn page() -> (ParallelClient, ParallelServer) {
        ends(vec![
            exchanges(30_000, 1, None, 0),
            exchanges(2000, 2, Some(0), 0),
            exchanges(7000, 1, Some(1), 5),
        ])
    }

    #[test]
    fn objects_follow_the_groups_that_they_depend_on() {
        let (mut client, mut server) = page();
        let (mut sent, mut answers, mut progress) = (Sent::default(), Sent::default(), Progress::default());
        client.start(ms(0), &mut sent);
        assert_eq!(sent.messages, [(0, 100)]);
        server.read_message(ms(10), 0, 99, &mut answers);
        assert!(answers.messages.is_empty(), "the request is incomplete");
        server.read_message(ms(10), 0, 1, &mut answers);
        assert_eq!(answers.messages, [(0, 30_000)]);
        client.read_message(ms(20), 0, 29_999, &mut sent, &mut progress);
        assert_eq!(sent.messages.len(), 1);
        client.read_message(ms(21), 0, 1, &mut sent, &mut progress);
        assert_eq!(sent.messages, [(0, 100), (1, 100), (2, 100)]);
        // Streams are independent: the second script arrives first.
        server.read_message(ms(30), 2, 100, &mut answers);
        server.read_message(ms(31), 1, 100, &mut answers);
        assert_eq!(answers.messages, [(0, 30_000), (2, 2000), (1, 2000)]);
        client.read_message(ms(40), 2, 2000, &mut sent, &mut progress);
        client.read_message(ms(41), 1, 2000, &mut sent, &mut progress);
        assert_eq!((client.timeout(), sent.finished), (ms(46), false));
        client.send_due(ms(46), &mut sent);
        assert_eq!(sent.messages.back(), Some(&(3, 100)));
        assert!(sent.finished, "no request follows");
        server.read_message(ms(50), 3, 100, &mut answers);
        assert_eq!(answers.messages.back(), Some(&(3, 7000)));
        client.read_message(ms(60), 3, 7000, &mut sent, &mut progress);
        let times = progress.records_mut().transactions.iter();
        let times: Vec<u64> = times.map(|one| one.time().as_nanos() / 1_000_000).collect();
        assert_eq!(times, [21, 19, 20, 14]);
    }

    #[test]
    fn rounds_follow_each_other_after_the_time_to_think() {
        let two = Exchanges {
            rounds: 2,
            think: Duration::from_millis(3),
            ..exchanges(500, 1, None, 0)
        };
        let (mut client, _) = ends(vec![two; 2]);
        let (mut sent, mut progress) = (Sent::default(), Progress::default());
        client.start(ms(0), &mut sent);
        assert_eq!(sent.messages, [(0, 100), (1, 100)]);
        client.read_message(ms(10), 1, 500, &mut sent, &mut progress);
        assert_eq!((client.timeout(), sent.messages.len()), (ms(13), 2));
        client.send_due(ms(13), &mut sent);
        client.read_message(ms(14), 0, 500, &mut sent, &mut progress);
        client.send_due(ms(17), &mut sent);
        assert_eq!(sent.messages, [(0, 100), (1, 100), (2, 100), (3, 100)]);
        assert!(sent.finished, "each stream has had both rounds");
        for number in [2, 3] {
            client.read_message(ms(20), number, 500, &mut sent, &mut progress);
        }
        assert_eq!(
            (client.timeout(), progress.records_mut().transactions.len()),
            (Instant::MAX, 4)
        );
    }

    #[test]
    fn responses_follow_the_work_of_the_server() {
        let working = |millis| Exchanges {
            work: Duration::from_millis(millis),
            ..exchanges(500, 1, None, 0)
        };
        // Streams are independent, and a single byte stream has the responses in order.
        for (in_order, expected) in [(false, [(1, 500), (0, 500)]), (true, [(0, 500), (1, 500)])] {
            let (mut client, mut server) = ends(vec![working(20), working(5)]);
            let (mut sent, mut answers) = (Sent::default(), Sent::default());
            client.start(ms(0), &mut sent);
            if in_order {
                server.read(ms(10), 200, &mut answers);
            } else {
                server.read_message(ms(10), 0, 100, &mut answers);
                server.read_message(ms(10), 1, 100, &mut answers);
            }
            assert!(answers.messages.is_empty());
            assert_eq!(server.timeout(), ms(if in_order { 30 } else { 15 }));
            server.peer_finished(ms(11), &mut answers);
            server.send_due(ms(29), &mut answers);
            assert_eq!(answers.messages.len(), usize::from(!in_order));
            assert!(!answers.finished, "a response is due");
            server.send_due(ms(30), &mut answers);
            assert_eq!(answers.messages, expected);
            assert!(answers.finished);
            assert_eq!(server.timeout(), Instant::MAX);
        }
    }

    #[test]
    fn single_byte_stream_has_requests_and_responses_in_order() {
        let (mut client, mut server) = page();
        let (mut sent, mut answers, mut progress) = (Sent::default(), Sent::default(), Progress::default());
        client.start(ms(0), &mut sent);
        server.read(ms(10), 100, &mut answers);
        client.read(ms(20), 30_000, &mut sent, &mut progress);
        // Both requests, and the second one in parts.
        server.read(ms(30), 150, &mut answers);
        assert_eq!(answers.messages, [(0, 30_000), (1, 2000)]);
        server.read(ms(31), 50, &mut answers);
        assert_eq!(answers.messages.back(), Some(&(2, 2000)));
        client.read(ms(40), 3999, &mut sent, &mut progress);
        assert_eq!(progress.records_mut().transactions.len(), 2);
        client.read(ms(41), 1, &mut sent, &mut progress);
        assert_eq!(
            (progress.records_mut().transactions.len(), client.timeout()),
            (3, ms(46))
        );
    }
}
