# shellcheck shell=bash
# The steps of check.sh about the agent: what it costs when there is nothing to do, and that nobody misses it.
# shellcheck disable=SC2317  # the steps are called by their names

# Seconds that the agent is stopped for, and that it must sleep when nobody waits.
STOPPED=60 IDLE=30

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

# Nobody waits for a CPU: nothing wakes the agent, by the kernel's own count of its context switches.
sleeps_when_idle() {
	local before cpu
	# The BPF program's first call shows that it can be heard.
	await 30 grep -q 'event: call' "$T/agent.log" || fail 'not called once' || return
	nap 3
	before=$(switches) cpu=$(cpu_time)
	nap "$IDLE"
	before=$(($(switches) - before)) cpu=$(($(cpu_time) - cpu))
	detail "$before context switches and $((cpu / 1000)) us of CPU time in $IDLE s"
	((before == 0)) || fail "woken $before times in $IDLE s: $(tail -n 3 "$T/agent.log" | paste -sd ';')"
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

# Context switches of the agent in so many seconds.
woken_in() {
	local before
	before=$(switches)
	nap "$1"
	WOKEN=$(($(switches) - before))
}

# A crowd that could use the first cache only may go anywhere: it spreads, by hints or without; then nobody is woken.
# The two caches' clocks may be apart by more than is compared; when they meet, a few more hints follow, once (agent_sim).
spreads() {
	local i pids=() first window
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
	for ((window = 1; window <= 4; window++)); do
		woken_in 20
		((WOKEN > 6)) || break
	done
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null
	detail "$(grep -c 'balance:' "$T/agent.log") rounds with hints; $WOKEN context switches of the agent in 20 s, window $window"
	((window <= 4)) || fail "balanced, and still woken $WOKEN times in 20 s: $(grep 'balance:' "$T/agent.log" | tail -n 3 | paste -sd ';')"
}

# What it counts of tasks is what there is, also beside a storm of short lives.
no_leaks() {
	work forks --workers "$((CPUS * 4))" --seconds 3 || return
	# Any client wakes it, and then it looks, if it has not for 10 s.
	nap 11
	scx_fulcrum status >"$T/status" 2>&1
	grep -q '^agent *answers' "$T/status" || fail "status: $(paste -sd '|' "$T/status")" || return
	! grep -h 'leak:' "$T/status" "$T/agent.log" || fail "$(grep -h 'leak:' "$T/status" "$T/agent.log" | head -n 1)" || return
	detail "$(grep -o 'Tally.*' "$T/agent.log" | tail -n 1)"
}

# A limit is shown and said not to be enforced.
cpu_max() {
	local group=/sys/fs/cgroup/limited
	mount_cgroups || fail 'no cgroup2' || return
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p "$group" || return
	echo '50000 100000' >"$group/cpu.max" || fail 'no cpu.max' || return
	nap 6
	scx_fulcrum status >"$T/status" 2>&1
	rmdir "$group"
	grep -q '^cpu.max *not enforced: /limited (50 % of a CPU)' "$T/status" || fail "status: $(paste -sd '|' "$T/status")" || return
	detail "status: $(grep '^cpu.max' "$T/status")"
}

# endless CPU [COMMAND...] : a loop on that CPU only.
endless() {
	local cpu=$1
	shift
	taskset -c "$cpu" "$@" sh -c 'while :; do :; done' &
	LOADS+=($!)
}

end_loads() {
	kill -KILL "${LOADS[@]}" 2>/dev/null
	wait "${LOADS[@]}" 2>/dev/null
	LOADS=()
}

# No share of the CPU is kept for lower classes.
unthrottle() {
	local file
	echo -1 >/proc/sys/kernel/sched_rt_runtime_us
	mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
	for file in /sys/kernel/debug/sched/*_server/cpu"$1"/runtime; do
		[[ ! -e $file ]] || echo 0 >"$file"
	done
}

# A task pinned behind a real-time one is named, and why it waits.
behind_real_time() {
	local rc=0
	LOADS=()
	unthrottle 1
	endless 1
	local pinned=${LOADS[0]}
	endless 0
	nap 1
	endless 1 chrt -f 50
	await 8 grep -q "\[$pinned\] has waited.*real-time task keeps" "$T/agent.log" || rc=1
	scx_fulcrum status >"$T/status" 2>&1
	end_loads
	((rc == 0)) || fail "not told: $(tail -n 3 "$T/agent.log" | paste -sd ';')" || return
	grep -q "^WARNING.*\[$pinned\].*real-time" "$T/status" || fail "status: $(paste -sd '|' "$T/status")" || return
	detail "$(grep '^WARNING' "$T/status" | head -n 1)"
}

# A task pinned to a CPU that goes offline waits for nobody: the kernel sends it elsewhere.
behind_an_offline_cpu() {
	local cpu=$((CPUS - 1)) before after
	LOADS=()
	endless "$cpu"
	endless "$cpu"
	nap 1
	echo 0 >"/sys/devices/system/cpu/cpu$cpu/online" || fail "CPU $cpu stays online" || return
	nap 5
	before=$(ran_ns "${LOADS[0]}") && nap 2
	after=$(ran_ns "${LOADS[0]}")
	end_loads
	echo 1 >"/sys/devices/system/cpu/cpu$cpu/online"
	((after - before > 500000000)) || fail "it had $(((after - before) / 1000000)) ms of 2 s" || return
	! grep 'CPU is offline' "$T/agent.log" || return
	detail "pinned to CPU $cpu, which is offline: $(((after - before) / 1000000)) ms of CPU time in 2 s, nobody waits"
}

ran_ns() {
	first_line "/proc/$1/schedstat"
	echo "${LINE%% *}"
}

# Two processes that both take themselves for the agent, a thousand times each.
fenced() {
	work fence --rounds 1000 || return
	local said
	said=$(sed -n 's/^fence: //p' "$T/out")
	# Ours no longer sits: it can't answer, and status says so.
	agent_stop && agent_start -v || return
	detail "$said"
}

# It starts in a cgroup of its own, of which the next two steps take the memory away.
in_a_cgroup() {
	local group=/sys/fs/cgroup/squeezed
	mount_cgroups || fail 'no cgroup2' || return
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p "$group" || fail 'no memory controller' || return
	agent_stop || return
	AGENT_CGROUP=$group agent_start -v || return
	: >"$T/table"
	percentiles 'before' 5 || return
	detail "memory: $(($(cat "$group/memory.current") / 1024)) KiB"
}

# Squeezed under load, and asked for more meanwhile: it may become slow, and nobody minds.
squeezed() {
	local group=/sys/fs/cgroup/squeezed rc=0 asking
	echo 1M >"$group/memory.high"
	(for _ in 1 2 3; do scx_fulcrum status && nap 1; done >"$T/asked" 2>&1) &
	asking=$!
	percentiles 'memory.high 1M' 5 || rc=1
	wait "$asking"
	still_ours || rc=1
	((rc == 0)) || fail "ejected while it was squeezed: $(state)" || return
	sed 's/^/# /' "$T/table" >&3
	detail "memory.events: $(paste -sd ' ' "$group/memory.events"); it answered $(grep -c '^agent *answers' "$T/asked") of 3 times"
}

# No memory at all: the kernel ends the agent, which takes the scheduler along, in order.
out_of_memory() {
	local group=/sys/fs/cgroup/squeezed pid=$AGENT
	# The kernel's word on it looks like a fault's: the log begins anew afterwards.
	log_clean || return
	: >"$T/table"
	AGENT=''
	echo 1M >"$group/memory.max"
	await "$GUARD" gone "$pid" || fail "it lives on 1 MB: $(paste -sd ' ' "$group/memory.events")" || return
	wait "$pid" 2>/dev/null
	await "$GUARD" scheduler_is_off || fail "killed, and the state is $(state)" || return
	dmesg | grep "Killed process $pid (scx_fulcrum)" || fail 'it ended, not by lack of memory' || return
	dmesg -C && echo 'fulcrum-check: begin' >/dev/kmsg
	percentiles 'killed: the kernel'"'"'s own' 5 || return
	scx_fulcrum status >"$T/status" 2>&1
	rmdir "$group"
	agent_start -v || return
	percentiles 'started again' 5 || return
	sed 's/^/# /' "$T/table" >&3
	detail "killed by the kernel; status: $(grep '^active' "$T/status")"
}

agent_profile() {
	step attach attach_verbose
	step sleeps-when-idle sleeps_when_idle
	step memory memory
	step one-owner one_owner
	step spreads-a-crowd spreads
	step no-leaks no_leaks
	step cpu-max-is-shown cpu_max
	step behind-a-real-time-task behind_real_time
	step behind-an-offline-cpu behind_an_offline_cpu
	step fenced fenced
	step stopped-and-killed stopped_and_killed
	step agent-in-a-cgroup in_a_cgroup
	step memory-squeezed squeezed
	step out-of-memory out_of_memory
}
