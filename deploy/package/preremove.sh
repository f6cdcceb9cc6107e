#!/bin/sh
# deb says remove or upgrade, rpm how many versions remain. An upgrade stops nothing: servers go on
# with the old binary until they are restarted.
set -e
root=${DPKG_ROOT:-}
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -z "$root" ] && [ -d /run/systemd/system ]; then
	systemctl stop paidonce-reconcile.timer paidonce-reconcile.service paidonce.service
fi
if command -v systemctl >/dev/null; then
	systemctl --root="$root/" disable paidonce-reconcile.timer paidonce.service
fi
