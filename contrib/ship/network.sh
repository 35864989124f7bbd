#!/usr/bin/env bash
# The example `network` in a pod, with a real OpenStack Neutron outside of the cluster: an object becomes a network with a subnet, another
# gateway reaches the subnet, and the network goes with the object. Stops at the first step whose result is not the expected one.
#
#   cargo xtask neutron start
#   NEUTRON_TEST_URL=<the URL it prints> contrib/ship/network.sh
#
# The pod has exactly the rights that the program declares. Needs kubectl, curl, Python 3 and user namespaces: without these, or without
# NEUTRON_TEST_URL, the walk is skipped, with the reason.
set -euo pipefail

checkout=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "skipped: $*"; exit 0; }
fail() { echo "failed: $*" >&2; exit 1; }
said() { printf -- '-- %s\n' "$*"; }
for tool in kubectl curl python3; do command -v "$tool" >/dev/null || skip "$tool is not on the PATH"; done
neutron=${NEUTRON_TEST_URL:-}
[ -n "$neutron" ] || skip "NEUTRON_TEST_URL is not set; \`cargo xtask neutron start\` prints the URL"
case $neutron in http://127.0.0.1:*) ;; *) skip "NEUTRON_TEST_URL is not a port of 127.0.0.1: $neutron" ;; esac
port=${neutron##*:} && port=${port%%/*}
unshare --user --map-root-user --net true 2>/dev/null || skip "this machine allows no user namespaces"

(cd "$checkout" && cargo build --quiet -p windlass-cli -p network)
programs=${CARGO_TARGET_DIR:-$checkout/target}/debug
folder=$(mktemp -d)
cp "$programs/windlass" "$folder/windlass"
export PATH=$folder:$PATH KUBECONFIG=$folder/kubeconfig XDG_CACHE_HOME=$folder/cache
cluster=
finish() {
    if [ -n "$cluster" ]; then kill "$cluster" 2>/dev/null && wait "$cluster" 2>/dev/null || true; fi
    rm -rf "$folder"
}
trap finish EXIT
until_said() {
    local text=$1 output=
    shift
    for _ in $(seq 300); do
        output=$("$@" 2>&1 || true)
        case $output in *"$text"*) return 0 ;; esac
        sleep 0.2
    done
    fail "no '$text' after a minute from: $*; the last output: $output; the log: $(kubectl logs deploy/network 2>&1 | tail -n 5)"
}
subnets() { curl --silent --fail "$neutron/v2.0/subnets"; }

image=network:v1
(cd "$checkout/examples/network" && windlass image build --tag "$image" --profile dev --linking dynamic >/dev/null)
windlass cluster --kubeconfig "$KUBECONFIG" --expose-host "$port" >"$folder/cluster.log" 2>&1 & cluster=$!
until_said kubeconfig: cat "$folder/cluster.log"
if reason=$(grep "all pods are simulated" "$folder/cluster.log"); then skip "$reason"; fi

said "the operator in a pod"
"$programs/network" crds | kubectl apply --server-side --filename - >/dev/null
"$programs/network" manifests | python3 -c '
import json, sys
rules = json.load(sys.stdin)["rights"]["cluster"]
print(json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "network"}, "rules": rules}))' |
    kubectl apply --filename - >/dev/null
kubectl create serviceaccount network >/dev/null
kubectl create clusterrolebinding network --clusterrole network --serviceaccount default:network >/dev/null
kubectl apply --filename - >/dev/null <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: { name: network }
spec:
  selector: { matchLabels: { app: network } }
  template:
    metadata: { labels: { app: network } }
    spec:
      serviceAccountName: network
      containers:
        - name: network
          image: $image
          args: ["--neutron-url=http://host.windlass.internal:$port", "--owner=walk-$$"]
YAML
kubectl rollout status deploy/network --timeout 60s >/dev/null
until_said process:// kubectl get pods --output jsonpath='{..containerID}'

said "an object becomes a network with a subnet"
kubectl apply --filename "$checkout/examples/network/sample.yaml" >/dev/null
kubectl wait network example-network --for=condition=Ready --timeout 60s >/dev/null || fail "$(kubectl logs deploy/network | tail -n 5)"
id=$(kubectl get network example-network --output jsonpath="{.status.networkID}")
[ -n "$id" ] || fail "the status names no network: $(kubectl get network example-network --output jsonpath='{.status}')"
until_said '"192.168.0.1"' subnets
curl --silent --fail "$neutron/v2.0/networks/$id" >/dev/null || fail "Neutron has no network $id"

said "another gateway"
kubectl patch network example-network --type merge --patch '{"spec":{"gateway":"192.168.0.254"}}' >/dev/null
until_said '"192.168.0.254"' subnets

said "the network goes with the object"
kubectl delete network example-network --timeout 60s >/dev/null
code=$(curl --silent --output /dev/null --write-out '%{http_code}' "$neutron/v2.0/networks/$id")
[ "$code" = 404 ] || fail "Neutron answers $code for the network of the deleted object"
echo "the walk had the expected results"
