#!/usr/bin/env bash
# What scx_fulcrum must do on one real kernel, step after step; runs inside the VM as root. Knows the steps and their
# bounds; lib.sh knows how they are run and reported.
#
# usage: check.sh PROFILE     kernel: all of it   cycles: and 50 times attach and detach   topology: the short list
#                             fairness: equal shares, for the deterministic VM
#                             policies: changed while it runs   stream: watched, by PROMETHEUS too if that is set
#                             agent: what the agent costs, and that nobody misses it
#                             faults: what other schedulers stumbled over   unit: under systemd
# shellcheck disable=SC2317  # the steps are called by their names
set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/guest/policies.sh
. "$GUEST/policies.sh"
# shellcheck source=tests/guest/stream.sh
. "$GUEST/stream.sh"
# shellcheck source=tests/guest/agent.sh
. "$GUEST/agent.sh"
# shellcheck source=tests/guest/faults.sh
. "$GUEST/faults.sh"
# shellcheck source=tests/guest/unit.sh
. "$GUEST/unit.sh"
# shellcheck source=tests/guest/hybrid.sh
. "$GUEST/hybrid.sh"
CPUS=$(nproc)

guarded() { timeout --kill-after=10 "$GUARD" "$@"; }
work() { guarded fulcrum-work "$@"; }

# The scheduler arrives while the machine is busy, and tasks' affinities change all the time.
under_load() {
	local n=$CPUS load rc=0 until
	stress-ng --temp-path "$T" --timeout "$((GUARD + 60))" --aggressive -M -c "$n" -f "$n" \
		--affinity "$n" --affinity-delay 1 --affinity-pin >"$T/stress.log" 2>&1 &
	load=$!
	nap 2
	agent_start || { kill "$load" && return 1; }
	until=$((SECONDS + 20))
	while ((SECONDS < until)); do
		nap 0.5
		still_ours || { kill "$load" && return 1; }
	done
	! gone "$load" || fail "stress-ng ended early: $(tail -n 1 "$T/stress.log")" || return
	kill -INT "$load"
	await "$GUARD" gone "$load" || fail "stress-ng did not end within $GUARD s" || return
	wait "$load" || rc=$?
	((rc == 0)) || fail "stress-ng: exit code $rc: $(tail -n 1 "$T/stress.log")" || return
	detail "$(ops), 20 s of stress-ng with affinity churn"
}

idle_attach() {
	agent_start || return
	detail "$(ops)"
}

switched_all() {
	[[ $(cat "$SCX/switch_all") == 1 ]] || fail "only tasks that asked for it are ours (switch_all is 0)" || return
	grep -q '^fulcrum' "$SCX/root/ops" || fail "root/ops is $(ops)" || return
	detail "$(ops), $(state), all tasks"
}

# What the verifier went through for each program, against the committed counts: a change has to be meant.
verifier() {
	work bench verifier --against "$GUEST/../../docs/verifier.json" || return
	detail "$(tail -n 1 "$T/out")"
}

messages() {
	guarded hackbench -g 2 -l 50 >"$T/hackbench" || fail "hackbench: exit code $?" || return
	detail "hackbench $(sed -n 's/^Time: //p' "$T/hackbench") s"
}

make_j() {
	"$GUEST/cprog.sh" "$T/cprog" || fail "no program written" || return
	guarded make -s -C "$T/cprog" -j "$((CPUS * 2))" check || fail "make -j: exit code $?" || return
	detail "make -j$((CPUS * 2)) of $(find "$T/cprog" -name '*.c' | wc -l) files"
}

# A busy host takes the CPU from the guest, whose clock goes on, and that makes shares worse, never better: so the best of
# three windows counts. A scheduler with wrong weights misses all three.
best_of_three() {
	local i
	for i in 1 2 3; do
		if work hogs "$@"; then
			[[ $i == 1 ]] || echo "window $i of 3"
			return
		fi
	done
	return 1
}

# nice -5, 0, 5, 10 on one CPU. One slice of 3 ms more or less at either end of the window must be less than 2 % of what
# nice 10 gets (2.4 % of the CPU): hence 13 s.
shares() {
	best_of_three --nice=-5,0,5,10 --cpus "$((CPUS - 1))" --seconds 13 --max-error 0.02 || return
	detail "nice -5/0/5/10 on one CPU, bound 0.02: $(grep -E '^(worst|window)' "$T/out" | tail -n 2 | paste -sd ';')"
}

# One hog more than CPUs: everybody gets the same part of the machine. If nobody moved, two of them would share a CPU, an
# error of 0.25 (2 CPUs) to 0.44 (8 CPUs). Only for the deterministic VM: where the guest's CPUs wait for the host's cores
# while the guest's clock goes on, shares say more about the host.
spread() {
	best_of_three --each "$((CPUS + 1))" --seconds 5 --max-error 0.02 || return
	detail "$((CPUS + 1)) hogs on $CPUS CPUs, bound 0.02: $(grep -E '^(worst|window)' "$T/out" | tail -n 2 | paste -sd ';')"
}

