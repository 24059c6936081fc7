import longfat as lf

path = lf.Path(rate="10Mbit/s", delay="10ms", queue="50pkt")
traces = lf.trace(["cubic", "bbr"], path, duration="10s")
traces.chart("window", "rtt").save("picture.html")
