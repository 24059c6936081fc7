// Scenarios of docs/performance.md in htsim (csg-htsim): `driver A|B|C|M|N SECONDS [SEED]`.
//
// Prints one line of JSON: data packets sent (with retransmissions), goodput, mean FCT (C only), and user CPU seconds of
// set-up and run. benchmarks/compare_htsim.py compiles and starts it.
//
// - A: dumbbell, 10 bulk flows, bottleneck of 100 Mbit/s.
// - B: dumbbell, 10 bulk flows, bottleneck of 10 Gbit/s, windows of at most 4 MB.
// - C: 1000 flows/s of 100 kB over one link of 1 Gbit/s.
// - M: 10 MPTCP connections of two subflows with LIA over two bottlenecks, with access links.
// - N: M with the bottlenecks only.

#include <sys/resource.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "eventlist.h"
#include "mtcp.h"
#include "pipe.h"
#include "queue.h"
#include "route.h"
#include "tcp.h"

// Macros of mtcp.h.
#undef A
#undef B

namespace {

constexpr int kFlows = 10;
constexpr double kPayload = 1448;  // bytes per packet of 1500 bytes
constexpr uint32_t kUnlimited = 0xffffffff;
constexpr uint32_t kWindow = 6 << 20;  // bytes; receive window of longfat's scenarios A and C

EventList& events() { return EventList::getTheEventList(); }

double user_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
}

// One direction of a link: drop-tail queue and propagation delay.
struct Direction {
    Queue queue;
    Pipe pipe;

    Direction(double gigabits, double delay_ms, int packets)
        : queue(speedFromGbps(gigabits), memFromPkt(packets), events(), nullptr),
          pipe(timeFromMs(delay_ms), events()) {}

    void extend(Route& route) {
        route.push_back(&queue);
        route.push_back(&pipe);
    }
};

// Link with the same rate, delay and queue in both directions.
struct Link {
    Direction there;
    Direction back;

    Link(double gigabits, double delay_ms, int packets)
        : there(gigabits, delay_ms, packets), back(gigabits, delay_ms, packets) {}
};

// Routes over the links in both directions, without the ends.
struct Path {
    Route there;
    Route back;

    explicit Path(const std::vector<Link*>& links) {
        for (auto link = links.begin(); link != links.end(); ++link) (*link)->there.extend(there);
        for (auto link = links.rbegin(); link != links.rend(); ++link) (*link)->back.extend(back);
    }
};

// TCP sender whose SYN has a timestamp.
class Source : public TcpSrc {
public:
    explicit Source(uint32_t window) : TcpSrc(nullptr, nullptr, events()) {
        set_ssthresh(kUnlimited);
        _maxcwnd = window;
    }

    void doNextEvent() override {
        if (!_established) {
            // htsim sets no timestamp in SYNs, and its first RTT sample is the time since then. The SYN takes the packet
            // that was freed last.
            static PacketFlow unused(nullptr);
            TcpPacket* packet = TcpPacket::newpkt(unused, *_route, 0, 0);
            packet->set_ts(eventlist().now());
            packet->free();
        }
        TcpSrc::doNextEvent();
    }

    uint64_t packets() const { return _packets_sent / _mss; }
};

// Retransmission timers of the flows that are open. htsim's own scanner keeps flows forever.
class Scanner : public EventSource {
public:
    Scanner() : EventSource(events(), "scanner") { eventlist().sourceIsPendingRel(*this, kPeriod); }

    void doNextEvent() override {
        for (TcpSrc* source : _sources) source->rtx_timer_hook(eventlist().now(), kPeriod);
        eventlist().sourceIsPendingRel(*this, kPeriod);
    }

    void add(TcpSrc& source) { _sources.push_back(&source); }

    // Replaces the source at `index` by the last one.
    void remove(size_t index) {
        _sources[index] = _sources.back();
        _sources.pop_back();
    }

private:
    static constexpr simtime_picosec kPeriod = 10'000'000'000;  // 10 ms, as in htsim's examples
    std::vector<TcpSrc*> _sources;
};

// Flow without an end.
struct Bulk {
    Source source;
    TcpSink sink;
    Route there;
    Route back;

    Bulk(const Path& path, uint32_t window)
        : source(window), there(path.there, sink), back(path.back, source) {}

    void start(Scanner& scanner, double milliseconds) {
        source.connect(there, back, sink, timeFromMs(milliseconds));
        scanner.add(source);
    }
};