yielders() {
	work yielders --seconds 2 --min-hog-share 0.30 || return
	detail "$(tail -n 1 "$T/out"), bound 0.30"
}

hops() {
	work hop --tasks "$((CPUS * 4))" --seconds 2 || return
	work hop --tasks "$((CPUS * 4))" --seconds 2 --by other || return
	detail "$(sed -n 's/^hop: //p' "$T/out" | paste -sd ';')"
}

fork_storm() {
	work forks --workers "$((CPUS * 4))" --seconds 2 || return
	work forks --workers "$((CPUS * 2))" --seconds 2 --exec || return
	detail "$(sed -n 's/^forks: //p' "$T/out" | paste -sd ';')"
}

# One task is confined to each CPU, so no CPU may be forgotten.
every_cpu() {
	work pin --seconds 2 --hogs "$((CPUS * 2))" || return
	detail "$(sed -n 's/^ *wakeup delay *//p' "$T/out")"
}

# Every CPU but the first goes and comes back, three times, under load.
hotplug() {
	local load cpu round rc=0
	fulcrum-work hogs --each "$((CPUS * 2))" --seconds 600 >"$T/hogs.log" 2>&1 &
	load=$!
	for round in 1 2 3; do
		for ((cpu = 1; cpu < CPUS; cpu++)); do
			echo 0 >"/sys/devices/system/cpu/cpu$cpu/online" || rc=1
			nap 0.2
			still_ours || rc=1
		done
		nap 0.5
		for ((cpu = 1; cpu < CPUS; cpu++)); do
			echo 1 >"/sys/devices/system/cpu/cpu$cpu/online" || rc=1
		done
		nap 0.5
	done
	! gone "$load" || rc=1
	kill -TERM "$load" && await "$GUARD" gone "$load" || fail "the load did not end" || return
	wait "$load" || true
	((rc == 0)) || fail "$(tail -n 1 "$T/out" "$T/hogs.log")" || return
	[[ $(nproc --all) == "$CPUS" ]] || fail "$(nproc) of $CPUS CPUs are online" || return
	work hogs --each "$((CPUS * 2))" --seconds 2 || return
	detail "$round rounds of $((CPUS - 1)) CPUs; then $(sed -n 's/.*, \(.*CPUs used\).*/\1/p' "$T/out")"
}

# The agent's own figures, asked for as a user would.
lifecycle() {
	local monitor line
	scx_fulcrum --monitor 1 >"$T/monitor" 2>&1 &
	monitor=$!
	await "$GUARD" grep -q 'errors [0-9]' "$T/monitor" || fail "--monitor said: $(tail -n 1 "$T/monitor")" || return
	kill -TERM "$monitor" && wait "$monitor" || fail "--monitor: exit code $? after SIGTERM" || return
	line=$(tail -n 1 "$T/monitor")
	[[ $line == *'errors 0' ]] || fail "--monitor: $line" || return
	detail "--monitor: $line"
}

detach() {
	agent_stop || return
	detail "exit code 0, state disabled"
}

log_clean() {
	kernel_log | "$GUEST/kernel-log.sh" || fail "the kernel's log has $(wc -l <"$T/out") bad lines" || return
	detail "$(kernel_log | wc -l) lines since the start, none bad"
}

cycles() {
	local i
	for ((i = 1; i <= $1; i++)); do
		if ! agent_start || ! agent_stop; then
			fail "cycle $i of $1: $(cat "$T/reason")"
			return 1
		fi
	done
	detail "$1 times attached and detached, each with exit code 0"
}

kernel_profile() {
	step attach-under-load under_load
	step root-ops switched_all
	step verifier-counts verifier
	step hackbench messages
	step make-j make_j
	step nice-shares shares
	step hop hops
	step fork-storm fork_storm
	step yielders yielders
	step cpu-hotplug hotplug
}

topology_profile() {
	step attach idle_attach
	step root-ops switched_all
	step hackbench messages
	step pinned-tasks every_cpu
	step hop hops
	if ((CPUS > 1)); then step cpu-hotplug hotplug; else skip cpu-hotplug "one CPU only"; fi
}

fairness_profile() {
	step attach idle_attach
	step equal-shares spread
}

main() {
	echo 'fulcrum-check: begin' >/dev/kmsg
	case ${1:-} in
	kernel | cycles) kernel_profile ;;
	topology) topology_profile ;;
	fairness) fairness_profile ;;
	policies) policies_profile ;;
	stream) stream_profile ;;
	agent) agent_profile ;;
	faults) faults_profile ;;
	unit) unit_profile && finish ;; # systemd starts and stops it
	*) sed -n 's/^# usage: /usage: /p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
	esac
	step lifecycle lifecycle
	step detach detach
	step kernel-log log_clean
	if [[ $1 == kernel || $1 == cycles ]]; then
		step fast-and-slow-cpus fast_and_slow
		step kernel-log-after log_clean
	fi
	if [[ $1 == cycles ]]; then
		step attach-detach cycles 50
		step kernel-log-after-cycles log_clean
	fi
	finish
}

main "$@"
