#!/usr/bin/env bash
# In a VM, as root: loads scx_fulcrum and prints what the verifier counted for its programs.
set -euo pipefail

scx_fulcrum >/tmp/agent.log 2>&1 &
agent=$!
for ((tries = 0; tries < 600; tries++)); do
	[[ $(cat /sys/kernel/sched_ext/state) != enabled ]] || break
	kill -0 "$agent" 2>/dev/null || break
	sleep 0.1
done
fulcrum-work bench verifier || {
	tail -n 5 /tmp/agent.log >&2
	exit 1
}
kill "$agent"
wait "$agent"
