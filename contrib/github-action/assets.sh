#!/usr/bin/env bash
# Writes kube-apiserver and etcd for envtest, and exports KUBEBUILDER_ASSETS.
set -euo pipefail
root=$RUNNER_TEMP/windlass

"$root/bin/windlass" assets "$root/assets"
echo "KUBEBUILDER_ASSETS=$root/assets" >> "$GITHUB_ENV"
