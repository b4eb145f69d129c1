#!/usr/bin/env bash
# In the VM with the metronome, as root: runs workload files under scx_fulcrum and keeps what each reports, and how late
# real-time sleepers are there. scripts/calibrate starts it.
#
# usage: calibrate-guest.sh DIR SEEDS FILE...     writes DIR/vm-SEED-NAME.json, DIR/floor-CPUS.json, DIR/kernel
set -euo pipefail
SCX=/sys/kernel/sched_ext
LOG=$(mktemp)
AGENT=''

attached() { [[ $(cat "$SCX/root/ops" 2>/dev/null) == fulcrum* && $(cat "$SCX/state") == enabled ]]; }

die() {
	echo "calibrate-guest: $*" >&2
	cat "$LOG" >&2
	exit 1
}

start_fulcrum() {
	local tries
	scx_fulcrum 2>"$LOG" &
	AGENT=$!
	for ((tries = 0; tries < 300; tries++)); do
		! attached || return 0
		kill -0 "$AGENT" 2>/dev/null || break
		sleep 0.1
	done
	die "scx_fulcrum is not attached"
}

# How late sleepers that no normal task can delay are, beside as many busy tasks as CPUs.
floor() {
	local rate=$1 hogs busy
	printf -v busy '%*s' "$(nproc)" ''
	busy=${busy// /0,}
	fulcrum-work hogs --nice "${busy%,}" --seconds 5 >/dev/null &
	hogs=$!
	sleep 1
	chrt -f 50 fulcrum-work sleepers --json --rounds-per-us "$rate" --tasks 2 --work-us 100 --seconds 3
	wait "$hogs"
}

main() {
	local dir=$1 seeds=$2 rate file seed name
	shift 2
	uname -r >"$dir/kernel"
	# The same work a microsecond for all, measured before anything else runs.
	rate=$(fulcrum-work calibrate)
	fulcrum-work metronome >/dev/null
	start_fulcrum
	floor "$rate" >"$dir/floor-$(nproc).json"
	for seed in $seeds; do
		for file; do
			name=$(basename "$file" .json)
			timeout 120 fulcrum-work run --json --rounds-per-us "$rate" --seed "$seed" "$file" >"$dir/vm-$seed-$name.json"
			attached || die "$name: scx_fulcrum is no longer attached"
			echo "  $name, seed $seed"
		done
	done
	kill -TERM "$AGENT"
	wait "$AGENT"
}

main "$@"
