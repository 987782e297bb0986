#!/bin/sh
# Turns a freshly installed Debian or Ubuntu tree into a sandbox template.
#
# It runs as root of that tree: of the host, or of a user namespace when a
# normal user builds. So ownership is right either way, and whatever must
# leave the tree is put under .cofferdam-out, from where the builder takes it.
#
#   customize.sh TREE [seal]
#
# The second half, seal, runs without the tree's /proc, /sys and /dev in a
# mount namespace of its own, so that the tree is seen as it will be stored.
#
# Environment: EPOCH (seconds, the time of every file that no package owns),
# TOOLS (where an archive of what goes below usr/local will be, or empty), PLAIN (not
# empty: no tools and no venv), MANUALS (not empty: manual pages stay), ABSENT (what a login
# shell says of programs that are not there), IMAGE_UUID
# (empty: no image), IMAGE (its path, or empty: .cofferdam-out/rootfs.erofs).
set -eu
umask 022
root=$1
LC_ALL=C
export LC_ALL
out=$root/.cofferdam-out
agent=/home/agent
mkdir -p "$out"

step() { echo "cofferdam: $*" >&2; }

inside() { # inside USER COMMAND...: runs in the tree with a clean environment
	who=$1
	shift
	chroot --userspec="$who" "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$agent" LANG=C.UTF-8 \
		PYTHONHASHSEED=0 "$@"
}

