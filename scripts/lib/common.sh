# shellcheck shell=bash
# What setup and vm share: where things are kept, and how to say something or stop.

# shellcheck disable=SC2034  # used by those who source this file
PROJECT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/scx_fulcrum
KERNELS_DIR=$CACHE/kernels
KERNELS_LIST=$PROJECT/scripts/kernels

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# die CODE MESSAGE...
die() {
	local code=$1
	shift
	say "$@"
	exit "$code"
}

# The lines of scripts/kernels without comments: "VERSION FLAVOUR POLICY PACKAGE..."
kernel_lines() { grep -E '^[0-9]' "$KERNELS_LIST"; }

# The versions whose kernel is in the cache, oldest first.
kernels_ready() {
	local f
	for f in "$KERNELS_DIR"/*/release; do
		[[ -e $f ]] || continue
		f=${f%/release}
		echo "${f##*/}"
	done | sort -V
}

find_virtiofsd() {
	local p
	for p in "$CACHE/bin/virtiofsd" "$(type -P virtiofsd || true)" /usr/libexec/virtiofsd /usr/lib/qemu/virtiofsd; do
		# QEMU 7's own virtiofsd has other options; the one wanted here knows --readonly.
		if [[ -n $p && -x $p ]] && [[ $("$p" --help 2>/dev/null) == *--readonly* ]]; then
			echo "$p"
			return 0
		fi
	done
	return 1
}
