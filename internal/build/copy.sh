# Unpacks an upload in a build's sandbox, as the user whose files these are to be.
#   ARCHIVE SOURCE PATTERN DEST MODE
# Ends with 77 where that user may not write, and with 78 where the place is to be a
# directory that is not there.
set -euo pipefail
umask 022

archive=$1 source=$2 pattern=$3 dest=$4 mode=$5
work=$(mktemp -d /var/tmp/.copy-XXXXXXXX)
trap 'rm -rf -- "$work"' EXIT
tar --no-same-owner -xpf "$archive" -C "$work" || { echo "what was uploaded can't be unpacked" >&2; exit 1; }
from=$work/$source
if [ ! -e "$from" ] && [ ! -L "$from" ]; then
	printf 'there is no %s in what was uploaded\n' "$source" >&2
	exit 1
fi
if [ -n "$mode" ]; then find "$from" ! -type l -exec chmod -- "$mode" {} +; fi
if [ "$pattern" = false ] && { [ -L "$from" ] || [ ! -d "$from" ]; }; then
	# One file: its place, or the directory that it goes into.
	if [ -d "$dest" ]; then into=$dest; else into=$(dirname -- "$dest"); fi
	if [ ! -w "$into" ] && [ ! -w "$dest" ]; then exit 77; fi
	cp -a -- "$from" "$dest"
else
	if [ ! -d "$dest" ]; then exit 78; fi
	if [ ! -w "$dest" ]; then exit 77; fi
	# What is in it alone: the directory there may be another's, whose mode tar would change meanwhile.
	(cd -- "$from" && find . -mindepth 1 -maxdepth 1 -print0) | tar -C "$from" --null -T - -cf - | tar -C "$dest" --no-same-owner --no-overwrite-dir -xpf -
fi
