# SPDX-License-Identifier: GPL-2.0-only
"""Clients of the stream socket, for stream.sh: each prints one line, and fails loudly."""
import json
import os
import random
import socket
import sys
import time

SOCKET = "/run/scx_fulcrum/stream"


class Client:
    def __init__(self, request):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(SOCKET)
        self.file = self.socket.makefile()
        self.socket.sendall((json.dumps(request) + "\n").encode())

    def next(self):
        return json.loads(self.file.readline())


def group(shares):
    """The cgroups /fulcrum-a and /fulcrum-b, 1:3, with busy tasks: what they got and are owed."""
    client = Client({"subscribe": "figures", "hz": 0.5, "sections": ["groups", "waits", "cpus", "tasks"]})
    assert client.next()["subscribed"] == "figures"
    client.next()
    frame = client.next()
    found = {g["path"]: g for g in frame["groups"]}
    for path, owed in (("/fulcrum-a", 25), ("/fulcrum-b", 75)):
        g = found[path]
        assert abs(g["owed_pct"] - owed) < 3, g
        assert abs(g["got_pct"] - owed) < 3, g
        assert g["waits"] and g["wait_p99_us"] >= g["wait_p50_us"] > 0, g
    assert frame["totals"]["busy_pct"] > 90, frame["totals"]
    assert all(c["busy_pct"] > 85 for c in frame["cpus"] if c["online"]), frame["cpus"]
    assert frame["waits"]["queue"] and frame["waits"]["wakeup"], frame["waits"]
    hogs = [t for t in frame["tasks"] if t["group"] == found["/fulcrum-b"]["id"]]
    assert {t["state"] for t in hogs} <= {"running", "queued"} and len(hogs) >= 2, hogs
    # What a sleeper is owed stays within what it could get on waking: debt and credit.
    lags = [t["lag_us"] for t in frame["tasks"] if t["state"] == "blocked"]
    assert lags and -20_200 <= min(lags) and max(lags) <= 1.01 * frame["scheduler"]["credit_us"], (min(lags), max(lags))
    a, b = found["/fulcrum-a"], found["/fulcrum-b"]
    return (
        f"1:3 got {a['got_pct']:.1f}/{b['got_pct']:.1f} %, owed {a['owed_pct']:.1f}/{b['owed_pct']:.1f} %,"
        f" wait p99 {a['wait_p99_us']:.0f}/{b['wait_p99_us']:.0f} us"
    )


def crowd(_):
    """A hundred readers at once; some never read."""
    clients = [Client({"subscribe": "figures", "hz": 5}) for _ in range(100)]
    lost = 0
    for number, client in enumerate(clients):
        assert client.next()["subscribed"] == "figures"
        if number % 10:
            for _ in range(3):
                lost = max(lost, client.next()["health"]["dropped_frames"])
    time.sleep(3)
    for client in clients[::10]:
        while True:
            frame = client.next()
            if frame["health"]["dropped_frames"]:
                lost = max(lost, frame["health"]["dropped_frames"])
                break
    assert lost
    return f"100 readers; the slow ones lost up to {lost} frames and were told"


def garbage(seconds):
    """Anything at all, to both sockets."""
    until, sent = time.time() + float(seconds), 0
    while time.time() < until:
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(1)
        s.connect(random.choice([SOCKET, "/run/scx_fulcrum/control"]))
        try:
            for _ in range(random.randrange(5)):
                text = random.choice([b'{"subscribe":"figures"}', b'{"ask":"frame"}', os.urandom(99)])
                s.sendall(text[: random.randrange(len(text) + 1)] + random.choice([b"", b"\n"]))
                sent += 1
            if random.random() < 0.3:
                s.recv(1 << 16)
        except OSError:
            pass
        s.close()
    frame = Client({"ask": "frame"}).next()
    assert frame["health"]["lifecycle_errors"] == 0, frame["health"]
    return f"{sent} requests, most of them nonsense"


def idle(seconds):
    """How often the agent wakes when nobody listens, by the kernel's count."""
    pid = json.load(open("/run/scx_fulcrum/state.json"))["run"]["pid"]

    def switches():
        status = open(f"/proc/{pid}/status").read()
        return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)

    before = switches()
    time.sleep(float(seconds))
    woken = switches() - before
    assert woken <= 1, woken
    return f"woken {woken} times in {seconds} s"


print(globals()[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else None))
