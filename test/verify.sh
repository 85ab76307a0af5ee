#!/bin/sh
# verify.sh: regenerates everything in a copy of the tree and fails on any
# difference, or on a file that is not tracked.
set -eu
root=$(git rev-parse --show-toplevel)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cd "$root"
untracked=$(git ls-files --others --exclude-standard)
if [ -n "$untracked" ]; then
	echo "not tracked:"
	echo "$untracked"
	exit 1
fi
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$copy"
cd "$copy"
git init -q . && git add -A
make --no-print-directory generate
go mod tidy
(cd test/controlplane && go mod tidy)
(cd test/chart && go mod tidy)
if [ -n "$(git status --porcelain | grep -v '^A ')" ]; then
	git status --short | grep -v '^A '
	git diff
	echo "generated files are out of date: run 'make generate' and commit what changes"
	exit 1
fi
