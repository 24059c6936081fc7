import longfat as lf

found = lf.path("127.0.0.1", time="2s", sizes=range(100, 1401, 100))
base = {"path": found.to_path(), "size": "1MB"}
lf.sweep(base, {"protocol": ["cubic", "bbr"]}, seeds=3).chart("completion").save("picture.html")
