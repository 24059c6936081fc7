import longfat as lf


class Aimd(lf.CongestionController):
    def on_acknowledged(self, ack: lf.Acknowledgement) -> None:
        self.window += self.segment * ack.bytes / self.window

    def on_lost(self, loss: lf.Loss) -> None:
        self.window = max(self.window / 2, 2 * self.segment)

    def on_timeout(self, now: float, in_flight: int) -> None:
        self.window = self.segment


path = lf.Path(rate="10Mbit/s", delay="10ms", queue="50pkt")
lf.trace([Aimd, "bbr"], path, duration="5s").chart("window", "goodput").save("picture.html")
