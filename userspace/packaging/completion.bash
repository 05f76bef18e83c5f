# SPDX-License-Identifier: GPL-2.0-only OR MIT
# shellcheck shell=bash
#
# Completion of kretry for bash. Verbs and options are what kretry itself says with --help, presets and
# policies what it lists.

# _kretry_verbs WORDS...: those that the help of the command with these words lists
_kretry_verbs() {
	"$@" --help 2>/dev/null | sed -nE 's/^  ([a-z]+)  +[a-z].*/\1/p'
}

# _kretry_options WORDS...: the options in that help, with "=" where a value follows
_kretry_options() {
	{
		printf -- '--help\n'
		"$@" --help 2>/dev/null | grep -oE '(^|[[ ,])--?[a-z][a-z-]*( [A-Z]+)?' |
			sed -E 's/^[[ ,]//; s/ [A-Z]+$/=/'
	} | sort -ru | awk '!seen[$0]++ && !seen[$0 "="]'
}

# _kretry_settings KRETRY: keys of a policy file, with "="
_kretry_settings() {
	"$1" policy add --help 2>/dev/null | sed -nE 's/^  ([a-z_]+(\.[a-z_]+)?)  +.*/\1=/p'
}

_kretry_policies() {
	"$1" policy list 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_kretry_presets() {
	"$1" policy presets 2>/dev/null | awk '{ print $1 }'
}

# _kretry_words WORD...: those that begin with the current one
_kretry_words() {
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "$cur")
}

_kretry_files() {
	compopt -o filenames 2>/dev/null || :
	mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}

# _kretry_value KRETRY OPTION: what may follow it
_kretry_value() {
	case $2 in
	--preset) _kretry_words "$(_kretry_presets "$1")" ;;
	--policy) _kretry_words "$(_kretry_policies "$1")" ;;
	--config) _kretry_files -d ;;
	--device | --retry-after-from) _kretry_files -f ;;
	--jitter) _kretry_words none full equal proportional additive ;;
	--codes) _kretry_words exit curl ;;
	--stdin) _kretry_words replay null inherit ;;
	--output) _kretry_words pass last success ;;
	--attempts) _kretry_words unlimited ;;
	--event) _kretry_words transient throttled unknown permanent ok cancelled begin ;;
	--set)
		compopt -o nospace 2>/dev/null || :
		_kretry_words "$(_kretry_settings "$1")" ;;
	*) COMPREPLY=() ;;
	esac
}

# _kretry_argument KRETRY VERB: what is neither an option nor the value of one
_kretry_argument() {
	case $2 in
	policy\ show | policy\ rm | next | stat) _kretry_words "$(_kretry_policies "$1")" ;;
	force) _kretry_words "$(_kretry_policies "$1")" open closed metrics auto ;;
	policy\ apply) _kretry_files -f ;;
	policy\ add)
		compopt -o nospace 2>/dev/null || :
		_kretry_words "$(_kretry_settings "$1")" ;;
	*) COMPREPLY=() ;;
	esac
}

# _kretry_command INDEX: the command that kretry run runs begins there
_kretry_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif [ "$COMP_CWORD" -eq "$1" ]; then
		_kretry_files -c
	else
		_kretry_files -f
	fi
}

_kretry() {
	local kretry=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]-} first=2 at options word
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		_kretry_words "$(_kretry_verbs "$kretry")" --help --version
		return
	fi
	if [ "$verb" = policy ]; then
		if [ "$COMP_CWORD" -eq 2 ]; then
			_kretry_words "$(_kretry_verbs "$kretry" policy)" --help
			return
		fi
		verb+=" ${COMP_WORDS[2]}" first=3
	fi
	# shellcheck disable=SC2086 # one word or two
	options=$'\n'$(_kretry_options "$kretry" $verb)$'\n'
	for ((at = first; at < COMP_CWORD; at++)); do
		word=${COMP_WORDS[at]}
		if [[ $options == *$'\n'"$word="$'\n'* ]]; then
			at=$((at + 1))
			if [ "$at" -eq "$COMP_CWORD" ]; then
				_kretry_value "$kretry" "$word"
				return
			fi
		elif [[ $verb == run && ( $word == -- || $word != -* ) ]]; then
			[ "$word" != -- ] || at=$((at + 1))
			_kretry_command "$at"
			return
		fi
	done
	if [[ $cur == -* ]]; then
		_kretry_words "${options//=/}"
	elif [ "$verb" = run ]; then
		_kretry_command "$COMP_CWORD"
	else
		_kretry_argument "$kretry" "$verb"
	fi
}

complete -F _kretry kretry
