# shellcheck shell=bash
# The step of check.sh about CPUs of different speed. The VM's are alike, so sysfs is covered by a copy that says otherwise:
# what is shown is that the kernel takes the program with that part in it, and that tasks go where it says.
# shellcheck disable=SC2317  # the steps are called by their names

SYSFS_CPU=/sys/devices/system/cpu

# The CPU that a task ran on last.
cpu_of() {
	first_line "/proc/$1/stat"
	LINE=${LINE##*) }
	read -ra LINE <<<"$LINE"
	echo "${LINE[36]}"
}

runs_on() { [[ $(cpu_of "$1") == "$2" ]]; }

# slow_but_first : CPU 0 is fast, all others are not, says sysfs.
slow_but_first() {
	local copy=$T/cpu cpu
	mkdir "$copy"
	# Some files can't be read; none that matters.
	cp -r --no-dereference "$SYSFS_CPU/." "$copy/" 2>/dev/null || true
	for ((cpu = 0; cpu < CPUS; cpu++)); do
		echo "$((cpu ? 446 : 1024))" >"$copy/cpu$cpu/cpu_capacity" || return
	done
	mount --bind "$copy" "$SYSFS_CPU"
}

fast_and_slow() {
	local rc=0
	LOADS=()
	((CPUS > 1)) || fail "one CPU only" || return
	slow_but_first || fail "sysfs can't be covered" || return
	agent_start || rc=1
	grep -q 'CPUs 0 (capacity 1024) are faster' "$T/agent.log" || fail "not told: $(paste -sd ';' "$T/agent.log")" || rc=1
	endless "$((CPUS - 1))"
	nap 1
	taskset -pc "0-$((CPUS - 1))" "${LOADS[0]}" >/dev/null
	await 10 runs_on "${LOADS[0]}" 0 || fail "a busy task stays on a slow CPU" || rc=1
	end_loads
	messages || rc=1
	((rc)) || still_ours || rc=1
	umount "$SYSFS_CPU"
	[[ -z $AGENT ]] || agent_stop || rc=1
	((rc == 0)) || return
	detail "a busy task went over to the fast CPU; $(cat "$T/detail")"
}
