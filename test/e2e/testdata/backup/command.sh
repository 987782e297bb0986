#!/bin/sh
# Runs the commands that docs/operations.md gives for a backup and its restoration, as
# they stand there, for other directories.
#
#   command.sh backup STATE ARCHIVE
#   command.sh restore ARCHIVE STATE
set -eu
docs=$(dirname "$0")/../../../../docs/operations.md
case $1 in
backup) state=$2 archive=$3 ;;
restore) archive=$2 state=$3 ;;
esac
lines=$(awk -v mark="<!-- $1 -->" '$0 == mark { found = 1; next } found && /^```/ { fences++; next } found && fences == 1' "$docs")
[ -n "$lines" ] || { echo "docs/operations.md has no commands marked $1" >&2; exit 1; }
eval "$(printf '%s\n' "$lines" | sed "s|/var/lib/cofferdam|$state|g; s|/root/cofferdam.tar|$archive|g")"
