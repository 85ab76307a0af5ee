#!/bin/sh
# Prints the path of the control plane's binary, and builds it first where it is
# missing. A cold build compiles Kubernetes, about 12 minutes on two cores; with
# Go's own cache warm it is one link of some 20 seconds.
#
# The binary is kept under ${HETEROFLOW_CACHE:-the user's cache/heteroflow}, by a
# hash of what it is made of. It needs Go, a POSIX shell and coreutils.
set -eu

cd "$(dirname "$0")"
version=v1.37.2 # of k8s.io/kubernetes in go.mod; without it the server calls itself v0.0.0
packages=2700   # of a cold build, to show progress against
kept=3          # binaries of other sources stay, so that going back and forth costs nothing

cache=${HETEROFLOW_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/heteroflow}
key=$( (go version && cat ./*.go go.mod go.sum build.sh) | sha256sum | cut -c 1-16)
binary=$cache/controlplane-$key
lock=$binary.lock
log=$binary.log.$$
new=$binary.new.$$

say() { echo "controlplane: $*" >&2; }

# take takes the lock, a directory that its owner touches every second. One not
# touched for a minute belonged to a process that was killed. The lock saves
# work and nothing else: of two builds at once either result is right.
take() {
	until mkdir "$lock" 2>/dev/null; do
		touched=$(date -r "$lock" +%s 2>/dev/null) || continue
		if [ $(($(date +%s) - touched)) -gt 60 ]; then
			mv "$lock" "$lock.stale.$$" 2>/dev/null && rmdir "$lock.stale.$$"
			continue
		fi
		[ -n "${waited:-}" ] || say "waiting for another build"
		waited=yes
		sleep 1
	done
	taken=yes
}

build() {
	set -- -X "k8s.io/component-base/version.gitVersion=$version" \
		-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37
	CGO_ENABLED=0 exec go build -v -ldflags "-s -w $*" -o "$new" . 2>"$log"
}

# watch reports every 15 s until the build ends. go build -v names each package
# that it compiles; in the end it links, which takes some 20 s.
watch() {
	seconds=0
	while kill -0 "$builder" 2>/dev/null; do
		sleep 1
		touch "$lock"
		seconds=$((seconds + 1))
		[ $((seconds % 15)) -ne 0 ] ||
			say "building Kubernetes: ${seconds} s, $(wc -l <"$log") packages (of about $packages when nothing is cached)"
	done
}

# forget removes all binaries but the newest few.
forget() {
	ls -t "$cache" | while read -r name; do
		case $name in
		*.lock* | *.log.* | *.new.*) continue ;;
		controlplane-*) ;;
		*) continue ;;
		esac
		kept=$((kept - 1))
		[ $kept -ge 0 ] || rm -f "$cache/$name"
	done
}

clean() {
	[ -z "${builder:-}" ] || kill "$builder" 2>/dev/null || true
	rm -f "$new" "$log"
	[ -z "${taken:-}" ] || rmdir "$lock" 2>/dev/null || true
}

if [ ! -x "$binary" ]; then
	mkdir -p "$cache"
	trap clean EXIT
	trap 'exit 130' INT TERM HUP
	take
	if [ ! -x "$binary" ]; then # else another build has made it meanwhile
		say "building $binary; the first time this takes about 12 minutes"
		: >"$log"
		build &
		builder=$!
		watch
		if ! wait "$builder"; then
			builder=
			tail -n 40 "$log" >&2
			say "the build did not succeed"
			exit 1
		fi
		builder=
		mv "$new" "$binary"
	fi
fi
touch "$binary"
forget
echo "$binary"