stamp() { # one time for everything but packages' files
	cat "$root"/var/lib/dpkg/info/*.list | sort -u >"$out/owned"
	(cd "$root" && find . -path ./.cofferdam-out -prune -o ! -type d ! -type l -print) | sed 's/^\.//' | sort >"$out/files"
	comm -13 "$out/owned" "$out/files" | sed "s|^|$root|" | tr '\n' '\0' | xargs -0 -r touch -h -d "@$EPOCH"
	find "$root" \( -type d -o -type l \) -exec touch -h -d "@$EPOCH" {} +
}

seal() {
	# Detached from the top: in a user namespace what lies below a bound /sys
	# can't be unmounted one by one.
	awk -v top="$root/" 'index($2, top) == 1 { print $2 }' /proc/self/mounts | sort | while read -r m; do umount -l "$m" 2>/dev/null || :; done
	if awk -v top="$root/" 'index($2, top) == 1 { found = 1 } END { exit !found }' /proc/self/mounts; then
		echo "E: something stays mounted in $root" >&2
		exit 1
	fi
	for d in proc sys dev; do
		[ ! -d "$root/$d" ] || find "$root/$d" -xdev ! -type d -delete
	done
	# The same input gives the same bytes. A package's files keep their times
	# (compiled Python names its source's); all else gets one time, and the venv
	# is compiled again for that reason.
	step times
	stamp
	if [ -z "$PLAIN" ]; then
		find "$root$agent/.venv" -type d -name __pycache__ -prune -exec rm -rf {} +
		inside 1000:1000 /usr/bin/python3 -m compileall -q -f --invalidation-mode timestamp "$agent/.venv/lib" || true
		stamp
	fi
	rm -f "$out/owned" "$out/files"
	# noinline_data and no compression: gVisor reads no other EROFS. No extended
	# attributes: file capabilities are not wanted.
	[ -n "$IMAGE_UUID" ] || return 0
	step image
	# The epoch is the image's own time and the latest that a file may have:
	# the latest there is, so that none changes. (-T would set them all.)
	latest=$(find "$root" -path "$out" -prune -o -printf '%T@\n' | cut -d. -f1 | sort -n | tail -n 1)
	SOURCE_DATE_EPOCH=$latest mkfs.erofs --quiet -Enoinline_data -x-1 --preserve-mtime -U"$IMAGE_UUID" \
		--exclude-path=.cofferdam-out "${IMAGE:-$out/rootfs.erofs}" "$root"
}

if [ "${2:-}" = seal ]; then
	seal
	exit 0
fi

# --- the packages -------------------------------------------------------
# apt took those of an earlier build by name and size alone.
archives=$root/var/cache/apt/archives
if ls "$root"/var/lib/apt/lists/*_Packages >/dev/null 2>&1 && [ -d "$archives" ]; then
	step packages
	sed -n 's/^SHA256: //p' "$root"/var/lib/apt/lists/*_Packages | sort -u >"$out/listed"
	dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package}_${Version}_${Architecture}.deb\n' | sed 's/:/%3a/g' |
		while read -r deb; do [ ! -e "$archives/$deb" ] || (cd "$archives" && sha256sum "$deb"); done | sort >"$out/there"
	join -v 1 "$out/there" "$out/listed" >"$out/unlisted"
	while read -r _ deb; do echo "E: the package $deb is not in the mirror's signed lists" >&2; done <"$out/unlisted"
	[ ! -s "$out/unlisted" ] || exit 1
	rm -f "$out/listed" "$out/there" "$out/unlisted"
fi

# --- the user -----------------------------------------------------------
step user
echo "agent:x:1000:1000:agent:$agent:/bin/bash" >>"$root/etc/passwd"
echo "agent:x:1000:" >>"$root/etc/group"
[ ! -e "$root/etc/shadow" ] || echo 'agent:!:20454:0:99999:7:::' >>"$root/etc/shadow"
[ ! -e "$root/etc/gshadow" ] || echo 'agent:!::' >>"$root/etc/gshadow"
mkdir -p "$root$agent"
[ ! -d "$root/etc/skel" ] || cp -a "$root/etc/skel/." "$root$agent/"
mkdir -p "$root/workspace" "$root/.cofferdam/bin"
chown -R 1000:1000 "$root$agent" "$root/workspace"
chmod 0755 "$root$agent"

# --- locales ------------------------------------------------------------
# A program that asks for a locale that is not there falls back to C without a word.
# These are made before the tools are waited for, so that they cost no time of their own.
if [ -d "$root/usr/share/i18n/locales" ]; then
	step locales
	mkdir -p "$root/usr/lib/locale"
	for l in de_DE en_GB en_US es_ES fr_FR it_IT ja_JP ko_KR nl_NL pl_PL pt_BR ru_RU tr_TR zh_CN zh_TW; do
		inside 0:0 localedef -i "$l" -f UTF-8 "$l.UTF-8"
	done
fi
# matplotlib takes a letter that its first font lacks from the next one that is named, and
# looks at no font that is not. The template's environment names this file: homes differ by
# user. A file in the directory where a program runs goes before it.
[ ! -e "$root/usr/share/fonts/truetype/wqy" ] ||
	echo 'font.family: DejaVu Sans, WenQuanYi Micro Hei, Symbola' >"$root/etc/matplotlibrc"

# --- tools --------------------------------------------------------------
if [ -n "$TOOLS" ]; then
	step waiting
	until [ -e "$TOOLS" ]; do sleep 0.1; done
	step tools
	tar -x -f "$TOOLS" -C "$root" --numeric-owner --same-owner
	# pnpm would fetch the version that a project names, and say no more than that
	# it can't; npm warns of a variable for this, so it is in pnpm's own file.
	mkdir -p "$root$agent/.config/pnpm"
	echo "manage-package-manager-versions=false" >"$root$agent/.config/pnpm/rc"
	chown -R 1000:1000 "$root$agent/.config"
fi
# A login shell resets PATH, so the environment is said here once more.
mkdir -p "$root/etc/profile.d"
cat >"$root/etc/profile.d/cofferdam.sh" <<'PROFILE'
export VIRTUAL_ENV=/home/agent/.venv
case ":$PATH:" in *":$VIRTUAL_ENV/bin:"*) ;; *) export PATH="$VIRTUAL_ENV/bin:$HOME/.local/bin:$HOME/go/bin:$PATH:/.cofferdam/bin" ;; esac
PROFILE
printf '%s' "$ABSENT" >"$root/etc/profile.d/cofferdam-absent.sh"
# Debian's profile starts a program to learn who it is, in every login shell: inside
# that takes longer than the shell itself. bash knows it, other shells ask as before.
[ ! -f "$root/etc/profile" ] || sed -i 's/"$(id -u)"/"${EUID:-$(id -u)}"/' "$root/etc/profile"
if [ -z "$PLAIN" ]; then
	step venv
	inside 1000:1000 python3 -m venv "$agent/.venv"
fi

# --- nothing of the host, nothing of the build --------------------------
step cleaning
rm -rf "$root/etc/machine-id" "$root/var/lib/dbus/machine-id" "$root/etc/hostname" "$root/etc/resolv.conf"
: >"$root/etc/resolv.conf"
printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
rm -rf "$root/etc/apt/sources.list" "$root/etc/apt/sources.list.d" "$root/etc/apt/auth.conf" "$root/etc/apt/auth.conf.d"
rm -f "$root"/etc/apt/apt.conf.d/*mmdebstrap "$root"/etc/dpkg/dpkg.cfg.d/*mmdebstrap "$root"/etc/ssh/ssh_host_*
rm -f "$root/etc/passwd-" "$root/etc/group-" "$root/etc/shadow-" "$root/etc/gshadow-" "$root/etc/.pwd.lock" "$root/etc/subuid-" "$root/etc/subgid-"
rm -rf "$root/root/.cache" "$root$agent/.cache" "$root/usr/share/info" "$root/usr/share/lintian" "$root/var/lib/systemd/random-seed"
[ -n "$MANUALS" ] || manuals=usr/share/man
for d in usr/share/doc ${manuals:-} usr/share/locale var/lib/apt/lists var/cache var/log var/backups var/tmp tmp run; do
	[ ! -d "$root/$d" ] || find "$root/$d" -xdev -mindepth 1 -delete
done
mkdir -p "$root/var/cache/apt/archives/partial" "$root/var/lib/apt/lists/partial" "$root/var/log/apt"
chmod 1777 "$root/tmp" "$root/var/tmp"
find "$root" -xdev -type f -perm /6000 -exec chmod ug-s {} +
find "$root" -xdev \( -type b -o -type c -o -type p -o -type s \) -delete

# --- what is in it ------------------------------------------------------
step ledger
dpkg-query --admindir="$root/var/lib/dpkg" -W -f '${Package}\t${Version}\t${Architecture}\n' >"$out/packages.tsv"
cat >"$root/tmp/dists.py" <<'PY'
import importlib.metadata, sys
rows = {(d.metadata["Name"] or "", d.version or "", str(d.locate_file(""))) for d in importlib.metadata.distributions()}
sys.stdout.write("".join("\t".join(r) + "\n" for r in sorted(rows)))
PY
inside 0:0 /usr/bin/python3 -I /tmp/dists.py >"$out/python.tsv"
[ -n "$PLAIN" ] || inside 1000:1000 "$agent/.venv/bin/python3" -I /tmp/dists.py >>"$out/python.tsv"
rm -f "$root/tmp/dists.py"

unshare --mount --propagation private sh "$0" "$root" seal
step done
