import longfat as lf

link = lf.Path(rate="20Mbit/s", delay="5ms", queue="100pkt")
lot = lf.Topology("parking-lot", hops=2, bottleneck=link)
flows = lf.Workload("arrivals", sizes="web-search", arrivals="20/s", duration="10s")
rival = lf.Traffic("cross", "cubic", {"kind": "bulk", "rate": "5Mbit/s"})
base = {"topology": lot, "workload": flows, "traffic": [rival]}
runs = lf.sweep(base, {"protocol": ["cubic", "bbr"]}, seeds=3)
print(runs.table("fct_p50", "fct_p95", "fct_p99"))
runs.flows_chart().save("picture.html")
