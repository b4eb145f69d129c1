# SPDX-License-Identifier: GPL-2.0-only
"""Runs in the guest, for scripts/trees: each tree under both schedulers; prints a Markdown table."""

import json
import os
import signal
import subprocess
import sys
import time

STATE = "/sys/kernel/sched_ext/state"
FILES = "tests/workloads/trees"
SECONDS = "3"

# Name, what `fulcrum-work groups` is told; all on one CPU.
ON_ONE_CPU = [
    ("nested", "a:100:0 a/x:100:1 a/y:300:2 b:200:0 b/z:100:1 b/w:50:3"),
    ("uneven", "a:100:1 b:100:10 c:300:2"),
    ("changing", "a:100:1 b:300:2 --change a:900"),
    ("idle sibling", "a:100:1 b:1000:0 c:300:1"),
]
# Name, file, what is right (CPUs).
BY_FILE = [
    ("`cpu.idle`", "cpu-idle", [3 / 1027, 1024 / 1027]),
    ("infeasible, 2 CPUs", "infeasible", [1.0, 1.0]),
]


def work(*arguments):
    done = subprocess.run(["fulcrum-work", "--json", *arguments], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"fulcrum-work {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def shown(values):
    return " ".join(f"{value:.4f}" for value in values)


def groups(text):
    """Ideal shares, and those that the groups got."""
    arguments = []
    for word in text.split():
        before = arguments[-1:] == ["--change"]
        arguments += [word] if before or word.startswith("--") else ["--group", word]
    report = work("groups", "--seconds", SECONDS, *arguments)
    rows = [row for row in report["groups"] if row["hogs"]]
    got = shown(row["share"] for row in rows)
    if report.get("settled_ms") is not None:
        got += f", the new weight after {report['settled_ms']:.0f} ms"
    return shown(row["ideal"] for row in rows), got


def by_file(name, right):
    report = work("run", f"{FILES}/{name}.json")
    return shown(right), shown(group["share"] for group in report["groups"])


def all_trees():
    """(name, what it is, ideal, got) of each."""
    for name, text in ON_ONE_CPU:
        yield name, f"`{text}`", *groups(text)
    for name, file, right in BY_FILE:
        yield name, f"`{FILES}/{file}.json`", *by_file(file, right)


def state():
    with open(STATE, encoding="ascii") as file:
        return file.read().strip()


def under_fulcrum():
    with open("/tmp/agent.log", "wb") as log:
        agent = subprocess.Popen(["scx_fulcrum"], stdout=log, stderr=log)
    for _ in range(600):
        if state() == "enabled":
            break
        time.sleep(0.1)
    else:
        sys.exit("scx_fulcrum is not attached after 60 s: " + open("/tmp/agent.log", encoding="utf-8").read())
    rows = list(all_trees())
    agent.send_signal(signal.SIGTERM)
    if agent.wait(timeout=60) != 0:
        sys.exit(f"scx_fulcrum ended with {agent.returncode}")
    return rows


def main():
    plain = list(all_trees())
    ours = under_fulcrum()
    print(f"kernel {os.uname().release}, {SECONDS} s each\n")
    print("| tree | groups: weight, hogs | ideal | EEVDF | scx_fulcrum |")
    print("| --- | --- | --- | --- | --- |")
    for (name, what, ideal, eevdf), (*_, got) in zip(plain, ours):
        print(f"| {name} | {what} | {ideal} | {eevdf} | {got} |")


main()
