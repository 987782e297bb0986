#!/bin/sh
# Compiles Go's standard library for a template, once, instead of in every sandbox.
# It needs no tree but Go's own, since Go's programs are static: so it runs beside
# the installation of packages.
#
#   golibrary.sh TREE ARCHIVE
#
# ARCHIVE has Go's files; the compiled ones are left in TREE. It runs as root, the
# host's or a namespace's, in a mount namespace of its own.
set -eu
umask 022
tree=$1
mkdir -p "$tree/dev" "$tree/proc" "$tree/tmp/go"
tar -x -f "$2" -C "$tree" --no-same-owner
: >"$tree/dev/null"
mount --bind /dev/null "$tree/dev/null"
mount --rbind /proc "$tree/proc"
cd /
env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/go GODEBUG=installgoroot=all GOTOOLCHAIN=local GOPROXY=off GOCACHE=/tmp/go/cache CGO_ENABLED=0 \
	chroot "$tree" /usr/local/lib/go/bin/go install std
