#!/usr/bin/env bash
# In the VM with the metronome, as root: records the stream of scx_fulcrum under a mix of work. scripts/pictures starts it.
#
# usage: pictures-guest.sh DIR     writes DIR/stream
set -euo pipefail
SCX=/sys/kernel/sched_ext
GROUPS_AT=/sys/fs/cgroup
SECONDS_OF_WORK=40

die() {
	echo "pictures-guest: $*" >&2
	exit 1
}

start_fulcrum() {
	local tries
	scx_fulcrum &
	AGENT=$!
	for ((tries = 0; tries < 300; tries++)); do
		if [[ $(cat "$SCX/root/ops" 2>/dev/null) == fulcrum* && $(cat "$SCX/state") == enabled ]]; then
			return 0
		fi
		kill -0 "$AGENT" 2>/dev/null || break
		sleep 0.1
	done
	die "scx_fulcrum is not attached"
}

# group PATH WEIGHT
group() {
	mkdir -p "$GROUPS_AT/$1"
	echo "$2" >"$GROUPS_AT/$1/cpu.weight"
}

# inside PATH COMMAND... : in the background, in that cgroup.
inside() {
	local path=$1
	shift
	(
		echo "$BASHPID" >"$GROUPS_AT/$path/cgroup.procs"
		exec "$@" >/dev/null
	) &
}

main() {
	local dir=$1 rate
	rate=$(fulcrum-work calibrate)
	fulcrum-work metronome >/dev/null
	mountpoint -q "$GROUPS_AT" || mount -t cgroup2 none "$GROUPS_AT"
	echo +cpu >"$GROUPS_AT/cgroup.subtree_control"
	group batch.slice 100
	group desktop.slice 300
	start_fulcrum
	inside batch.slice fulcrum-work hogs --rounds-per-us "$rate" --nice 0,0,5,10 --seconds "$SECONDS_OF_WORK"
	inside desktop.slice fulcrum-work hogs --rounds-per-us "$rate" --each 2 --seconds "$SECONDS_OF_WORK"
	inside desktop.slice fulcrum-work frames --clocked --rounds-per-us "$rate" --seconds "$SECONDS_OF_WORK"
	fulcrum-work sleepers --clocked --rounds-per-us "$rate" --seconds "$SECONDS_OF_WORK" >/dev/null &
	sleep 3
	# The time limit ends it: 143.
	timeout 13 scx_fulcrum top --lines --record "$dir/stream" || true
	[[ $(wc -l <"$dir/stream") -ge 10 ]] || die "fewer than 10 frames were recorded"
	kill -TERM "$AGENT"
	wait "$AGENT"
}

main "$@"
