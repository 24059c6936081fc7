"""CPU time of ns-3 and longfat on the same network, if ns-3's wheel is installed (`pip install ns3`).

Scenario A of docs/performance.md: ten bulk flows over a dumbbell with a bottleneck of 100 Mbit/s. Each run is
a separate process; the two simulators alternate.
"""

from __future__ import annotations

import importlib.util
import resource
import statistics
import subprocess
import sys

SECONDS = 20
PAIRS = 10


def run_ns3() -> tuple[float, float]:
    """Returns CPU seconds of the simulation and goodput in Mbit/s."""
    from ns import ns

    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.StringValue("ns3::TcpNewReno"))
    ns.Config.SetDefault("ns3::TcpSocket::SegmentSize", ns.UintegerValue(1448))
    ns.Config.SetDefault("ns3::TcpSocket::SndBufSize", ns.UintegerValue(4_000_000))
    ns.Config.SetDefault("ns3::TcpSocket::RcvBufSize", ns.UintegerValue(4_000_000))
    left, right = ns.NodeContainer(), ns.NodeContainer()
    for side in (left, right):
        side.Create(PAIRS + 1)
    stack = ns.InternetStackHelper()
    stack.InstallAll()
    addresses = ns.Ipv4AddressHelper()

    def join(near: object, far: object, number: int, rate: str, delay: str, queue: str) -> object:
        helper = ns.PointToPointHelper()
        helper.SetDeviceAttribute("DataRate", ns.StringValue(rate))
        helper.SetChannelAttribute("Delay", ns.StringValue(delay))
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue(queue))
        nodes = ns.NodeContainer()
        nodes.Add(near)
        nodes.Add(far)
        devices = helper.Install(nodes)
        base = ns.Ipv4Address(f"10.{number // 256}.{number % 256}.0")
        addresses.SetBase(base, ns.Ipv4Mask("255.255.255.0"))
        assigned = addresses.Assign(devices)
        ns.TrafficControlHelper().Uninstall(devices)
        return assigned

    join(left.Get(0), right.Get(0), 1, "100Mbps", "10ms", "100p")
    sinks = []
    for pair in range(1, PAIRS + 1):
        join(left.Get(pair), left.Get(0), 2 * pair, "1Gbps", "1ms", "1000p")
        exits = join(right.Get(pair), right.Get(0), 2 * pair + 1, "1Gbps", "1ms", "1000p")
        target = ns.InetSocketAddress(exits.GetAddress(0), 5000).ConvertTo()
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", target).Install(left.Get(pair))
        source.Start(ns.MilliSeconds(10 * pair))
        sinks.append(ns.PacketSinkHelper("ns3::TcpSocketFactory", target).Install(right.Get(pair)))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    ns.Simulator.Stop(ns.Seconds(SECONDS))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    ns.Simulator.Run()
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    received = sum(sink.Get(0).GetObject[ns.PacketSink]().GetTotalRx() for sink in sinks)
    ns.Simulator.Destroy()
    return used, received * 8 / SECONDS / 1e6


def run_longfat() -> tuple[float, float]:
    """Returns CPU seconds of the simulation and goodput in Mbit/s."""
    import longfat as lf

    arguments = {
        "topology": {
            "kind": "dumbbell",
            "pairs": PAIRS,
            "bottleneck": {"rate": "100Mbit/s", "delay": "10ms", "queue": "100pkt"},
            "access": {"rate": "1Gbit/s", "delay": "1ms"},
            "exit": {"rate": "1Gbit/s", "delay": "1ms"},
        },
        "protocol": {"kind": "tcp", "congestion": "reno", "profile": "ns3"},
        "workload": {"kind": "bulk", "duration": f"{SECONDS}s", "start_jitter": "100ms"},
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    trial = lf.simulate(**arguments)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - before
    return used, trial.metrics["goodput_bps"] / 1e6


def main() -> None:
    """Prints the medians of three alternating rounds."""
    if len(sys.argv) > 1:
        used, goodput = run_ns3() if sys.argv[1] == "ns-3" else run_longfat()
        print(f"result {used} {goodput}")
        return
    if importlib.util.find_spec("ns") is None:
        print("ns-3 is not installed: pip install ns3")
        return
    results: dict[str, list[tuple[float, float]]] = {"ns-3": [], "longfat": []}
    for _ in range(3):
        for name, rounds in results.items():
            done = subprocess.run(
                [sys.executable, __file__, name], capture_output=True, text=True, check=True
            )
            used, goodput = done.stdout.rpartition("result ")[2].split()
            rounds.append((float(used), float(goodput)))
    medians = {name: statistics.median(used for used, _ in rounds) for name, rounds in results.items()}
    for name, rounds in results.items():
        print(f"{name:8} {medians[name]:8.3f} s of user CPU time for {SECONDS} s, {rounds[0][1]:.1f} Mbit/s")
    print(f"ns-3 takes {medians['ns-3'] / medians['longfat']:.0f} times the CPU time of longfat")


if __name__ == "__main__":
    main()
