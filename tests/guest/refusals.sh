#!/usr/bin/env bash
# When scx_fulcrum must refuse to start in a VM that could run it: each time with one line that helps, an exit code of its
# own and nothing changed. lib.sh knows how steps are run and reported.
# shellcheck disable=SC2317,SC2119  # the steps are called by their names; agent_start takes flags, not ours
set -euo pipefail
# shellcheck source=tests/guest/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# refused CODE PATTERN COMMAND... : it ends at once with CODE and one line that matches PATTERN; the kernel's state stays.
refused() {
	local code=$1 pattern=$2 rc=0 before
	shift 2
	before="$(state) $(ops)"
	timeout 60 "$@" >"$T/said" 2>&1 || rc=$?
	((rc == code)) || fail "exit code $rc, not $code: $(tail -n 1 "$T/said")" || return
	[[ $(wc -l <"$T/said") == 1 ]] || fail "$(wc -l <"$T/said") lines, not one: $(head -n 2 "$T/said" | paste -sd '|')" || return
	grep -qE "$pattern" "$T/said" || fail "does not say /$pattern/: $(cat "$T/said")" || return
	[[ "$(state) $(ops)" == "$before" ]] || fail "was $before, now $(state) $(ops)" || return
	detail "exit code $rc: $(cat "$T/said")"
}

# The newest clang that there is.
clang() {
	local name
	name=$(compgen -c clang- | grep -E '^clang-[0-9]+$' | sort -Vu | tail -n 1) || name=clang
	"$name" "$@"
}

not_root() {
	refused 10 root setpriv --reuid 65534 --regid 65534 --clear-groups scx_fulcrum
}

jit_off() {
	local rc=0
	echo 0 >/proc/sys/net/core/bpf_jit_enable
	refused 13 bpf_jit_enable scx_fulcrum || rc=1
	echo 1 >/proc/sys/net/core/bpf_jit_enable
	return "$rc"
}

other_scheduler() {
	local rc=0 other
	clang -g -O2 -target bpf -c "$GUEST/other.bpf.c" -o "$T/other.bpf.o" || fail "other.bpf.c does not compile" || return
	fulcrum-work other "$T/other.bpf.o" >"$T/other.log" 2>&1 &
	other=$!
	await 60 grep -q attached "$T/other.log" || fail "the other one: $(tail -n 1 "$T/other.log")" || return
	[[ $(ops) == other ]] || fail "root/ops is $(ops), not other" || return
	refused 15 other scx_fulcrum || rc=1
	kill -TERM "$other"
	await 60 gone "$other" || fail "the other one did not end" || return
	wait "$other" || true
	return "$rc"
}

second() {
	local rc=0
	agent_start || return
	refused 16 "$AGENT|runs|running" scx_fulcrum || rc=1
	agent_stop || return
	return "$rc"
}

nobody_to_monitor() {
	refused 40 scx_fulcrum scx_fulcrum --monitor 1
}

starts_after_all() {
	agent_start || return
	agent_stop || return
	detail "attached and detached after all refusals"
}

step non-root not_root
step bpf-jit-off jit_off
step other-scheduler other_scheduler
step second-fulcrum second
step monitor-without-fulcrum nobody_to_monitor
step starts-afterwards starts_after_all
finish