// Sums over flows.
struct Totals {
    uint64_t sent = 0;
    uint64_t received = 0;  // packets in order
    uint64_t completed = 0;
    double completion_ms = 0;

    void add(const Source& source, const TcpSink& sink) {
        sent += source.packets();
        // Number 1 is the SYN.
        if (sink._cumulative_ack > 0) received += (sink._cumulative_ack - 1) / source._mss;
    }
};

class Arrivals;

// Sender of one transfer.
class TransferSource : public Source {
public:
    TransferSource(Arrivals& arrivals, uint64_t packets)
        : Source(kWindow), _arrivals(arrivals), _last(packets * _mss + 1) {
        _flow_size = packets * _mss - 1;
    }

    void receivePacket(Packet& packet) override;
    void doNextEvent() override {
        if (_last_acked < _last) Source::doNextEvent();
    }

    uint64_t last() const { return _last; }

    size_t index = 0;

private:
    Arrivals& _arrivals;
    uint64_t _last;  // acknowledgement of the whole transfer
};

// Receiver of one transfer.
class TransferSink : public TcpSink {
public:
    TransferSink(Totals& totals, uint64_t last) : _totals(totals), _last(last), _opened(events().now()) {}

    void receivePacket(Packet& packet) override {
        TcpSink::receivePacket(packet);
        if (!_complete && _cumulative_ack >= _last) {
            _complete = true;
            ++_totals.completed;
            _totals.completion_ms += timeAsMs(events().now() - _opened);
        }
    }

private:
    Totals& _totals;
    uint64_t _last;
    simtime_picosec _opened;
    bool _complete = false;
};

struct Transfer {
    TransferSource source;
    TransferSink sink;
    Route there;
    Route back;

    Transfer(Arrivals& arrivals, Totals& totals, const Path& path, uint64_t packets)
        : source(arrivals, packets),
          sink(totals, source.last()),
          there(path.there, sink),
          back(path.back, source) {}
};

// Poisson arrivals of transfers over one path.
class Arrivals : public EventSource {
public:
    Arrivals(const Path& path, double rate, uint64_t packets, Scanner& scanner, uint64_t seed)
        : EventSource(events(), "arrivals"),
          _path(path),
          _interval(rate),
          _packets(packets),
          _scanner(scanner),
          _random(seed) {
        schedule();
    }

    void doNextEvent() override {
        const simtime_picosec now = eventlist().now();
        while (!_finished.empty() && _finished.front().first + kLinger < now) _finished.pop_front();
        _open.push_back(std::make_unique<Transfer>(*this, totals, _path, _packets));
        Transfer& transfer = *_open.back();
        transfer.source.index = _open.size() - 1;
        transfer.source.connect(transfer.there, transfer.back, transfer.sink, now);
        _scanner.add(transfer.source);
        schedule();
    }

    // Moves a transfer to those that wait until the network holds none of their packets.
    void finish(TransferSource& source) {
        const size_t index = source.index;
        totals.add(source, _open[index]->sink);
        _finished.emplace_back(eventlist().now(), std::move(_open[index]));
        _open[index] = std::move(_open.back());
        _open.pop_back();
        _scanner.remove(index);
        if (index < _open.size()) _open[index]->source.index = index;
    }

    void add_open_transfers() {
        for (const auto& transfer : _open) totals.add(transfer->source, transfer->sink);
    }

    Totals totals;

private:
    // More than the largest RTT, which is 44 ms.
    static constexpr simtime_picosec kLinger = 100'000'000'000;

    void schedule() { eventlist().sourceIsPendingRel(*this, timeFromSec(_interval(_random))); }

    const Path& _path;
    std::exponential_distribution<double> _interval;
    uint64_t _packets;
    Scanner& _scanner;
    std::mt19937_64 _random;
    std::vector<std::unique_ptr<Transfer>> _open;  // in the order of the scanner
    std::deque<std::pair<simtime_picosec, std::unique_ptr<Transfer>>> _finished;
};

void TransferSource::receivePacket(Packet& packet) {
    if (_last_acked >= _last) {
        packet.free();
        return;
    }
    TcpSrc::receivePacket(packet);
    if (_last_acked >= _last) _arrivals.finish(*this);
}

// MPTCP connection over several paths, coupled by LIA.
struct Connection {
    MultipathTcpSrc source{COUPLED_INC, events(), nullptr};
    MultipathTcpSink sink{events()};
    std::deque<Bulk> subflows;

    Connection() { source.connect(&sink); }

