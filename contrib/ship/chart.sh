#!/usr/bin/env bash
# Installs the chart of a new project with Helm on `windlass cluster`, with the operator in a pod: lint, template, install, upgrade with
# another value, upgrade with another CRD, uninstall; then the same operator without the CRDs of the chart, because the operator applies
# the CRDs by itself. Stops at the first step whose result is not the expected one.
#
#   HELM=helm contrib/ship/chart.sh [FOLDER_OF_COMPILED_CODE]
#
# HELM names one or several programs, Helm 3 or Helm 4, separated by spaces; default helm. Needs kubectl, git and user namespaces: without
# these, the walk is skipped, with the reason.
set -euo pipefail

checkout=$(cd "$(dirname "$0")/../.." && pwd)
compiled=${1:-$checkout/target/ship}
skip() { echo "skipped: $*"; exit 0; }
fail() { echo "failed: $*" >&2; exit 1; }
said() { printf -- '-- %s\n' "$*"; }
read -ra helms <<<"${HELM:-helm}"
for tool in "${helms[@]}" kubectl git; do command -v "$tool" >/dev/null || skip "$tool is not on the PATH"; done
unshare --user --map-root-user --net true 2>/dev/null || skip "this machine allows no user namespaces"

(cd "$checkout" && cargo build --quiet -p windlass-cli)
programs=${CARGO_TARGET_DIR:-$checkout/target}/debug
mkdir -p "$compiled" && compiled=$(cd "$compiled" && pwd)
folder=$(mktemp -d)
cp "$programs/windlass" "$folder/windlass"
export PATH=$folder:$PATH WINDLASS_CHECKOUT=$checkout CARGO_TARGET_DIR=$compiled
export KUBECONFIG=$folder/kubeconfig XDG_CACHE_HOME=$folder/cache
export HELM_CACHE_HOME=$folder/helm HELM_CONFIG_HOME=$folder/helm HELM_DATA_HOME=$folder/helm
cluster=
finish() {
    if [ -n "$cluster" ]; then kill "$cluster" 2>/dev/null && wait "$cluster" 2>/dev/null || true; fi
    rm -rf "$folder" "$compiled/chart"
}
trap finish EXIT

project=$compiled/chart/operator-demo namespace=operator-demo-system
rm -rf "$project" && mkdir -p "$project" && cd "$project" && git init --quiet
windlass init --domain mock.com >/dev/null
windlass create api --group zhhnzw --version v1 --kind CustomPod >/dev/null
sed -i 's/^        manager$/        manager.apply_crds()/' src/setup.rs
grep --quiet apply_crds src/setup.rs || fail "src/setup.rs has no place for apply_crds"
image=operator-demo:v1
windlass image build --tag "$image" --profile dev >/dev/null
windlass chart --image "$image" >/dev/null
cp -r dist/chart "$folder/first"
said "a chart with another CRD: a new field"
sed -i 's/^    pub foo: Option<String>,$/&\n    \/\/\/ A new field.\n    pub more: Option<String>,/' api/src/v1/custom_pod.rs
windlass chart --image "$image" >/dev/null
cp -r dist/chart "$folder/second"

windlass cluster --kubeconfig "$KUBECONFIG" >"$folder/cluster.log" 2>&1 & cluster=$!
for _ in $(seq 300); do if [ -s "$KUBECONFIG" ]; then break; fi; sleep 0.2; done
if reason=$(grep "all pods are simulated" "$folder/cluster.log"); then skip "$reason"; fi

crd=custompods.zhhnzw.mock.com
fields() { kubectl get crd "$crd" --output jsonpath='{.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties}'; }
ready() { kubectl --namespace "$namespace" get deployments --output jsonpath='{.items[*].status.readyReplicas}'; }
walk() {
    local helm=$1
    said "$("$helm" version --short): lint and template"
    "$helm" lint --strict "$folder/first" >"$folder/log" || fail "$(cat "$folder/log")"
    "$helm" template demo "$folder/first" --namespace "$namespace" | kubectl apply --dry-run=server --filename - >"$folder/log" 2>&1 ||
        grep --quiet "namespaces \"$namespace\" not found" "$folder/log" || fail "$(cat "$folder/log")"
    said "install"
    "$helm" install demo "$folder/first" --namespace "$namespace" --create-namespace --wait --timeout 120s >/dev/null
    [ "$(ready)" = 1 ] || fail "ready: $(ready)"
    scheme=$(kubectl --namespace "$namespace" get pods --output jsonpath='{..containerID}')
    case $scheme in process://*) ;; *) fail "no process runs: $scheme" ;; esac
    said "upgrade with another value"
    "$helm" upgrade demo "$folder/first" --namespace "$namespace" --set manager.replicas=2 --wait --timeout 120s >/dev/null
    [ "$(ready)" = 2 ] || fail "ready: $(ready)"
    said "upgrade with another CRD"
    "$helm" upgrade demo "$folder/second" --namespace "$namespace" --wait --timeout 120s >/dev/null
    case $(fields) in *'"more"'*) ;; *) fail "the CRD has no new field: $(fields)" ;; esac
    said "an older operator leaves the CRD"
    kubectl --namespace "$namespace" rollout restart deployment >/dev/null
    kubectl --namespace "$namespace" rollout status deployment --timeout 60s >/dev/null
    case $(fields) in *'"more"'*) ;; *) fail "the operator took the new field away: $(fields)" ;; esac
    said "uninstall"
    "$helm" uninstall demo --namespace "$namespace" --wait >/dev/null
    [ -z "$(ready)" ] || fail "still there: $(ready)"
    kubectl delete crd "$crd" --ignore-not-found >/dev/null
    said "install without CRDs: the operator creates the CRD"
    "$helm" install demo "$folder/first" --namespace "$namespace" --set crd.enable=false --wait --timeout 120s >/dev/null
    case $(fields) in *'"foo"'*) ;; *) fail "the operator created no CRD" ;; esac
    "$helm" uninstall demo --namespace "$namespace" --wait >/dev/null
    kubectl delete crd "$crd" >/dev/null
    kubectl delete namespace "$namespace" >/dev/null
}
for helm in "${helms[@]}"; do walk "$helm"; done
echo "the walk had the expected results"
