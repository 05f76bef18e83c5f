# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# The source package, and the binary packages made of it where nothing else is. To be sourced.

BUILD_ROOT=
# The newer version that changes.sh upgrades to.
NEWER=1.0.99

# version_of_tree: the one place that the others must agree with.
version_of_tree() {
	sed -n 's/^VERSION[[:space:]]*:= *//p' "$TOP/userspace/Makefile"
}

make_build_chroot() {
	make_chroot "$RELEASE" build "$BUILD_ROOT"
	mkdir "$BUILD_ROOT/src"
}

source_is_made() {
	"$TOP/userspace/packaging/make-source" --source-only "$WORK/$RELEASE/source"
	cp "$WORK/$RELEASE/source"/kretry_* "$BUILD_ROOT/src/"
}

# Nothing but what the source package itself asks for is installed.
packages_build() {
	in_chroot "$BUILD_ROOT" sh -euc 'cd /src && dpkg-source -x kretry_*.dsc tree'
	apt "$BUILD_ROOT" build-dep "/src/tree"
	in_chroot "$BUILD_ROOT" sh -euc 'cd /src/tree && dpkg-buildpackage -us -uc -b'
	in_chroot "$BUILD_ROOT" sh -euc 'mkdir /src/debs && mv /src/*.deb /src/debs && ls /src/debs'
}

# The same source as a later version, for the upgrade.
newer_packages_build() {
	# shellcheck disable=SC2016 # for the inner shell
	in_chroot "$BUILD_ROOT" sh -euc '
		cd /src/tree
		sed -i "s/^VERSION.*/VERSION := $2/" userspace/Makefile
		sed -i "s/MODULE_VERSION(\"$1\")/MODULE_VERSION(\"$2\")/" module/main.c
		{
			printf "kretry (%s-1) unstable; urgency=medium\n\n  * A later version.\n\n" "$2"
			printf " -- The kretry developers <kretry@example.org>  %s\n\n" "$(date -R)"
		} | cat - debian/changelog >../changelog
		mv ../changelog debian/changelog
		dpkg-buildpackage -us -uc -b
		mkdir /src/newer && mv /src/*.deb /src/newer' sh "$(version_of_tree)" "$NEWER"
}

# Without a word: overrides say what is right all the same, and why.
lintian_is_silent() {
	in_chroot "$BUILD_ROOT" sh -euc 'cd /src && lintian --allow-root --fail-on error,warning *.dsc debs/*.deb'
}

# The example that README shows, with what the packages install, dynamically and statically, against
# a server on a network of their own.
example_runs() {
	cp "$TOP/userspace/examples/retry.c" "$TOP/selftests/package/serve.py" "$BUILD_ROOT/src/"
	# shellcheck disable=SC2016 # for the inner shell
	in_chroot "$BUILD_ROOT" sh -euc '
		cd /src
		dpkg -i debs/libkretry1_*.deb debs/libkretry-dev_*.deb
		[ "$(pkg-config --modversion kretry)" = "$1" ]
		cc -Wall -Wextra -Werror -o dynamic retry.c $(pkg-config --cflags --libs kretry)
		cc -Wall -Wextra -Werror -static -o static retry.c $(pkg-config --cflags --libs --static kretry)
		ldd dynamic | grep libkretry.so.1
		for program in dynamic static; do
			[ "$(unshare --net python3 serve.py ./$program)" = done ]
		done' sh "$(version_of_tree)"
}

build_tests() {
	BUILD_ROOT=$WORK/$RELEASE/build
	needed build_chroot_is_made make_build_chroot
	needed source_package_is_made source_is_made
	needed packages_build packages_build
	try packages_lintian_silent lintian_is_silent
	try example_with_dev_package_runs example_runs
	needed newer_packages_build newer_packages_build
	mkdir -p "$WORK/$RELEASE/debs"
	cp -R "$BUILD_ROOT/src/debs" "$BUILD_ROOT/src/newer" "$WORK/$RELEASE/debs/"
	umount_chroot "$BUILD_ROOT"
	rm -rf "$BUILD_ROOT"
}
