#!/usr/bin/env bash
# Starts a cluster that runs until the end of the job, waits until the cluster is ready, and exports KUBECONFIG.
set -euo pipefail
root=$RUNNER_TEMP/windlass
kubeconfig=$root/kubeconfig log=$root/cluster.log

rm -f "$kubeconfig"
nohup "$root/bin/windlass" cluster --kubeconfig "$kubeconfig" < /dev/null > "$log" 2>&1 &
cluster=$!
for ((attempt = 0; attempt < 600; attempt++)); do
    if [ -e "$kubeconfig" ]; then
        cat "$log"
        echo "KUBECONFIG=$kubeconfig" >> "$GITHUB_ENV"
        exit 0
    fi
    kill -0 "$cluster" 2> /dev/null || break
    sleep 0.1
done
cat "$log"
kill "$cluster" 2> /dev/null || true
echo "::error::windlass cluster did not become ready; the log is above"
exit 1
