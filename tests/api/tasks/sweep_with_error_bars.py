import longfat as lf

base = {"path": lf.Path(rate="10Mbit/s", delay="10ms", queue="50pkt"), "duration": "3s"}
over = {"protocol": ["reno", "cubic", "bbr", "vegas", "westwood"]}
over["path.loss"] = ["0.01%", "0.03%", "0.1%", "0.3%", "1%", "3%"]
lf.sweep(base, over, seeds=20).chart("goodput").save("picture.html")
