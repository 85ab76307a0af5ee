#!/bin/sh
# Prints the manifests of charts/heteroflow, as Helm would apply them:
#
#   test/chart/render.sh [-namespace NAME] [-values FILE] [-only FILE,...]
#
# The binary that does it is built where it is missing, and kept under
# ${HETEROFLOW_CACHE:-the user's cache/heteroflow} by a hash of what it is made of.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${HETEROFLOW_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heteroflow}
kept=3 # binaries of other sources stay, so that going back and forth costs nothing

cd "$here"
key=$( (go version && cat doc.go main.go render.go go.mod go.sum render.sh) | sha256sum | cut -c 1-16)
cd "$OLDPWD"
binary=$cache/chart-$key
if [ ! -x "$binary" ]; then
	mkdir -p "$cache"
	echo "chart: building Helm's library; the first time this takes a minute or two" >&2
	new=$binary.new.$$
	trap 'rm -f "$new"' EXIT
	(cd "$here" && CGO_ENABLED=0 go build -ldflags "-s -w" -o "$new" .)
	mv "$new" "$binary"
	trap - EXIT
	ls -t "$cache" | grep '^chart-[0-9a-f]*$' | tail -n +$((kept + 1)) | while read -r old; do rm -f "$cache/$old"; done
fi
touch "$binary"
exec "$binary" "$@" "$here/../../charts/heteroflow"
