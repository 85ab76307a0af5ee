#!/bin/sh
# Prints the path of a prometheus binary: the one in PATH, or that of Debian's
# package. The package is unpacked into the cache and not installed, as installing
# it would start a service. It needs apt-get and dpkg-deb where there is none yet.
set -eu

if command -v prometheus; then
	exit 0
fi
cache=${HETEROFLOW_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heteroflow}
binary=$cache/prometheus
if [ ! -x "$binary" ]; then
	mkdir -p "$cache"
	new=$(mktemp -d "$cache/prometheus.new.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	trap 'exit 130' INT TERM HUP
	cd "$new"
	# A machine that has just been made has no lists of packages.
	apt-get -q download prometheus >&2 || { apt-get -q update >&2 && apt-get -q download prometheus >&2; }
	dpkg-deb -x prometheus_*.deb .
	./usr/bin/prometheus --version >&2
	mv usr/bin/prometheus "$binary" # of two at once either is right
fi
echo "$binary"
