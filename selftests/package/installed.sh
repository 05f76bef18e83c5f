# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# The packages on a clean Debian with a kernel and, at first, without its headers. To be sourced.

ROOT=
OURS="kretry kretry-dkms libkretry-dev libkretry1 python3-kretry"

# debs_in KIND: the packages of a version, as the chroot names them. Debugging symbols are another matter.
debs_in() {
	(cd "$ROOT" && find "pkg/$1" -name '*.deb' ! -name '*-dbgsym_*' -printf '/%p\n' | sort)
}

make_clean_chroot() {
	make_chroot "$RELEASE" clean "$ROOT"
	mkdir "$ROOT/pkg"
	cp -R "$WORK/$RELEASE/debs/." "$ROOT/pkg/"
}

# paths ROOT: every path of the chroot, without what is mounted or is apt's and dpkg's own.
paths() {
	(cd "$1" && find . -xdev \( -path ./pkg -o -path ./var/cache -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
		-o -path ./var/log -o -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp \) -prune -o -print) | sort
}

# What ours depend on is installed by itself, so that what ours leave behind can be told from theirs.
dependencies_install() {
	local names
	# shellcheck disable=SC2046 # a list of words
	names=$(apt "$ROOT" -s install $(debs_in debs) | awk '$1 == "Inst" { print $2 }' |
		grep -vxE "$(tr ' ' '|' <<<"$OURS")")
	[ -n "$names" ]
	# shellcheck disable=SC2086
	apt "$ROOT" install $names
	paths "$ROOT" >"$WORK/$RELEASE/paths.before"
}

# are_installed VERSION: all of ours, and nothing is half done.
are_installed() {
	local package
	for package in $OURS; do
		# shellcheck disable=SC2016 # dpkg's own variables
		[ "$(in_chroot "$ROOT" dpkg-query -W -f '${db:Status-Status} ${Version}' "$package")" = "installed $1-1" ]
	done
	[ -z "$(in_chroot "$ROOT" dpkg --audit)" ]
}

modules_of_ours() {
	find "$ROOT/lib/modules" -name 'kretry.ko*'
}

install_without_headers() {
	local said=$WORK/$RELEASE/install.log
	# shellcheck disable=SC2046
	apt "$ROOT" install $(debs_in debs) | tee "$said"
	are_installed "$(version_of_tree)"
	grep -q '^kretry-dkms: .*headers are missing' "$said"
	grep -qE '^kretry-dkms: +apt install .*linux-headers-amd64$' "$said"
	[ -z "$(modules_of_ours)" ]
}

# Where each file belongs.
files_are_in_place() {
	local file version
	version=$(version_of_tree)
	for file in usr/bin/kretry usr/lib/x86_64-linux-gnu/libkretry.so.1 usr/lib/x86_64-linux-gnu/libkretry.so \
		usr/lib/x86_64-linux-gnu/libkretry.a usr/lib/x86_64-linux-gnu/pkgconfig/kretry.pc \
		usr/include/kretry.h usr/include/linux/kretry.h usr/lib/modules-load.d/kretry.conf \
		lib/udev/rules.d/60-kretry.rules lib/systemd/system/kretry.service etc/kretry.d/example.conf \
		usr/share/bash-completion/completions/kretry usr/share/doc/kretry/copyright \
		"usr/src/kretry-$version/dkms.conf" "usr/src/kretry-$version/Kbuild" \
		"usr/src/kretry-$version/module/main.c" "usr/src/kretry-$version/uapi/linux/kretry.h"; do
		[ -e "$ROOT/$file" ] || {
			say "$file is missing"
			return 1
		}
	done
	[ -L "$ROOT/etc/systemd/system/multi-user.target.wants/kretry.service" ]
	grep -qx "PACKAGE_VERSION=\"$version\"" "$ROOT/usr/src/kretry-$version/dkms.conf"
	[ "$(find "$ROOT/usr/local" -name '*kretry*')" = '' ]
}

