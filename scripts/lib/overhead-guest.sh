#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs in the guest, for scripts/overhead. usage: overhead-guest.sh ROUNDS OFF ON
# Rows T1 to T3 under one scheduler without figures, one with them, and that one again with all of its figures read once
# a second, so that a frame falls into each second of T1 and T2; the order changes from round to round. Prints
# "VARIANT ROW VALUE" lines.
set -euo pipefail
rounds=$1 off=$2 on=$3
SCX=/sys/kernel/sched_ext

# Reads all sections of the stream until the scheduler ends.
reader() {
	python3 - <<-'END'
		import socket, time
		while True:
		    try:
		        s = socket.socket(socket.AF_UNIX)
		        s.connect("/run/scx_fulcrum/stream")
		        break
		    except OSError:
		        time.sleep(0.1)
		s.sendall(b'{"subscribe":"figures","hz":1}\n')
		while s.recv(1 << 16):
		    pass
	END
}

json_field() { sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" | head -n 1; }

rows() {
	local took
	echo "$1 T1 $(fulcrum-work pipe --seconds 1 --json | json_field us_per_round_trip)"
	echo "$1 T2 $(fulcrum-work pipe --pairs "$((2 * $(nproc)))" --seconds 1 --json | json_field us_per_round_trip)"
	TIMEFORMAT=%R
	for _ in 1 2; do
		took=$({ time hackbench -g 2 -l 50 >/dev/null; } 2>&1)
		echo "$1 T3 $took"
	done
}

variant() {
	local agent i program=$on
	[[ $1 != off ]] || program=$off
	"$program" >/tmp/overhead.log 2>&1 &
	agent=$!
	for ((i = 0; i < 300; i++)); do
		[[ $(cat $SCX/state) != enabled ]] || break
		sleep 0.1
	done
	[[ $(cat $SCX/state) == enabled ]] || { cat /tmp/overhead.log && exit 1; }
	[[ $1 != watched ]] || reader &
	sleep 1
	rows "$1"
	rows "$1"
	kill "$agent"
	wait
}

fulcrum-work pipe --seconds 0.3 >/dev/null
for ((round = 0; round < rounds; round++)); do
	if ((round % 2)); then
		for v in watched on off; do variant $v; done
	else
		for v in off on watched; do variant $v; done
	fi
done
