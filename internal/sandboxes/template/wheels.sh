#!/bin/sh
# Puts the packages of the code interpreter into a tree, before customize.sh finishes it.
#
#   wheels.sh TREE
#
# Environment: WHEELS (where an archive of what goes below usr/local will be), PYTHON (the
# version that the packages are for).
set -eu
umask 022
root=$1
site=/usr/local/lib/python$PYTHON/dist-packages
venv=/home/agent/.venv/lib/python$PYTHON/site-packages

if [ ! -d "$root/usr/lib/python$PYTHON" ]; then
	echo "E: the packages are for Python $PYTHON, and this tree has another" >&2
	exit 1
fi
echo "cofferdam: packages" >&2
until [ -e "$WHEELS" ]; do sleep 0.1; done
tar -x -f "$WHEELS" -C "$root" --numeric-owner --same-owner
# Nobody can change them in a sandbox, so that nobody has to look whether they were: what
# Python made of a file is taken as it is. Some files are meant not to compile.
chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONHASHSEED=0 \
	/usr/bin/python3 -m compileall -q --invalidation-mode unchecked-hash "$site" >/dev/null || true
# Programs of the code interpreter's clients have contexts in root's home: it can be entered,
# and not listed.
chmod 0711 "$root/root"
# The virtual environment finds them, and what is installed into it goes before them. It is
# the agent's once customize.sh is done.
mkdir -p "$root$venv"
echo "$site" >"$root$venv/cofferdam-interpreter.pth"
