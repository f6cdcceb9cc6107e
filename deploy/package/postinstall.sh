#!/bin/sh
# For deb and rpm. Nothing is started: the settings are missing at first, and an upgrade has its
# order: paidonce migrate, then each server. DPKG_ROOT is set by dpkg --root.
set -e
root=${DPKG_ROOT:-}
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --root="$root/" paidonce.conf
elif ! grep -q ^paidonce: "$root/etc/passwd"; then
	useradd --prefix "$root/" --system --no-create-home --home-dir / --shell /usr/sbin/nologin paidonce
fi
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
