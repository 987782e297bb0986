#!/bin/sh
# Makes a system of Debian the guest of test/vm: setup.sh ROOT KERNEL, where KERNEL is the
# unpacked package of its kernel.
set -eu
root=$1 kernel=$2
version=$(ls "$kernel/lib/modules")
cp -a "$kernel/lib/modules" "$root/usr/lib/"
chroot "$root" depmod "$version"

echo guest >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 guest\n' >"$root/etc/hosts"
cat >"$root/etc/fstab" <<EOF
LABEL=payload /opt/proof ext4 ro 0 0
LABEL=template /var/lib/cofferdam/templates ext4 rw 0 0
EOF
mkdir -p "$root/opt/proof" "$root/var/lib/cofferdam/templates"
chmod 0711 "$root/var/lib/cofferdam"

# What QEMU's user networking gives.
cat >"$root/etc/systemd/network/10-only.network" <<EOF
[Match]
Type=ether
[Network]
Address=10.0.2.15/24
Gateway=10.0.2.2
IPv6AcceptRA=no
LinkLocalAddressing=no
EOF
rm -f "$root/etc/resolv.conf"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
# The authorities that this host trusts: its way to the registries may need one of its own.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash worker
install -m 0644 testdata/proof.service "$root/etc/systemd/system/proof.service"
# Where `make install` puts them.
mkdir -p "$root/usr/local/libexec/cofferdam"
ln -s /opt/proof/bin/cofferdam "$root/usr/local/bin/cofferdam"
ln -s /opt/proof/bin/runsc "$root/usr/local/libexec/cofferdam/runsc"
chroot "$root" systemctl -q enable proof.service systemd-networkd.service
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
	getty@tty1.service serial-getty@ttyS0.service systemd-timesyncd.service systemd-networkd-wait-online.service; do
	chroot "$root" systemctl -q mask "$unit" 2>/dev/null || :
done
