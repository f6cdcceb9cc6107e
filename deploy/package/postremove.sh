#!/bin/sh
# The user stays, as is usual: there may be files of its own, and nobody else may get its number.
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
