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
	# A file or link of its name is replaced, as in a directory's copy: whoever left a link there would choose the file that is
	# written to, which for root may be any of root's. The user's own file may lie in a directory of root's.
	if [ -w "$into" ]; then
		cp -a --remove-destination -- "$from" "$dest"
	elif [ "$EUID" -ne 0 ] && [ ! -L "$dest" ] && [ -w "$dest" ]; then
		cp -a -- "$from" "$dest"
	else
		exit 77
	fi
else
	if [ ! -d "$dest" ]; then exit 78; fi
	if [ ! -w "$dest" ]; then exit 77; fi
	# Only its content is copied: the directory there may be another's, whose mode tar would change meanwhile.
	(cd -- "$from" && find . -mindepth 1 -maxdepth 1 -print0) | tar -C "$from" --null -T - -cf - | tar -C "$dest" --no-same-owner --no-overwrite-dir -xpf -
fi
