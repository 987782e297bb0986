# Installs packages of the distribution in a build's sandbox, as root.
#   DIRECTORY, with the packages, and in the file "order" what dpkg is to do with them
# No service is started by them: nothing of the kind runs in a sandbox.
set -euo pipefail
umask 022
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true DEBCONF_NOWARNINGS=yes LC_ALL=C.UTF-8

cd -- "$1"
services=/usr/sbin/policy-rc.d
if [ ! -e "$services" ] && [ ! -L "$services" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$services"
	chmod 755 "$services"
	trap 'rm -f -- "$services"' EXIT
fi
options=(--force-unsafe-io --force-confdef --force-confold)
while read -r what rest; do
	read -ra items <<<"$rest"
	case $what in
	unpack) dpkg "${options[@]}" --no-triggers --unpack "${items[@]}" ;;
	configure) dpkg "${options[@]}" --no-triggers --configure "${items[@]}" ;;
	esac
done <order
dpkg "${options[@]}" --configure --pending
