# shellcheck shell=bash
# Other schedulers for scripts/bench: published crates, installed into the cache once.

PEERS=$CACHE/peers

# peer CRATE : prints its program's path, installing the crate first if need be. Says why where that fails.
peer() {
	local crate=$1 log=$PEERS/$1.log
	if [[ ! -x $PEERS/bin/$crate ]]; then
		[[ $crate =~ ^[a-z0-9_-]+$ ]] || die 2 "--with $crate: a crate's name, a path with a slash, or NAME=PATH"
		mkdir -p "$PEERS"
		say "$crate: building it (minutes; log: $log)"
		if ! BPF_CLANG=$PROJECT/scripts/lib/clang nice -n 19 cargo install --quiet --locked --root "$PEERS" "$crate" >"$log" 2>&1; then
			say "$crate: left out, it did not build: $(grep -m 1 '^error' "$log" || tail -n 1 "$log")"
			return 1
		fi
	fi
	echo "$PEERS/bin/$crate"
}