    void add(const Path& path) {
        subflows.emplace_back(path, kWindow);
        source.addSubflow(&subflows.back().source);
        sink.addSubflow(&subflows.back().sink);
    }
};

void report(const std::string& name, double seconds, const Totals& totals, double setup, double run) {
    std::printf("{\"scenario\": \"%s\", \"packets\": %llu, \"goodput_mbps\": %.2f, ", name.c_str(),
                static_cast<unsigned long long>(totals.sent),
                static_cast<double>(totals.received) * kPayload * 8 / seconds / 1e6);
    if (totals.completed > 0) {
        std::printf("\"fct_ms\": %.2f, ", totals.completion_ms / static_cast<double>(totals.completed));
    } else {
        std::printf("\"fct_ms\": null, ");
    }
    std::printf("\"setup_s\": %.6f, \"run_s\": %.6f}\n", setup, run);
}

// Runs to the end, and returns the user CPU seconds before and after.
std::pair<double, double> simulate() {
    const double before = user_seconds();
    while (EventList::doNextEvent()) {
    }
    return {before, user_seconds() - before};
}

void bulk(const std::string& name, double seconds, uint64_t seed) {
    const bool fast = name == "B";
    const double access_rate = fast ? 40 : 1;
    const int access_queue = fast ? 10'000 : 1000;
    Scanner scanner;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> starts(0, fast ? 10 : 100);
    Link bottleneck(fast ? 10 : 0.1, 10, fast ? 10'000 : 100);
    std::deque<Link> links;
    std::deque<Bulk> flows;
    for (int i = 0; i < kFlows; ++i) {
        Link& access = links.emplace_back(access_rate, 1, access_queue);
        Link& exit = links.emplace_back(access_rate, 1, access_queue);
        const Path path({&access, &bottleneck, &exit});
        flows.emplace_back(path, fast ? 4'000'000 : kWindow).start(scanner, starts(random));
    }
    const auto [setup, run] = simulate();
    Totals totals;
    for (const Bulk& flow : flows) totals.add(flow.source, flow.sink);
    report(name, seconds, totals, setup, run);
}

void arrivals(const std::string& name, double seconds, uint64_t seed) {
    Scanner scanner;
    Link link(1, 10, 1000);
    const Path path({&link});
    Arrivals arrivals(path, 1000, static_cast<uint64_t>(std::ceil(100'000 / kPayload)), scanner, seed);
    const auto [setup, run] = simulate();
    arrivals.add_open_transfers();
    report(name, seconds, arrivals.totals, setup, run);
}

void multipath(const std::string& name, double seconds, uint64_t seed) {
    const bool with_access = name == "M";
    Scanner scanner;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> starts(0, 100);
    std::deque<Link> bottlenecks;
    for (int i = 0; i < 2; ++i) bottlenecks.emplace_back(0.1, with_access ? 10 : 12, 100);
    std::deque<Link> links;
    std::deque<Connection> connections;
    for (int i = 0; i < kFlows; ++i) {
        Connection& connection = connections.emplace_back();
        const double start = starts(random);
        for (Link& bottleneck : bottlenecks) {
            std::vector<Link*> way{&bottleneck};
            if (with_access) {
                way = {&links.emplace_back(1, 1, 1000), &bottleneck, &links.emplace_back(1, 1, 1000)};
            }
            connection.add(Path(way));
            connection.subflows.back().start(scanner, start);
        }
    }
    const auto [setup, run] = simulate();
    Totals totals;
    for (const Connection& connection : connections) {
        for (const Bulk& subflow : connection.subflows) totals.add(subflow.source, subflow.sink);
    }
    report(name, seconds, totals, setup, run);
}

}  // namespace

int main(int count, char** values) {
    const std::string name = count > 1 ? values[1] : "";
    const double seconds = count > 2 ? std::atof(values[2]) : 0;
    const uint64_t seed = count > 3 ? std::strtoull(values[3], nullptr, 10) : 1;
    if (count > 4 || name.size() != 1 || std::string("ABCMN").find(name) == std::string::npos || !(seconds > 0)) {
        std::fprintf(stderr, "usage: driver A|B|C|M|N SECONDS [SEED]\n");
        return 2;
    }
    // htsim prints timeouts and finished flows.
    std::cout.setstate(std::ios::failbit);
    EventList::setEndtime(timeFromSec(seconds));
    if (name == "C") {
        arrivals(name, seconds, seed);
    } else if (name == "M" || name == "N") {
        multipath(name, seconds, seed);
    } else {
        bulk(name, seconds, seed);
    }
}
