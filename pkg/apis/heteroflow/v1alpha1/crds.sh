#!/bin/sh
# crds.sh: writes the definitions of the kinds that are objects in the API server
# into the chart. SchedulerPolicy is a configuration file only.
set -eu
cd "$(dirname "$0")"
root=../../../..
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
# Dangerous types are the numbers with decimals in SchedulerPolicy.
go tool -modfile=$root/tools.mod controller-gen crd:allowDangerousTypes=true paths=. output:crd:dir="$all"
mkdir -p $root/charts/heteroflow/crds
for kind in epochs preemptions taskgroups tenants; do
	cp "$all/heteroflow.io_$kind.yaml" $root/charts/heteroflow/crds/
done
