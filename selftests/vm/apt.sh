# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
# A private apt for fetch: its own state, sources and cache under $TMP, the machine's mirror.
# Needs $TMP, say/die of lib.sh. Sets $DEB to the package apt_download has got.

KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
APT_READY=
DEB=

# target_uris PATTERN: URIs of the machine's own sources whose release matches, Debian's first.
# Before the first update apt does not know the origin, so a path ending in /debian* is second.
target_uris() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets --format '$(RELEASE)|$(REPO_URI)|$(COMPONENT)|$(IDENTIFIER)|$(ORIGIN)' 2>/dev/null |
		awk -F'|' -v pattern="$1" '
			$1 !~ pattern || $3 != "main" || $4 != "Packages" || $2 ~ /^cdrom:/ || seen[$2]++ { next }
			{ rank = $5 == "Debian" ? 1 : $2 ~ /\/debian(-security)?\/?$/ ? 2 : 3; print rank, $2 }' |
		sort -s -n -k 1,1 | cut -d ' ' -f 2-
}

# write_sources SUITES: a machine without a security source gets the path beside its archive.
write_sources() {
	local releases main security
	releases='bookworm|trixie|forky|duke|sid|(old)*stable|testing|unstable'
	main=$(target_uris "^($releases)(-updates|-backports)?$" | head -n 1)
	[ -n "$main" ] || die "apt knows no Debian archive: add one to /etc/apt/sources.list and run it again"
	security=$(target_uris "^($releases)(-security|/updates)$" | head -n 1)
	[ -n "$security" ] || security=${main%/}-security
	printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nArchitectures: amd64\nSigned-By: %s\n\n' \
		"$main" "$1" "$KEYRING" "$security" "${1%% *}-security" "$KEYRING" >"$TMP/apt/sources/debian.sources"
}

# The machine's proxy, certificate and date settings are kept, its hooks and trust are not.
write_config() {
	apt-config dump | grep -E '^Acquire::(http|https|ftp|Check-|Retries|Max-|ForceIPv)' >"$TMP/apt/apt.conf" || true
	cat >>"$TMP/apt/apt.conf" <<-END
		Dir::Etc::parts "/dev/null";
		Dir::Etc::main "/dev/null";
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$TMP/apt/sources";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Etc::trusted "/dev/null";
		Dir::Etc::trustedparts "/dev/null";
		Dir::State "$TMP/apt/state";
		Dir::State::status "$TMP/apt/status";
		Dir::Cache "$TMP/apt/cache";
		APT::Architecture "amd64";
		APT::Architectures { "amd64"; };
		APT::Sandbox::User "root";
		APT::Get::AllowUnauthenticated "false";
		APT::Install-Recommends "false";
		Acquire::AllowInsecureRepositories "false";
		Acquire::AllowWeakRepositories "false";
		Acquire::AllowDowngradeToInsecureRepositories "false";
		Acquire::Languages "none";
		Acquire::GzipIndexes "true";
	END
}

private() {
	APT_CONFIG=$TMP/apt/apt.conf "$@"
}

# apt_prepare SUITES: makes the packages of a release and what belongs to it known, once for each set.
apt_prepare() {
	[ "$APT_READY" != "$1" ] || return 0
	[ -r "$KEYRING" ] || die "$KEYRING is missing: run selftests/vm/deps"
	mkdir -p "$TMP/apt/sources" "$TMP/apt/state/lists/partial" "$TMP/apt/cache/archives/partial"
	: >"$TMP/apt/status"
	write_config
	write_sources "$1"
	say "  reading the package lists of $1"
	# One suite may be missing on a mirror: what counts is whether the packages are found.
	private apt-get -q update >"$TMP/apt/log" 2>&1 || true
	APT_READY=$1
}

apt_hint() {
	fail_reason "$TMP/apt/log"
}

# newest_package REGEX
newest_package() {
	private apt-cache pkgnames linux- 2>/dev/null | grep -xE "$1" | sort -V | tail -n 1 || true
}

candidate_version() {
	private apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)" { print $2 }'
}

# header_dependencies HEADERS VERSION: the common headers and kbuild that belong to them.
header_dependencies() {
	private apt-cache show "$1=$2" | sed -n 's/^Depends: //p' | head -n 1 | tr ',' '\n' |
		sed -nE 's/^ *(linux-(headers|kbuild)-[^ ]+).*/\1/p' | sort -u
}

# apt_download PACKAGE VERSION
apt_download() {
	rm -rf "$TMP/deb"
	mkdir -p "$TMP/deb"
	(cd "$TMP/deb" && private apt-get -q download "$1=$2") >"$TMP/apt/log" 2>&1 ||
		die "cannot download $1: $(apt_hint)"
	DEB=$(find "$TMP/deb" -name '*.deb')
	[ -n "$DEB" ] || die "cannot download $1: $(apt_hint)"
}

# apt_download_closure PACKAGE[=VERSION]...: these and all they depend on, into $TMP/apt/cache/archives.
apt_download_closure() {
	rm -f "$TMP"/apt/cache/archives/*.deb
	private apt-get -q -y --download-only install "$@" >"$TMP/apt/log" 2>&1 ||
		die "cannot download ${1%%=*} and what it needs: $(apt_hint)"
}
