#!/bin/sh
# step.sh NAME COMMAND...: runs the command and says how long it took.
name=$1
shift
start=$(date +%s)
"$@"
rc=$?
echo "--- step: $name: $(($(date +%s) - start)) s, exit code $rc"
exit $rc
