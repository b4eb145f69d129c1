# shellcheck shell=bash
# The steps of check.sh in which scx_fulcrum is changed while it runs.
# shellcheck disable=SC2317  # the steps are called by their names

CONTROL=/run/scx_fulcrum/control

starts_with_a_policy() {
	agent_start --policy latency --slice-us 700 || return
	await "$GUARD" test -S "$CONTROL" || fail "no control socket" || return
	is_set latency 700 24000 1 || return
	[[ $(stat -c %a "$CONTROL") == 600 ]] || fail "$CONTROL is open to others" || return
	detail "$(scx_fulcrum get | paste -sd ' ')"
}

# is_set POLICY SLICE CREDIT GENERATION
is_set() {
	local expected said
	expected=$(printf 'policy=%s\nslice-us=%s\ncredit-us=%s\ngeneration=%s\nseen-by=' "$@")
	said=$(scx_fulcrum get) || fail "get: exit code $?" || return
	[[ $said == "$expected"* ]] || fail "get says $(paste -sd ' ' <<<"$said")"
}

# not_set CODE WORD COMMAND... : it ends with CODE and one line that has WORD.
not_set() {
	local code=$1 word=$2 rc=0
	shift 2
	"$@" >"$T/said" 2>&1 || rc=$?
	((rc == code)) || fail "$*: exit code $rc, not $code" || return
	[[ $(wc -l <"$T/said") == 1 ]] || fail "$*: not one line: $(paste -sd '|' "$T/said")" || return
	grep -q -- "$word" "$T/said" || fail "$*: does not say $word: $(cat "$T/said")"
}

refuses() {
	local bad
	for bad in policy=fast mode=turbo slice-us=99 slice-us=100001 credit-us=30001 speed=1 nonsense; do
		not_set 2 "${bad%%=*}" scx_fulcrum set credit-us=1 "$bad" || return
	done
	not_set 40 root setpriv --reuid 65534 --regid 65534 --clear-groups scx_fulcrum set slice-us=1000 || return
	is_set latency 700 24000 1 || return
	detail "7 bad values, and a user who is not root: still generation 1"
}

# A thousand changes beside stress and sleepers, in real time so that they don't wait for what they test.
changes() {
	local loads=() load rc=0
	stress-ng --temp-path "$T" --timeout "$((GUARD * 2))" --aggressive -M -c "$CPUS" -f "$CPUS" \
		--affinity "$CPUS" --affinity-delay 1 --affinity-pin >"$T/stress.log" 2>&1 &
	loads+=($!)
	fulcrum-work sleepers --seconds "$((GUARD * 2))" >"$T/sleepers.log" 2>&1 &
	loads+=($!)
	chrt -f -p 50 "$AGENT"
	guarded chrt -f 50 fulcrum-work knobs --changes 1000 --every-ms 10 --seed "$RANDOM" || rc=1
	for load in "${loads[@]}"; do
		! gone "$load" || fail "a load ended early: $(tail -qn 1 "$T/stress.log" "$T/sleepers.log" | paste -sd ';')" || rc=1
		kill -TERM "$load" 2>/dev/null || true
		await "$GUARD" gone "$load" || fail "a load did not end within $GUARD s" || rc=1
	done
	((rc == 0)) || return
	detail "$(sed -n 's/^knobs: //p' "$T/out")"
}

# Afterwards it is what it would have been from the start.
fair_again() {
	scx_fulcrum set mode=auto || fail "set: exit code $?" || return
	shares
}

nobody_to_change() {
	not_set 40 'start scx_fulcrum' scx_fulcrum get || return
	not_set 40 'start scx_fulcrum' scx_fulcrum set policy=fair || return
	not_set 2 fast scx_fulcrum set policy=fast
}

policies_profile() {
	step nobody-to-change nobody_to_change
	step starts-with-a-policy starts_with_a_policy
	step refuses-bad-values refuses
	step thousand-changes changes
	step shares-afterwards fair_again
}
