# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# Debian's releases as chroots: base tarballs in the cache, copies of them to work in. To be sourced
# after lib.sh and apt.sh. All mounts are made in the mount namespace that check has entered.

CHROOTS=$CACHE/chroots
# Part of a base's name: raise it when what goes into the bases changes.
CHROOT_RECIPE=1
# So that updates that come out meanwhile are not installed anew in every run.
CHROOT_DAYS=7
# To build in: what every builder has, and lintian; the build dependencies are for apt to find.
BUILD_BASE=build-essential,lintian,pkg-config,ca-certificates
# To install in: a Debian that could boot, without headers.
CLEAN_BASE=linux-image-amd64,systemd-sysv,udev,dbus,kmod,man-db,bash-completion,zstd,ca-certificates

# base_file RELEASE KIND
base_file() {
	say "$CHROOTS/$1-$2-$CHROOT_RECIPE.tar.zst"
}

# is_fresh FILE
is_fresh() {
	[ -n "$(find "$1" -mtime -$CHROOT_DAYS 2>/dev/null)" ]
}

# debs RELEASE: where apt keeps what it has downloaded for that release.
debs() {
	say "$CHROOTS/$1-debs"
}

# make_base RELEASE KIND PACKAGES: by mmdebstrap, from the machine's own mirror.
make_base() {
	local release=$1 file log=$BUILD/logs/package-$1-base.log
	file=$(base_file "$1" "$2")
	! is_fresh "$file" || return 0
	mkdir -p "$TMP/apt/sources" "$(debs "$release")"
	[ "$2" != clean ] || find "$(debs "$release")" -name '*.deb' -delete
	: >"$TMP/apt/log"
	write_config
	write_sources "$release $release-updates"
	# The lists and hooks are the chroot's own; the machine's proxy and date settings are kept.
	grep '^Acquire::' "$TMP/apt/apt.conf" >"$TMP/apt/acquire.conf"
	mmdebstrap --mode=root --variant=minbase --format=tar --include="$3" --skip=output/mknod \
		--aptopt="$TMP/apt/acquire.conf" --aptopt='APT::Install-Recommends "false"' \
		--dpkgopt=force-unsafe-io "$release" "$TMP/base.tar" "$TMP/apt/sources/debian.sources" \
		</dev/null >"$log" 2>&1 || die "cannot make a Debian $release: $(fail_reason "$log") (log: $log)"
	zstd -q -T0 -1 --rm -f "$TMP/base.tar" -o "$file.tmp" || die "cannot write $file: is the disk full?"
	mv "$file.tmp" "$file"
}

# make_bases RELEASE: those that are missing or old.
make_bases() {
	local TMP=$WORK/$1/tmp
	mkdir -p "$TMP"
	make_base "$1" clean "$CLEAN_BASE"
	make_base "$1" build "$BUILD_BASE"
	rm -rf "$TMP"
}

# Nodes of the machine's /dev, one by one: a device of ours on it must not be in the chroot.
mount_dev() {
	local dev=$1/dev node
	mount -t tmpfs -o mode=755 tmpfs "$dev"
	for node in null zero full random urandom tty; do
		: >"$dev/$node"
		mount --bind "/dev/$node" "$dev/$node"
	done
	mkdir "$dev/pts" "$dev/shm"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$dev/pts"
	mount -t tmpfs tmpfs "$dev/shm"
	ln -s pts/ptmx "$dev/ptmx"
	ln -s /proc/self/fd "$dev/fd"
	ln -s fd/0 "$dev/stdin"
	ln -s fd/1 "$dev/stdout"
	ln -s fd/2 "$dev/stderr"
}

# make_chroot RELEASE KIND ROOT: unpacks a base and mounts what it needs.
make_chroot() {
	local root=$3
	mkdir -p "$root"
	# By tar itself: before a pipe it may be done, at the end of the archive, sooner than who fills it.
	tar -x -I zstd -f "$(base_file "$1" "$2")" -C "$root" --numeric-owner --exclude='./dev/*' ||
		die "cannot unpack a Debian $1 into $root: is the disk full?"
	mount_dev "$root"
	mount -t proc proc "$root/proc"
	mount -t sysfs -o ro sysfs "$root/sys"
	mount -t tmpfs tmpfs "$root/tmp"
	mount --bind "$(debs "$1")" "$root/var/cache/apt/archives"
	# No daemon is started in a chroot.
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	in_chroot "$root" apt-get -q update
}

# umount_chroot ROOT
umount_chroot() {
	local dir
	for dir in var/cache/apt/archives tmp sys proc; do
		umount "$1/$dir"
	done
	umount -R "$1/dev"
}

# in_chroot ROOT COMMAND...
in_chroot() {
	local root=$1
	shift
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
		LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 "$@"
}

# apt ROOT COMMAND...: as in a script, keeping changed configuration files.
apt() {
	local root=$1
	shift
	in_chroot "$root" apt-get -q -y -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-unsafe-io \
		-o Dpkg::Options::=--force-confold -o APT::Keep-Downloaded-Packages=true \
		--no-install-recommends "$@"
}
