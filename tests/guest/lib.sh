# shellcheck shell=bash
# How a check in the guest is run and reported, and how the scheduler is started and stopped there.
#
# Each step prints one line, "ok NAME - DETAIL", "not ok NAME - REASON" or "skip NAME - REASON"; the last line is the
# plan, "1..N", so that a check that died half-way is noticed.

GUEST=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
SCX=/sys/kernel/sched_ext
T=$(mktemp -d /tmp/fulcrum-check.XXXXXX)
mkfifo "$T/silence"
AGENT='' STEPS=0 FAILED=0
# Seconds that nothing here may take; hit only by what hangs.
GUARD=120
# The kernel ejects a scheduler that lets a task wait this long; a third of the usual, so that a stall shows.
WATCHDOG_MS=10000
# A step that takes longer than this hangs, and perhaps can't even be killed.
HANG=240

# fail REASON... : for use as "COMMAND || fail REASON || return".
fail() {
	echo "$*" >"$T/reason"
	return 1
}

detail() { echo "$*" >"$T/detail"; }

# step NAME FUNCTION [ARG...] : runs one check; its other output is shown only if it fails.
step() {
	local name=$1 began=$SECONDS reason
	shift
	STEPS=$((STEPS + 1))
	echo "$name" >"$T/current"
	: >"$T/detail"
	rm -f "$T/reason"
	if agent_gone; then
		FAILED=$((FAILED + 1))
		echo "not ok $name - not run: scx_fulcrum has ended"
		return
	fi
	if "$@" >"$T/out" 2>&1 && still_ours; then
		echo "ok $name - $(cat "$T/detail") ($((SECONDS - began)) s)"
		return
	fi
	FAILED=$((FAILED + 1))
	reason=$(cat "$T/reason" 2>/dev/null || tail -n 1 "$T/out")
	echo "not ok $name - ${reason:-$1 failed without a word} ($((SECONDS - began)) s)"
	sed 's/^/# /' "$T/out"
	agent_gone && tail -n 300 "$T/agent.log" | sed 's/^/# agent: /'
	return 0
}

skip() {
	STEPS=$((STEPS + 1))
	echo "skip $1 - $2"
}

# The plan and the exit code.
finish() {
	kill -KILL "$HANG_WATCH" 2>/dev/null || true
	if ((FAILED)); then "$GUEST/kernel-log.sh" < <(kernel_log) | sed 's/^/# kernel: /'; fi
	echo "1..$STEPS"
	exit $((FAILED > 0))
}

# What the kernel has said since this check began.
kernel_log() { dmesg | sed -n '/fulcrum-check: begin/,$p'; }

# A file's first line in LINE. No process is started for it: a fork can take seconds on a machine full of stress.
first_line() { { read -r LINE <"$1"; } 2>/dev/null || LINE=none; }
state() { first_line "$SCX/state" && echo "$LINE"; }
ops() { first_line "$SCX/root/ops" && echo "$LINE"; }

# Sleeps, likewise without a process.
nap() { read -rt "$1" <>"$T/silence" || true; }

# Whether the scheduler is ours.
attached() {
	first_line "$SCX/state"
	[[ $LINE == enabled ]] || return
	first_line "$SCX/root/ops"
	[[ $LINE == fulcrum* ]]
}

agent_gone() { [[ -n $AGENT ]] && ! kill -0 "$AGENT" 2>/dev/null; }

# Between agent_start and agent_stop each step must leave the scheduler attached.
still_ours() {
	[[ -z $AGENT ]] && return
	agent_gone && { fail "scx_fulcrum ended by itself" || return; }
	attached || fail "no longer attached: state $(state), ops $(ops)"
}

# await SECONDS COMMAND... : until it succeeds.
await() {
	local until=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < until)) || return 1
		nap 0.05
	done
}

attached_or_gone() { attached || agent_gone; }

# agent_start [FLAG...] : in the cgroup at AGENT_CGROUP, if that is set.
agent_start() {
	(
		[[ -z ${AGENT_CGROUP:-} ]] || echo "$BASHPID" >"$AGENT_CGROUP/cgroup.procs"
		SCX_TIMEOUT_MS=$WATCHDOG_MS exec scx_fulcrum "$@"
	) >"$T/agent.log" 2>&1 &
	AGENT=$!
	await "$GUARD" attached_or_gone || fail "not attached after $GUARD s: state $(state)" || return
	if agent_gone; then
		wait "$AGENT" && fail "scx_fulcrum ended at once" || fail "exit code $?: $(tail -n 1 "$T/agent.log")" || return
	fi
}

# Ends the agent with SIGTERM; its exit code must be 0 and the kernel's own scheduler back.
agent_stop() {
	local rc=0 pid=$AGENT
	kill -TERM "$pid" || fail "scx_fulcrum was gone before SIGTERM" || return
	AGENT=''
	await "$GUARD" gone "$pid" || { where_it_waits "$pid" && fail "alive $GUARD s after SIGTERM" || return; }
	wait "$pid" || rc=$?
	((rc == 0)) || fail "exit code $rc after SIGTERM: $(tail -n 1 "$T/agent.log")" || return
	[[ $(state) == disabled ]] || fail "state $(state) after detaching"
}

# Where each thread of a process that should have ended waits, and an end to it.
where_it_waits() {
	local thread
	for thread in /proc/"$1"/task/*; do
		head -n 3 "$thread/status"
		cat "$thread/stack" || true
	done
	kill -KILL "$1"
}

# A process that has ended counts as gone although it was not waited for yet.
gone() {
	first_line "/proc/$1/stat"
	[[ $LINE == none || $LINE == *') Z '* ]]
}

# Who hangs where, as the kernel sees it: blocked tasks, the scheduler's own dump, the log.
hang_report() {
	echo "not ok $1 - hangs for $HANG s"
	echo "# CPUs online: $(cat /sys/devices/system/cpu/online), sched_ext $(state), $(ops)"
	echo D >/proc/sysrq-trigger
	echo w >/proc/sysrq-trigger
	nap 2
	sed 's/.*sched_ext_dump: //' /sys/kernel/tracing/trace | head -n 300 | sed 's/^/# dump: /'
	dmesg | tail -n 200 | sed 's/^/# kernel: /'
}

# Ends a check whose step hangs, in real time so that no scheduler can starve it.
hang_watch() {
	local at='' since=0
	chrt -f -p 50 "$BASHPID"
	while nap 2; do
		first_line "$T/current"
		if [[ $LINE != "$at" ]]; then
			at=$LINE since=$SECONDS
		elif ((SECONDS - since > HANG)); then
			hang_report "$at"
			kill -KILL $$
			return
		fi
	done
}

# Asked for now: in a hang, switching a trace point on may hang too.
echo 1 >/sys/kernel/tracing/events/sched_ext/sched_ext_dump/enable
echo 1 >/proc/sys/kernel/sysrq
hang_watch &
HANG_WATCH=$!
disown "$HANG_WATCH"
