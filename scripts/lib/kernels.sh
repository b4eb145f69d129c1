# shellcheck shell=bash
# How to get a kernel out of Debian's archive into the cache folder without touching the machine's own apt.

APT_DIR=$CACHE/apt

# The address of the Debian archive that this machine's apt uses. No address is written in any file of the project.
debian_archive() {
	if [[ -n ${FULCRUM_DEBIAN_ARCHIVE:-} ]]; then
		echo "$FULCRUM_DEBIAN_ARCHIVE"
		return
	fi
	# shellcheck disable=SC2016  # the names are apt's to expand
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)' 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" && $3 == "main" { print $4; exit }'
}

# private_apt NAME SUITE... : prints the path of an apt configuration with these suites alone, its lists refreshed at most
# every six hours. To be used as APT_CONFIG.
private_apt() {
	local name=$1 dir=$APT_DIR/$1 archive suite key=/usr/share/keyrings/debian-archive-keyring.gpg
	shift
	archive=$(debian_archive)
	[[ -n $archive ]] || return 1
	[[ -e $key ]] || key=''
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	for suite in "$@"; do
		echo "deb ${key:+[signed-by=$key]} $archive $suite main"
	done >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-EOF
		Dir::Etc::sourcelist "$dir/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::State::lists "$dir/lists";
		Dir::Cache "$dir/cache";
		APT::Sandbox::User "$(id -un)";
		Acquire::Languages "none";
		Acquire::Retries "3";
	EOF
	if [[ -z $(find "$dir/fresh" -mmin -360 2>/dev/null) ]]; then
		APT_CONFIG=$dir/apt.conf apt-get update -qq -o APT::Update::Error-Mode=any >"$dir/update.log" 2>&1 || return 1
		touch "$dir/fresh"
	fi
	echo "$dir/apt.conf"
}

# A kernel image is a small unpacker around the compressed kernel. Unpacking it once here instead of at each boot saves
# more than a second per VM. Offsets: the kernel's x86 boot protocol (setup_sects, payload_offset, payload_length).
unpack_vmlinux() {
	local image=$1 to=$2 sects offset length
	field() { od -An -t "u$2" -j "$1" -N "$2" "$image" | tr -d ' '; }
	sects=$(field $((0x1f1)) 1)
	offset=$((($(field $((0x248)) 4)) + (sects + 1) * 512))
	length=$(field $((0x24c)) 4)
	# zstd finds the kernel's size after the payload's end and complains about it; the ELF header tells if all went well.
	tail -c "+$((offset + 1))" "$image" | head -c "$length" | zstd -dcq >"$to.part" 2>/dev/null || true
	if [[ $(head -c 4 "$to.part" | tail -c 3) == ELF ]] && (($(stat -c %s "$to.part") > 20000000)); then
		mv "$to.part" "$to"
	else
		rm -f "$to.part"
	fi
}

# lay_out VERSION RELEASE UNPACKED : from the packages' tree to kernels/VERSION/{vmlinuz,vmlinux,boot,lib/modules}.
lay_out() {
	local version=$1 release=$2 from=$3 to=$KERNELS_DIR/$1.new modules image config
	rm -rf "$to"
	mkdir -p "$to/boot" "$to/lib/modules/$release"
	modules=$from/usr/lib/modules/$release
	[[ -d $modules ]] || modules=$from/lib/modules/$release
	for image in "$modules/vmlinuz" "$from/boot/vmlinuz-$release"; do
		[[ -f $image ]] && mv "$image" "$to/vmlinuz"
	done
	[[ -f $to/vmlinuz ]] || return 1
	for config in "$modules/config" "$from/boot/config-$release"; do
		[[ -f $config ]] && cp "$config" "$to/boot/config-$release"
	done
	if [[ -d $modules ]]; then
		cp -a "$modules/." "$to/lib/modules/$release/"
		# Only for peers and workloads that want a module; the kernels boot without any.
		PATH=$PATH:/usr/sbin:/sbin depmod -b "$to" "$release" 2>/dev/null || true
	fi
	unpack_vmlinux "$to/vmlinuz" "$to/vmlinux"
	echo "$release" >"$to/release"
	rm -rf "${KERNELS_DIR:?}/$version"
	mv "$to" "$KERNELS_DIR/$version"
}

# missing VERSION REASON : remembered, so that vm --list-kernels and the tests can name what was skipped and why.
missing() {
	mkdir -p "$KERNELS_DIR"
	echo "$2" >"$KERNELS_DIR/$1.missing"
	say "kernel $1: skipped: $2"
}

# nearest_newer VERSION FLAVOUR PACKAGE : the lowest version above VERSION that the index has.
nearest_newer() {
	local head=${3%%@*}
	{
		echo "$1"
		APT_CONFIG=$APT_CONF apt-cache pkgnames "$head" | sed -n "s/^$head\([0-9.]*\)+$2\$/\1/p"
	} | sort -uV | sed "1,/^$1\$/d" | head -n 1
}

in_index() { APT_CONFIG=$APT_CONF apt-cache show --no-all-versions "$1" >/dev/null 2>&1; }

# fetch_kernel VERSION FLAVOUR POLICY PACKAGE...
fetch_kernel() {
	local version=$1 flavour=$2 policy=$3 p name want=() dir newer
	shift 3
	if ! in_index "${1//@/$version+$flavour}"; then
		newer=
		[[ $policy == or-newer ]] && newer=$(nearest_newer "$version" "$flavour" "$1")
		if [[ -z $newer ]]; then
			missing "$version" "no longer in the package index"
			return 0
		fi
		missing "$version" "no longer in the package index; $newer taken in its place"
		version=$newer
		[[ -e $KERNELS_DIR/$version/release ]] && return 0
	fi
	for p in "$@"; do
		name=${p#\?}
		name=${name//@/$version+$flavour}
		if [[ $p != \?* ]] || in_index "$name"; then
			want+=("$name")
		fi
	done
	say "kernel $version: fetching ${want[*]}"
	dir=$(mktemp -d "$CACHE/fetch.XXXXXX")
	if (cd "$dir" && APT_CONFIG=$APT_CONF apt-get download -qq "${want[@]}") >"$dir/log" 2>&1; then
		for p in "$dir"/*.deb; do dpkg-deb -x "$p" "$dir/tree"; done
		if lay_out "$version" "$version+$flavour" "$dir/tree"; then
			rm -f "$KERNELS_DIR/$version.missing"
		else
			missing "$version" "its packages hold no kernel image"
		fi
	else
		missing "$version" "download failed: $(tail -n 1 "$dir/log")"
	fi
	rm -rf "$dir"
}

# fetch_kernels [VERSION...] : those of the list (all, or these) that aren't in the cache yet.
fetch_kernels() {
	local line words todo=() conf
	while read -r line; do
		read -ra words <<<"$line"
		if (($#)) && [[ " $* " != *" ${words[0]} "* ]]; then continue; fi
		[[ -e $KERNELS_DIR/${words[0]}/release ]] && continue
		todo+=("$line")
	done < <(kernel_lines)
	((${#todo[@]})) || return 0
	mkdir -p "$KERNELS_DIR"
	if ! conf=$(private_apt kernels trixie-backports); then
		for line in "${todo[@]}"; do
			missing "${line%% *}" "no Debian archive to be reached by this machine's apt (FULCRUM_DEBIAN_ARCHIVE=ADDRESS names one)"
		done
		return 0
	fi
	APT_CONF=$conf
	for line in "${todo[@]}"; do
		read -ra words <<<"$line"
		fetch_kernel "${words[@]}"
	done
}
