#!/bin/sh
# Writes what packages have besides the binary to a folder: man pages and completions.
# files.sh DIR SECONDS, where SECONDS is the time of the commit: the pages show it.
set -eu
dir=$1
rm -rf "$dir"
mkdir -p "$dir/man" "$dir/completions"
# For this machine, whatever a release is built for.
CGO_ENABLED=0 GOOS='' GOARCH='' go build -trimpath -o "$dir/paidonce" ./cmd/paidonce
SOURCE_DATE_EPOCH=$2 "$dir/paidonce" man "$dir/man"
gzip -9 -n "$dir"/man/*.1
"$dir/paidonce" completion bash >"$dir/completions/paidonce.bash"
"$dir/paidonce" completion zsh >"$dir/completions/_paidonce"
"$dir/paidonce" completion fish >"$dir/completions/paidonce.fish"
