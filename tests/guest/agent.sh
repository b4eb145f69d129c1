# shellcheck shell=bash
# The steps of check.sh about the agent: what it costs when there is nothing to do, and that nobody misses it.
# shellcheck disable=SC2317  # the steps are called by their names

# Seconds that the agent is stopped for.
STOPPED=60

# Tables go where the results go, past what a step prints.
exec 3>&1
# Another agent is refused with this exit code.
SECOND=16

# Context switches and CPU time (ns) of all threads of the agent.
switches() { awk '/ctxt_switches/ { sum += $2 } END { printf "%.0f", sum }' /proc/"$AGENT"/task/*/status; }
cpu_time() { awk '{ sum += $1 } END { printf "%.0f", sum }' /proc/"$AGENT"/task/*/schedstat; }

attach_verbose() {
	agent_start -v || return
	detail "$(ops)"
}

# Nothing runs: nothing wakes the agent but the BPF program's call, every 10 s at most.
sleeps_when_idle() {
	local before cpu calls
	nap 3
	calls=$(grep -c 'event: call' "$T/agent.log") before=$(switches) cpu=$(cpu_time)
	nap 30
	before=$(($(switches) - before)) cpu=$(($(cpu_time) - cpu))
	calls=$(($(grep -c 'event: call' "$T/agent.log") - calls))
	detail "$before context switches and $((cpu / 1000)) us of CPU time in 30 s, for $calls calls"
	# A call may take it more than one sleep to answer; an agent that polls would be far above this.
	((calls <= 3 && before <= 3 + 3 * calls)) || fail "woken $before times in 30 s, called $calls times"
}

memory() {
	local rss
	rss=$(awk '/^VmRSS/ { print $2 }' "/proc/$AGENT/status")
	detail "resident: $((rss / 1024)) MB"
	((rss <= 40 * 1024)) || fail "resident: $((rss / 1024)) MB"
}

# Ten more at once: each is refused and says who has the lock.
one_owner() {
	local i pids=() pid rc
	for ((i = 0; i < 10; i++)); do
		scx_fulcrum >"$T/second.$i" 2>&1 &
		pids+=($!)
	done
	for ((i = 0; i < 10; i++)); do
		pid=${pids[i]} rc=0
		wait "$pid" || rc=$?
		((rc == SECOND)) || fail "another one ended with $rc, not $SECOND: $(tail -n 1 "$T/second.$i")" || return
		grep -q "pid $AGENT" "$T/second.$i" || fail "it doesn't say who: $(tail -n 1 "$T/second.$i")" || return
	done
	detail "10 at once, each refused with exit code $SECOND: $(tail -n 1 "$T/second.0")"
}

# percentiles NAME : sleepers beside hogs for a while, as a row of a table.
percentiles() {
	local row
	row=$(guarded fulcrum-work sleepers --clocked --seconds "$2" --hogs "$((2 * CPUS))" --json) || fail "sleepers: exit code $?" || return
	python3 - "$1" "$row" >>"$T/table" <<-'END'
		import json, sys
		wakeup = json.loads(sys.argv[2])["wakeup"]
		print("%-26s p50 %8.1f  p99 %8.1f  p99.9 %8.1f  max %8.1f us" % (
		    sys.argv[1], wakeup["p50_us"], wakeup["p99_us"], wakeup["p999_us"], wakeup["max_us"]))
	END
}

# Stopped for a minute, then killed, under load: wakeups before, meanwhile and afterwards.
stopped_and_killed() {
	local rc=0 pid=$AGENT
	: >"$T/table"
	percentiles 'before' 10 || return
	kill -STOP "$pid"
	percentiles "stopped for $STOPPED s" "$STOPPED" || rc=1
	scx_fulcrum status >"$T/status" 2>&1
	kill -CONT "$pid"
	((rc == 0)) && still_ours || fail "it was ejected while its agent was stopped" || return
	grep -Eqi 'does not answer|stuck' "$T/status" || fail "status doesn't tell: $(paste -sd '|' "$T/status")" || return
	percentiles 'goes on' 10 || return
	kill -KILL "$pid"
	AGENT=''
	wait "$pid" 2>/dev/null
	await "$GUARD" scheduler_is_off || fail "killed, and the state is $(state)" || return
	percentiles 'killed: the kernel'"'"'s own' 10 || return
	agent_start -v || return
	percentiles 'started again' 10 || return
	sed 's/^/# /' "$T/table" >&3
	grep '^agent' "$T/status" | sed 's/^/# status while it was stopped: /' >&3
	detail "$(wc -l <"$T/table") rows above; the lock of the killed one was free at once"
}

scheduler_is_off() { [[ $(state) == disabled ]]; }

# A crowd that could use the first cache only may go anywhere: it spreads, by hints or without; then nobody is woken.
spreads() {
	local i pids=() first before
	first=$(cat /sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list 2>/dev/null || echo 0)
	for ((i = 0; i < 6 * CPUS; i++)); do
		taskset -c "$first" sh -c 'while :; do :; done' &
		pids+=($!)
	done
	for ((i = 0; i < CPUS; i++)); do
		sh -c 'while :; do :; done' &
		pids+=($!)
	done
	nap 3
	for i in "${pids[@]}"; do taskset -pc "0-$((CPUS - 1))" "$i" >/dev/null; done
	nap 3
	before=$(switches)
	nap 20
	before=$(($(switches) - before))
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null
	detail "$(grep -c 'balance:' "$T/agent.log") rounds with hints; then $before context switches of the agent in 20 s"
	((before <= 20)) || fail "balanced, and still woken $before times in 20 s"
}

agent_profile() {
	step attach attach_verbose
	step sleeps-when-idle sleeps_when_idle
	step memory memory
	step one-owner one_owner
	step spreads-a-crowd spreads
	step stopped-and-killed stopped_and_killed
}
