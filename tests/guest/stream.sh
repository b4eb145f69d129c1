# shellcheck shell=bash
# The steps of check.sh in which scx_fulcrum is watched.
# shellcheck disable=SC2317  # the steps are called by their names

STREAM=/run/scx_fulcrum/stream
METRICS=127.0.0.1:9777

starts_watched() {
	agent_start --metrics "$METRICS" --socket-group 65534 || return
	await "$GUARD" test -S "$STREAM" || fail "no stream socket" || return
	[[ $(stat -c '%a %g' "$STREAM") == '660 65534' ]] || fail "$STREAM is $(stat -c '%a %g' "$STREAM")"
}

client() {
	guarded python3 "$GUEST/stream.py" "$@" >"$T/client" 2>&1 || fail "$1: $(tail -n 1 "$T/client")" || return
	detail "$(cat "$T/client")"
}

# said CODE WORD COMMAND... : it ends with CODE and says WORD.
said() {
	local code=$1 word=$2 rc=0
	shift 2
	"$@" >"$T/said" 2>&1 || rc=$?
	((rc == code)) || fail "$*: exit code $rc, not $code: $(tail -n 1 "$T/said")" || return
	grep -q -- "$word" "$T/said" || fail "$*: does not say $word: $(head -n 3 "$T/said" | paste -sd '|')"
}

answers() { scx_fulcrum status 2>/dev/null | grep -q 'agent      answers'; }

as_nobody() { setpriv --reuid 65534 --regid "$1" --clear-groups "${@:2}"; }

tells_its_status() {
	said 0 'active     yes$' scx_fulcrum status || return
	said 0 'policy     fair (mode auto)' scx_fulcrum status || return
	said 0 '"active":true' scx_fulcrum status --json || return
	said 0 'agent      answers' as_nobody 65534 scx_fulcrum status || return
	said 0 "agent      can't be asked" as_nobody 65533 scx_fulcrum status || return
	detail "as root, as a member of --socket-group, and as neither"
}

HOGS=()
hogs_in_groups() {
	local g i
	echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
	for g in a b; do
		mkdir -p /sys/fs/cgroup/fulcrum-$g
		for ((i = 0; i < CPUS; i++)); do
			(echo "$BASHPID" >/sys/fs/cgroup/fulcrum-$g/cgroup.procs && while :; do :; done) &
			HOGS+=($!)
		done
	done
	echo 300 >/sys/fs/cgroup/fulcrum-b/cpu.weight
	nap 2
	client group
}

explains() {
	said 0 'cgroup     /fulcrum-b' scx_fulcrum explain "${HOGS[-1]}" || return
	said 0 'why  .*\(runs on CPU\|has waited for\)' scx_fulcrum explain "${HOGS[-1]}" || return
	said 2 'no task 999999' scx_fulcrum explain 999999 || return
	said 40 'socket-group' as_nobody 65533 scx_fulcrum explain 1 || return
	scx_fulcrum explain "${HOGS[0]}" >"$T/said" || return
	detail "$(sed -n 's/^why *//p' "$T/said")"
}

records() {
	local lines
	scx_fulcrum recorder >"$T/said" || fail "recorder: exit code $?" || return
	lines=$(grep -c 'ms  CPU' "$T/said")
	((lines > 100)) || fail "only $lines decisions" || return
	echo D >/proc/sysrq-trigger
	await 20 grep -q 'fulcrum: [0-9]*us ago: pid=' /sys/kernel/tracing/trace || fail "no decisions in the kernel's dump" || return
	detail "$lines decisions; and in the kernel's dump"
}

# What a real Prometheus makes of the page, and of a scrape every second.
prometheus() {
	local folder found
	folder=$(dirname "$PROMETHEUS")
	python3 -c 'import urllib.request as u, sys; sys.stdout.write(u.urlopen("http://'$METRICS'/metrics").read().decode())' >"$T/page" ||
		fail "no page" || return
	"$folder/promtool" check metrics <"$T/page" >"$T/lint" 2>&1 || fail "promtool: $(head -n 3 "$T/lint" | paste -sd '|')" || return
	cat >"$T/prometheus.yml" <<-END
		global: {scrape_interval: 1s}
		scrape_configs: [{job_name: fulcrum, static_configs: [{targets: ['$METRICS']}]}]
	END
	"$PROMETHEUS" --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" --web.listen-address=127.0.0.1:9090 \
		>"$T/prometheus.log" 2>&1 &
	HOGS+=($!)
	await "$GUARD" asked 'count_over_time(up{job="fulcrum"}[1m]) > 4' || fail "not scraped: $(tail -n 1 "$T/prometheus.log")" || return
	for found in 'up == 1' 'rate(fulcrum_run_seconds_total[10s]) > 0.5' 'fulcrum_queue_wait_seconds_count > 0' \
		'histogram_quantile(0.99, rate(fulcrum_queue_wait_seconds_bucket[10s])) > 0' 'fulcrum_group_owed_ratio{group="/fulcrum-b"} > 0.5'; do
		asked "$found" || fail "Prometheus does not find $found: $(cat "$T/query")" || return
	done
	detail "$("$PROMETHEUS" --version 2>&1 | head -n 1 | cut -d' ' -f1-3), $(grep -c '^fulcrum' "$T/page") samples a scrape"
}

asked() {
	"$(dirname "$PROMETHEUS")/promtool" query instant http://127.0.0.1:9090 "$1" >"$T/query" 2>&1 && [[ -s $T/query ]] &&
		! grep -qi error "$T/query"
}

calm() {
	kill -KILL "${HOGS[@]}"
	nap 1
	client idle 5
}

# How it ended is told afterwards, also by who was killed.
tells_how_it_ended() {
	agent_stop || return
	said 40 'no: it ended: stopped by a signal' scx_fulcrum status || return
	agent_start || return
	await "$GUARD" answers || fail "no answer after a start" || return
	kill -KILL "$AGENT"
	wait "$AGENT" 2>/dev/null || true
	AGENT=''
	await "$GUARD" detached || fail "state $(state) after SIGKILL" || return
	said 40 'was it killed' scx_fulcrum status || return
	agent_start || return
	await "$GUARD" answers || fail "no answer after a start" || return
	said 0 'ERROR, .*was it killed' scx_fulcrum status || return
	detail "after SIGTERM, after SIGKILL, and by the next one"
}

detached() { [[ $(state) == disabled ]]; }

stream_profile() {
	step starts-watched starts_watched
	step nobody-listens client idle 3
	step status tells_its_status
	step shares-of-cgroups hogs_in_groups
	step explain explains
	step recorder records
	step a-hundred-readers client crowd
	step garbage client garbage 5
	if [[ -x ${PROMETHEUS:-} ]]; then step prometheus prometheus; else skip prometheus "not in the cache: scripts/setup fetches it"; fi
	step calm-afterwards calm
	step last-end tells_how_it_ended
}
