#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The completion scripts in real shells: what a user who presses TAB is offered.
#
# usage: test_completion.sh NAUTILUS
set -euo pipefail
nautilus=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
touch one.naut two.naut
failures=0

# What bash offers for the words of a line, the last of which is being written; sorted, in one line.
bash_offers() {
  bash -c '
    source <("$0" completion bash)
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
    _nautilus
    printf "%s\n" "${COMPREPLY[@]}"' "$nautilus" "$@" | LC_ALL=C sort | paste -sd' '
}

expect() { # wanted, got, what
  if [ "$1" != "$2" ]; then
    printf '%s: wanted "%s", got "%s"\n' "$3" "$1" "$2"
    failures=$((failures + 1))
  fi
}

contains() { # word, list, what
  case " $2 " in
    *" $1 "*) ;;
    *)
      printf '%s: "%s" is not among "%s"\n' "$3" "$1" "$2"
      failures=$((failures + 1))
      ;;
  esac
}

expect "check" "$(bash_offers nautilus ch)" "bash, a command"
expect "--emit" "$(bash_offers nautilus compile --em)" "bash, an option"
expect "cubin cuda" "$(bash_offers nautilus compile --emit cu)" "bash, a value"
expect "cubin cuda" "$(bash_offers nautilus compile --emit = cu)" "bash, a value behind ="
expect "one.naut two.naut" "$(bash_offers nautilus check '')" "bash, files"
expect "one.naut" "$(bash_offers nautilus run --schedule one)" "bash, files of an option"
expect "list" "$(bash_offers nautilus db li)" "bash, a command below a command"
expect "" "$(bash_offers nautilus db list --equations)" "bash, no such option"
expect "bash" "$(bash_offers nautilus completion ba)" "bash, values of an argument"
expect "attention" "$(bash_offers nautilus new x --kind att)" "bash, kinds"

# Every command and option that the tool has is offered: both lists come from its help.
mapfile -t commands < <("$nautilus" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ ${#commands[@]} -gt 10 ] || { echo "the help lists ${#commands[@]} commands"; failures=$((failures + 1)); }
offered=$(bash_offers nautilus '')
for command in "${commands[@]}"; do
  contains "$command" "$offered" "bash, all commands"
  options=$(bash_offers nautilus "$command" --)
  while read -r option; do contains "$option" "$options" "bash, options of $command"; done < <(
    "$nautilus" "$command" --help | sed -nE 's/^  (-[a-z],)?(--[a-z-]+).*/\2/p')
done

if command -v zsh >/dev/null 2>&1; then
  "$nautilus" completion zsh >_nautilus
  # A terminal with a real zsh in it: a line is typed, TAB is pressed twice, and what appears is read.
  cat >offers.zsh <<'ZSH'
zmodload zsh/zpty
zpty shell zsh -f -i
typed=$1
zpty -w shell "PROMPT='' RPROMPT='' LISTMAX=10000; unset zle_bracketed_paste; fpath=($2 \$fpath); autoload -Uz compinit; compinit -u -D; cd $2; nautilus() { : }; print read''y"
zpty -r -m shell seen '*ready*'
zpty -w -n shell "$typed"$'\t\t'
seen=
for k in {1..100}; do
  zpty -rt shell part && seen+=$part
  [[ $seen == *$3* ]] && break
  sleep 0.05
done
print -r -- "$seen"
zpty -d shell
ZSH
  zsh_offers() { timeout 20 zsh -f offers.zsh "$1" "$folder" "$2" 2>/dev/null | tr -d '\r\033' || true; }
  zsh_expect() { # line, what must appear
    local got
    got=$(zsh_offers "$1" "$2")
    if [[ $got != *"$2"* ]]; then
      printf 'zsh, %s: "%s" does not appear in: %s\n' "$1" "$2" "$got"
      failures=$((failures + 1))
    fi
  }
  zsh -n _nautilus || failures=$((failures + 1))
  zsh_expect 'nautilus doc' 'nautilus doctor'
  zsh_expect 'nautilus compile --emit cud' '--emit cuda'
  zsh_expect 'nautilus compile --emit=sas' '--emit=sass'
  zsh_expect 'nautilus tune --trial-l' '--trial-limit'
  zsh_expect 'nautilus check one' 'one.naut'
else
  echo "completion: zsh is not here, its script is not tested"
fi

if [ "$failures" -gt 0 ]; then
  echo "completion: $failures failed"
  exit 1
fi
echo "completion: ok"