command_runs() {
	# shellcheck disable=SC2016 # for the inner shell
	in_chroot "$ROOT" sh -eux -c '
		[ "$(kretry --version)" = "kretry $1" ]
		kretry run -- true
		kretry run --attempts 2 --delay 1ms -- false && exit 1 || [ $? = 1 ]
		kretry policy apply --dry-run /etc/kretry.d' sh "$(version_of_tree)"
}

# Every page of the sources, by its name and section.
manuals_are_found() {
	local page name count=0
	for page in "$TOP"/userspace/man/*.[1-8]; do
		name=$(basename "$page")
		in_chroot "$ROOT" man -w "${name##*.}" "${name%.*}" >/dev/null
		count=$((count + 1))
	done
	[ $count -gt 0 ]
}

python_module_imports() {
	in_chroot "$ROOT" python3 -W error -c '
import kretry
assert kretry.__file__.startswith("/usr/lib/python3/dist-packages/"), kretry.__file__'
	[ -z "$(grep -E '\.(so|pyc)$' "$ROOT/var/lib/dpkg/info/python3-kretry.list" || true)" ]
}

completion_loads() {
	# shellcheck disable=SC2016 # for the inner shell
	in_chroot "$ROOT" bash -euc '
		set +u
		. /usr/share/bash-completion/bash_completion
		_completion_loader kretry || [ $? = 124 ]
		complete -p kretry | grep -w _kretry
		COMP_WORDS=(kretry doc) COMP_CWORD=1
		_kretry
		[ "${COMPREPLY[*]}" = doctor ]'
}

# Without the module: that it is not loaded, and what brings it here.
doctor_names_the_headers() {
	local said code=0
	said=$(in_chroot "$ROOT" kretry doctor 2>&1) || code=$?
	say "$said (exit status $code)"
	[ $code != 0 ]
	grep -q '^The library decides' <<<"$said"
	grep -q "^Next: apt install linux-headers-$(uname -r)$" <<<"$said"
}

# is_built_for VERSION KERNEL
is_built_for() {
	local info kernel=${2//+/\\+}
	info=$(in_chroot "$ROOT" modinfo -k "$2" kretry)
	grep -E '^(filename|version|vermagic|license):' <<<"$info"
	grep -qE "^filename: +/(usr/)?lib/modules/$kernel/updates/dkms/kretry\.ko(\.xz)?$" <<<"$info"
	grep -qE "^version: +$1$" <<<"$info"
	grep -qE "^vermagic: +$kernel " <<<"$info"
	grep -qE '^license: +Dual MIT/GPL$' <<<"$info"
	in_chroot "$ROOT" dkms status -m kretry -v "$1" -k "$2" | grep ': installed'
}

# is_built VERSION: a module for every kernel with headers here, and for nothing else.
is_built() {
	local kernel count=0
	for kernel in "$ROOT"/lib/modules/*; do
		# Seen from inside: build may be an absolute link.
		in_chroot "$ROOT" test -e "/lib/modules/${kernel##*/}/build/include" || continue
		[ "${kernel##*/}" != "$(uname -r)" ]
		is_built_for "$1" "${kernel##*/}"
		count=$((count + 1))
	done
	[ $count -gt 0 ]
	[ "$(modules_of_ours | wc -l)" = $count ]
}

headers_bring_module() {
	apt "$ROOT" install linux-headers-amd64
	[ -z "$(in_chroot "$ROOT" dpkg --audit)" ]
	is_built "$(version_of_tree)"
}

installed_tests() {
	ROOT=$WORK/$RELEASE/clean
	needed clean_chroot_is_made make_clean_chroot
	needed dependencies_install dependencies_install
	try install_without_headers_is_whole install_without_headers
	try files_are_in_place files_are_in_place
	try command_runs command_runs
	try manuals_are_found manuals_are_found
	try python_module_imports python_module_imports
	try completion_loads completion_loads
	try doctor_without_headers_names_them doctor_names_the_headers
	try headers_later_build_module headers_bring_module
}
