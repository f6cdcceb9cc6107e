#!/bin/sh
# Tells what is known to be vulnerable of the modules that this one is built of, and fails if there is anything that
# tools/vulncheck.allow does not name. usage: vulncheck.sh GOVULNCHECK DATABASE
#
# Findings in Go's own library are told and do not fail: the toolchain is the builder's choice, and not in go.mod.
set -eu

allowed=$(sed 's/#.*//' tools/vulncheck.allow | awk 'NF { print $1 }')
found=$(mktemp)
trap 'rm -f "$found"' EXIT
"$1" -db "file://$2" -format json ./... >"$found.json" || { rm -f "$found.json"; exit 1; }
# Each finding, of which there are several for one vulnerability: the vulnerability's id, and the module it is in. The trace
# begins with where the vulnerability is.
awk '
	/^  "finding": *{/ { id = ""; module = "" }
	/^    "osv": */ { gsub(/[",]/, ""); id = $2 }
	/^ *"module": */ && id != "" && module == "" { gsub(/[",]/, ""); module = $2; print id, module }
' "$found.json" | sort -u >"$found"
rm -f "$found.json"

failed=0
while read -r id module; do
	case "$module" in
	stdlib | toolchain) echo "  $id in Go's $module: build with a newer Go" ;;
	*)
		if printf '%s\n' "$allowed" | grep -qx "$id"; then
			echo "  $id in $module: allowed by tools/vulncheck.allow"
		else
			echo "  $id in $module: https://pkg.go.dev/vuln/$id" >&2
			failed=1
		fi
		;;
	esac
done <"$found"
for id in $allowed; do
	grep -q "^$id " "$found" || { echo "  $id is in tools/vulncheck.allow and was not found: take it out" >&2; failed=1; }
done
exit $failed
