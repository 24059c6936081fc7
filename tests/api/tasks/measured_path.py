import longfat as lf

found = lf.path("127.0.0.1", time="2s", sizes=range(100, 1401, 100))
trace = lf.trace("bbr", found.to_path(), "1MB", interval="1ms")
trace.chart("window").save("picture.html")
