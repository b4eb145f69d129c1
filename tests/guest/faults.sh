# shellcheck shell=bash
# The steps of check.sh that repeat kinds of faults which schedulers in the field have shown; docs/faults.md says what the
# numbers in their names stand for. Each must leave the scheduler attached.
# shellcheck disable=SC2317,SC2153  # the steps are called by their names; CPUS is check.sh's

FILES=$GUEST/../workloads/faults
# Seconds of guest time a step works, where nothing says otherwise.
SPAN=2

stress() { guarded stress-ng --temp-path "$T" --timeout "${SPAN}s" "$@" >"$T/stress.log" 2>&1 || fail "stress-ng $*: exit code $?: $(tail -n 1 "$T/stress.log")"; }

# run_file NAME : the groups' CPUs as the array USED.
run_file() {
	local name _ cpus
	declare -gA USED=()
	work run "$FILES/$1.json" >"$T/run" || fail "$1.json: exit code $?" || return
	while read -r name _ cpus _; do
		[[ $cpus =~ ^[0-9.]+$ ]] || continue
		USED[$name]=$cpus
	done <"$T/run"
}

# within VALUE LOW HIGH
within() { awk -v v="$1" -v l="$2" -v h="$3" 'BEGIN { exit !(v >= l && v <= h) }'; }

pinned_kernel_threads() {
	fulcrum-work hogs --each "$CPUS" --seconds 30 >"$T/hogs.log" 2>&1 &
	local hogs=$! rc=0
	stress --netdev 1 --udp 2 || rc=1
	work hop --tasks 4 --seconds 1 --by other || rc=1
	end_load "$hogs" || rc=1
	((rc == 0)) || return
	detail "network, kernel threads of each CPU, and tasks sent about, beside $CPUS hogs"
}

end_load() {
	! gone "$1" || fail "the load ended early: $(tail -qn 1 "$T"/*.log | paste -sd ';')" || return
	kill -TERM "$1"
	await "$GUARD" gone "$1" || fail "the load did not end within $GUARD s" || return
	wait "$1" || true
}

queued_tasks_sent_elsewhere() {
	work hop --tasks $((CPUS * 16)) --seconds "$SPAN" --by other || return
	stress --aggressive --affinity $((CPUS * 4)) --affinity-rand || return
	detail "$(sed -n 's/^hop: //p' "$T/out" | tail -n 1)"
}

pinned_beside_free() {
	run_file pinned || return
	local used="pinned ${USED[pinned-0]} and ${USED[pinned-1]}, free ${USED[free]} CPUs"
	within "${USED[pinned-0]}" 0.45 0.55 && within "${USED[pinned-1]}" 0.45 0.55 && within "${USED[free]}" 0.9 1.1 ||
		fail "$used, not .5, .5 and 1" || return
	detail "$used"
}

cpusets_rewritten() {
	local group=/sys/fs/cgroup/faults i rc=0 hogs
	mount_cgroups || fail "no cgroup2 with cpuset" || return
	mkdir -p "$group" || return
	fulcrum-work hogs --each 6 --seconds 60 >"$T/hogs.log" 2>&1 &
	hogs=$!
	echo "$hogs" >"$group/cgroup.procs" || rc=1
	for ((i = 0; i < 60; i++)); do
		echo $((i % CPUS)) >"$group/cpuset.cpus" || rc=1
		nap 0.02
		echo "0-$((CPUS - 1))" >"$group/cpuset.cpus" || rc=1
	done
	end_load "$hogs" || return
	await 20 rmdir "$group" || rc=1
	((rc == 0)) || fail "writing cpuset.cpus" || return
	detail "120 changes of cpuset.cpus under 6 hogs"
}

mount_cgroups() {
	[[ -e /sys/fs/cgroup/cgroup.controllers ]] || mount -t cgroup2 none /sys/fs/cgroup
	echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
}

idle_races() {
	stress --race-sched 2 || return
	stress --cpu "$CPUS" --cacheline 1 || return
	detail "stress-ng --race-sched, --cacheline beside busy CPUs"
}

migration_disabled() {
	stress --sock 2 --tlb-shootdown 2 --affinity 2 || return
	detail "stress-ng --sock, --tlb-shootdown, --affinity"
}

agent_stopped() {
	kill -STOP "$AGENT"
	work sleepers --tasks 4 --hogs "$CPUS" --seconds 3 || { kill -CONT "$AGENT" && return 1; }
	work forks --workers 4 --seconds 1 || { kill -CONT "$AGENT" && return 1; }
	kill -CONT "$AGENT"
	detail "3 s of sleepers beside hogs, 1 s of forks, the agent stopped"
}

naps() {
	run_file naps || return
	within "${USED[hog]}" 0.72 1 || fail "2 hogs beside 3 nappers: ${USED[hog]} CPUs, not .8" || return
	detail "2 hogs beside 3 that sleep before their slices end: ${USED[hog]} CPUs, .816 is right"
}

faults_profile() {
	step attach idle_attach
	step fault-a01-a15-a18-a61-kernel-threads pinned_kernel_threads
	step fault-a02-a07-a09-queued-and-sent-elsewhere queued_tasks_sent_elsewhere
	step fault-a04-a11-a29-pinned-beside-free pinned_beside_free
	step fault-a10-a82-cpusets-rewritten cpusets_rewritten
	step fault-a14-a21-a22-a28-idle-races idle_races
	step fault-a23-a24-migration-disabled migration_disabled
	step fault-a34-agent-stopped agent_stopped
	step fault-b36-naps-gain-nothing naps
	step fault-b36-yielders yielders
	step fault-b47-a25-forks fork_storm
}
