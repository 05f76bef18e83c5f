# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# What happens to installed packages: purge, upgrade, removal, and a boot with them. To be sourced.

# What may stay when all of ours is purged, and why: the key DKMS made to sign modules with is the
# machine's, and perhaps enrolled; depmod's tables are of the kernel that stays.
STAYS='^\./var/lib/dkms/mok\.(key|pub)$|^\./(usr/)?lib/modules/[^/]*/modules\.[a-z.]*$'

# leftovers: paths that were not there before, that no package owns, and that may not stay.
leftovers() {
	cat "$ROOT"/var/lib/dpkg/info/*.list | sed 's,^/,./,; s,^\./\(bin\|sbin\|lib\|lib64\)/,./usr/\1/,' |
		sort -u >"$WORK/$RELEASE/paths.owned"
	paths "$ROOT" | comm -23 - "$WORK/$RELEASE/paths.before" | comm -23 - "$WORK/$RELEASE/paths.owned" |
		grep -vE "$STAYS" || true
}

purge_leaves_nothing() {
	local left
	# shellcheck disable=SC2086 # a list of words
	in_chroot "$ROOT" dpkg --purge $OURS
	[ -z "$(in_chroot "$ROOT" dpkg --audit)" ]
	left=$(leftovers)
	[ -z "$left" ] || {
		say "left behind:"
		say "$left"
		return 1
	}
	[ -z "$(find "$ROOT/etc" "$ROOT/usr" "$ROOT/var/lib" "$ROOT/lib/modules" -name '*kretry*' ! -path '*/var/lib/apt/*')" ]
}

install_builds_module() {
	local said=$WORK/$RELEASE/install.log
	# shellcheck disable=SC2046
	apt "$ROOT" install $(debs_in debs) | tee "$said"
	are_installed "$(version_of_tree)"
	[ -z "$(grep '^kretry-dkms:' "$said" || true)" ]
	is_built "$(version_of_tree)"
}

# One file of the package that was changed, one that was added.
change_configuration() {
	printf '\n# changed\n' >>"$ROOT/etc/kretry.d/example.conf"
	printf '[added]\nbase = 1s\n' >"$ROOT/etc/kretry.d/added.conf"
}

configuration_is_kept() {
	[ "$(tail -n 1 "$ROOT/etc/kretry.d/example.conf")" = '# changed' ]
	[ "$(head -n 1 "$ROOT/etc/kretry.d/added.conf")" = '[added]' ]
}

upgrade_rebuilds() {
	change_configuration
	# shellcheck disable=SC2046
	apt "$ROOT" install $(debs_in newer)
	are_installed "$NEWER"
	is_built "$NEWER"
	configuration_is_kept
	[ ! -e "$ROOT/usr/src/kretry-$(version_of_tree)" ]
	[ "$(in_chroot "$ROOT" kretry --version)" = "kretry $NEWER" ]
}

removal_keeps_configuration() {
	# shellcheck disable=SC2086
	apt "$ROOT" remove $OURS
	[ -z "$(in_chroot "$ROOT" dpkg --audit)" ]
	[ -z "$(modules_of_ours)" ]
	configuration_is_kept
	rm "$ROOT/etc/kretry.d/added.conf"
}

# A machine of the release, with its own kernel and the packages as they are then.
boot() {
	try install_after_purge_builds_module install_builds_module
	umount_chroot "$ROOT"
	try boot_ends_well "$TOP/selftests/package/boot" "$ROOT" "$RELEASE" "$RELEASE_RESULTS"
}

changes_tests() {
	try purge_leaves_nothing purge_leaves_nothing
	try install_with_headers_builds_module install_builds_module
	try upgrade_rebuilds_module_keeps_configuration upgrade_rebuilds
	try removal_keeps_configuration removal_keeps_configuration
	try purge_after_upgrade_leaves_nothing purge_leaves_nothing
	boot
}
