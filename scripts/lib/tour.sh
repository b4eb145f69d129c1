#!/usr/bin/env bash
# The round that scripts/run makes, on a kernel with sched_ext, as root: the same work under the kernel's own scheduler and
# under scx_fulcrum, then both columns. Everything it starts it also stops.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
SCX=/sys/kernel/sched_ext
T=$(mktemp -d "${TMPDIR:-/tmp}/fulcrum-tour.XXXXXX")
AGENT=''

heading() { printf '\n== %s\n' "$*"; }

cleanup() {
	[[ -z $AGENT ]] || kill -TERM "$AGENT" 2>/dev/null || true
	rm -rf "$T"
}

tour() { fulcrum-work tour --name "$1" --program "$T/program" --save "$T/$1"; }

# A first round that isn't counted, so that compiler and tools come from memory for both schedulers.
warm_up() {
	"$here/../../tests/guest/cprog.sh" "$T/program"
	make -s -C "$T/program" -j "$(nproc)" check
	hackbench -g 1 -l 20 >"$T/hackbench"
}

start_fulcrum() {
	local tries
	scx_fulcrum --stats 2 > >(sed -u 's/^/    /') 2>"$T/agent.log" &
	AGENT=$!
	for ((tries = 0; tries < 600; tries++)); do
		if [[ $(cat "$SCX/root/ops" 2>/dev/null) == fulcrum* && $(cat "$SCX/state") == enabled ]]; then
			return 0
		fi
		kill -0 "$AGENT" 2>/dev/null || break
		sleep 0.1
	done
	cat "$T/agent.log" >&2
	return 1
}

stop_fulcrum() {
	local pid=$AGENT
	AGENT=''
	if [[ $(cat "$SCX/root/ops" 2>/dev/null) != fulcrum* ]]; then
		cat "$T/agent.log" >&2
		return 1
	fi
	kill -TERM "$pid"
	wait "$pid"
}

main() {
	trap cleanup EXIT
	heading "kernel $(uname -r), $(nproc) CPUs: warming up"
	warm_up
	heading "the kernel's own scheduler (EEVDF)"
	tour EEVDF
	heading "scx_fulcrum is loaded; its live figures are indented"
	start_fulcrum
	sed 's/^/  /' "$T/agent.log"
	printf '  %s: %s\n' "$SCX/root/ops" "$(cat "$SCX/root/ops")"
	tour fulcrum
	heading "scx_fulcrum is stopped (SIGTERM)"
	stop_fulcrum
	printf '  exit code 0, sched_ext is %s\n' "$(cat "$SCX/state")"
	heading "the same work, in the same boot, lower is better"
	fulcrum-work table "$T/EEVDF" "$T/fulcrum"
}

main "$@"
