# shellcheck shell=bash
# The steps of check.sh about services/scx_fulcrum.service under a real systemd, which runs in a PID namespace of its own
# here with units of ours only: ready when it schedules, within its sandbox, started again or not as it should be.
# shellcheck disable=SC2317  # the steps are called by their names

MANAGER=/lib/systemd/systemd
# The unit's sandbox hides /home and /root, where the checkout may be.
UNIT_DIR=/run/fulcrum-unit
# In a drop-in, in place of the unit's minute.
WATCHDOG_SEC=4

on_manager() { guarded nsenter --target "$MANAGER_PID" --pid --mount "$@"; }
unit() { on_manager systemctl "$@"; }
property() { unit show scx_fulcrum --property "$1" --value; }

# drop_in LINE : of the unit's [Service], in place of the last one; what failed or was counted before is forgotten.
drop_in() {
	printf '[Service]\n%s\n' "$1" >"$UNIT_DIR/units/scx_fulcrum.service.d/check.conf"
	unit daemon-reload
	unit reset-failed scx_fulcrum 2>/dev/null || true
}

manager_starts() {
	local target
	[[ -x $MANAGER ]] || fail "no $MANAGER: run scripts/setup" || return
	mkdir -p "$UNIT_DIR/units/scx_fulcrum.service.d"
	cp "$(command -v scx_fulcrum)" "$UNIT_DIR/"
	sed "s|^ExecStart=/usr/bin/|ExecStart=$UNIT_DIR/|" services/scx_fulcrum.service >"$UNIT_DIR/units/scx_fulcrum.service"
	for target in check sysinit basic shutdown; do
		printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$target" >"$UNIT_DIR/units/$target.target"
	done
	unshare --pid --fork --mount --propagation private --kill-child sh -c "
		mount -t proc proc /proc
		exec env container=check SYSTEMD_UNIT_PATH=$UNIT_DIR/units SYSTEMD_LOG_TARGET=console \
			$MANAGER --system --unit=check.target" >"$UNIT_DIR/log" 2>&1 &
	await "$GUARD" pgrep -x systemd >/dev/null || fail "no systemd: $(tail -n 1 "$UNIT_DIR/log")" || return
	MANAGER_PID=$(pgrep -x systemd | head -n 1)
	await "$GUARD" unit is-active --quiet check.target || fail "$(tail -n 1 "$UNIT_DIR/log")" || return
	detail "$("$MANAGER" --version | head -n 1)"
}

# "systemctl start" returns once it schedules, not before.
unit_is_ready() {
	unit start scx_fulcrum || fail "start: $(tail -n 1 "$UNIT_DIR/log")" || return
	attached || fail "started, but sched_ext is $(state)" || return
	detail "$(ops); $(property StatusText)"
	[[ $(property StatusText) == *policy=fair* ]] || fail "its status is '$(property StatusText)'"
}

# Its sandbox leaves what users need, also from outside its PID namespace: to change it and to look at it.
unit_obeys() {
	scx_fulcrum set slice-us=2000 || fail "set: exit code $?" || return
	scx_fulcrum get | grep -q 'slice-us.*2000' || fail "get: $(scx_fulcrum get)" || return
	scx_fulcrum status >"$T/status" || fail "status: exit code $?" || return
	grep -q '^active *yes' "$T/status" || fail "status: $(head -n 1 "$T/status")" || return
	detail "$(head -n 1 "$T/status")"
}

again() { [[ $(property NRestarts) == "$1" ]] && attached; }

unit_killed() {
	drop_in ''
	unit kill --signal=KILL scx_fulcrum
	await "$GUARD" again 1 || fail "restarts: $(property NRestarts), sched_ext is $(state)" || return
	unit stop scx_fulcrum || fail "stop: $(tail -n 1 "$UNIT_DIR/log")" || return
	[[ $(property Result) == success && $(state) == disabled ]] || fail "stopped: $(property Result), sched_ext is $(state)" || return
	detail 'started again; then stopped with success'
}

# It feeds the watchdog while it lives; stopped, it is ended and started again.
unit_watched() {
	local agent
	drop_in "WatchdogSec=$WATCHDOG_SEC"
	unit start scx_fulcrum || fail "start: $(tail -n 1 "$UNIT_DIR/log")" || return
	nap $((2 * WATCHDOG_SEC + 1))
	again 0 || fail "alive, and yet restarts: $(property NRestarts), sched_ext is $(state)" || return
	agent=$(pgrep -x scx_fulcrum)
	kill -STOP "$agent"
	await "$GUARD" again 1 || fail "stopped, and restarts: $(property NRestarts), sched_ext is $(state)" || return
	unit stop scx_fulcrum
	detail "fed for $((2 * WATCHDOG_SEC + 1)) s with $WATCHDOG_SEC s allowed; started again after it was stopped"
}

# What no second start can mend is not tried a second time.
unit_wrong_flag() {
	drop_in 'Environment=SCX_FLAGS=--nope'
	! unit start scx_fulcrum 2>/dev/null || fail 'it started with a wrong flag' || return
	nap 1
	detail "$(property Result), exit code $(property ExecMainStatus), restarts $(property NRestarts)"
	[[ $(property ExecMainStatus) == 2 && $(property NRestarts) == 0 && $(property ActiveState) == failed ]] ||
		fail "$(property ActiveState), exit code $(property ExecMainStatus), restarts $(property NRestarts)"
}

unit_profile() {
	step systemd manager_starts
	step unit-ready unit_is_ready
	step unit-obeys unit_obeys
	step unit-killed unit_killed
	step unit-watchdog unit_watched
	step unit-wrong-flag unit_wrong_flag
	step kernel-log log_clean
}
