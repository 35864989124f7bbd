#!/usr/bin/env bash
# Walks from an empty folder to an operator that runs in pods, and back: init, image, registry, cluster, deploy, a webhook, exec,
# port-forward, two replicas, two hand-overs of leadership, missing rights, undeploy. Stops at the first step whose result is not the
# expected one.
#
#   contrib/ship/walk.sh [--user UID] [--runtime plain | --runtime cri] [FOLDER_OF_COMPILED_CODE]
#
# With --user, the cluster and the registry run as this user; only root can ask for another user. With --runtime plain, the pods run as
# processes, and the walk leaves out the second replica, which would need the ports of the first. With --runtime cri, the pods run in the
# containerd of containerd.sh, or in the container runtime that WINDLASS_TEST_CRI names; only root can do that.
#
# Needs kubectl, curl and git, and user namespaces unless the runtime is plain: without them the walk is skipped, with the reason. Docker,
# kind and rights of an administrator are not needed.
set -euo pipefail

checkout=$(cd "$(dirname "$0")/../.." && pwd)
case " $* " in *" --runtime cri "*)
    if [ -z "${WINDLASS_TEST_CRI:-}" ]; then exec "$checkout/contrib/ship/containerd.sh" "$0" "$@"; fi
esac
compiled=$checkout/target/ship as_user=() user= runtime=auto
skip() { echo "skipped: $*"; exit 0; }
fail() { echo "failed: $*" >&2; exit 1; }
said() { printf -- '-- %s\n' "$*"; }
while [ $# -gt 0 ]; do
    case $1 in
    --user) user=$2 as_user=(setpriv "--reuid=$2" "--regid=$2" --clear-groups) && shift 2 ;;
    --runtime) runtime=$2 && shift 2 ;;
    *) mkdir -p "$1" && compiled=$(cd "$1" && pwd) && shift ;;
    esac
done
for tool in kubectl curl git "${as_user[@]:0:1}"; do
    command -v "$tool" >/dev/null || skip "$tool is not on the PATH"
done
if [ "$runtime" = auto ]; then
    "${as_user[@]}" unshare --user --map-root-user --net true 2>/dev/null || skip "this machine allows no user namespaces"
fi

features=() flags=(--runtime "$runtime")
if [ "$runtime" = cri ]; then
    [ -z "$user" ] || skip "a container runtime is used by root only"
    features=(--features cri) flags+=(--runtime-endpoint "$WINDLASS_TEST_CRI")
fi
(cd "$checkout" && cargo build --quiet -p windlass-cli "${features[@]}")
programs=${CARGO_TARGET_DIR:-$checkout/target}/debug
folder=$(mktemp -d)
export PATH=$programs:$PATH WINDLASS_CHECKOUT=$checkout CARGO_TARGET_DIR=$compiled
export KUBECONFIG=$folder/home/kubeconfig WINDLASS_IMAGES=$folder/images
started=()
# What the user reads and writes: not the checkout, and not the home of the caller.
mkdir "$folder/home"
cp "$programs/windlass" "$folder/home/windlass"
if [ -n "$user" ]; then chmod 755 "$folder" && chown -R "$user:$user" "$folder/home"; fi
# Starts a command of windlass as the user, with a log.
start() {
    local log=$folder/$1.log
    WINDLASS_IMAGES=$folder/home/images-of-$1 HOME=$folder/home XDG_CACHE_HOME=$folder/home/cache \
        "${as_user[@]}" "$folder/home/windlass" "$@" >"$log" 2>&1 & started+=($!)
}
# Only the programs of this walk are ended.
finish() {
    for program in "${started[@]}"; do kill "$program" 2>/dev/null && wait "$program" 2>/dev/null || true; done
    rm -rf "$folder" "$compiled/walk"
}
trap finish EXIT

# Calls a command until its output has a text, for at most a minute.
until_said() {
    local text=$1 output=
    shift
    for _ in $(seq 300); do
        output=$("$@" 2>&1 || true)
        case $output in *"$text"*) return 0 ;; esac
        sleep 0.2
    done
    fail "no '$text' after a minute from: $*; the last output: $output"
}
manager() { kubectl --namespace operator-demo-system "$@"; }
deployment=deploy/operator-demo-controller-manager
leader() { manager get lease --output jsonpath='{.items[0].spec.holderIdentity}'; }

# Always at one path, which is a part of what is compiled: the next walk compiles only the project.
project=$compiled/walk/operator-demo
rm -rf "$project" && mkdir -p "$project" && cd "$project" && git init --quiet
windlass init --domain mock.com >/dev/null
windlass create api --group zhhnzw --version v1 --kind CustomPod >/dev/null
windlass create webhook --group zhhnzw --version v1 --kind CustomPod --programmatic-validation >/dev/null
# The webhook refuses an object, and the operator issues the certificate.
sed -i -e 's/Some(_custom_pod)/Some(custom_pod)/' \
    -e 's|^    // Your logic.*|    if custom_pod.spec.foo.as_deref() == Some("bad") {\n        return Err(AdmissionDenial::new("foo must not be bad"));\n    }|' \
    src/webhooks/custom_pod/validation.rs
sed -i -e 's/^use windlass::webhook::{/&SelfIssued, /' \
    -e 's/WebhookServer::new(webhooks)$/&.self_issued(SelfIssued::for_service("operator-demo-system", "operator-demo-webhook-service"))/' \
    src/setup.rs

said "image: built, pushed to a registry, and the same digest at each place"
start registry --port 0
until_said 127.0.0.1 cat "$folder/registry.log"
registry=$(grep -oE '127\.0\.0\.1:[0-9]+' "$folder/registry.log" | head -n 1)
image=$registry/operator-demo:v1
built=$(windlass image build --tag "$image" --profile dev)
pushed=$(windlass image push "$image")
[ "${built##*@}" = "${pushed##*@}" ] || fail "built $built, pushed $pushed"
git add --all && git -c user.email=walk@example.com -c user.name=walk commit --quiet --message walk

said "cluster and deploy: the manager runs in a pod, and config/ is unchanged"
start cluster --kubeconfig "$KUBECONFIG" "${flags[@]}"
until_said "kubeconfig:" cat "$folder/cluster.log"
if reason=$(grep "all pods are simulated" "$folder/cluster.log"); then skip "$reason"; fi
windlass deploy --image "$image" --timeout 120 >"$folder/deploy.log" 2>&1 || fail "$(cat "$folder/deploy.log")"
said "$(grep "is ready after" "$folder/deploy.log")"
git diff --exit-code --stat -- config
case $runtime in auto) scheme=process ;; cri) scheme=containerd ;; *) scheme=$runtime ;; esac
until_said "$scheme://" manager get pods --output jsonpath='{..containerID}'
until_said "starting workers" manager logs "$deployment"

said "the webhook in the pod: a bad object is refused, a good object is stored"
object() { printf '{"apiVersion": "zhhnzw.mock.com/v1", "kind": "CustomPod", "metadata": {"name": "%s"}, "spec": {"foo": "%s"}}' "$1" "$1"; }
object bad >"$folder/bad.yaml"
until_said "foo must not be bad" kubectl apply --filename "$folder/bad.yaml"
object good | kubectl apply --filename - >/dev/null

said "exec and port-forward"
help=$(manager exec "$deployment" -- /manager --help)
case $help in *Usage*) ;; *) fail "exec prints no help: $help" ;; esac
code=0
manager exec "$deployment" -- /missing >/dev/null 2>&1 || code=$?
[ "$code" = 127 ] || fail "a missing program ended with $code, not 127"
manager port-forward "$deployment" 0:8081 >"$folder/forward.log" 2>&1 & started+=($!)
until_said "Forwarding from 127.0.0.1" cat "$folder/forward.log"
port=$(grep -oE '127\.0\.0\.1:[0-9]+' "$folder/forward.log" | head -n 1)
curl --silent --fail "http://$port/healthz" >/dev/null || fail "port-forward reaches no health check"

undeploy() {
    said "undeploy: nothing is left"
    windlass undeploy --yes >"$folder/undeploy.log" 2>&1 || fail "$(cat "$folder/undeploy.log")"
    until_said NotFound kubectl get namespace operator-demo-system
    [ -z "$(kubectl get crds --output name)" ] || fail "CRDs are still there"
    said "deployed again: the node has the image"
    windlass deploy --image "$image" --timeout 120 >"$folder/deploy.log" 2>&1 || fail "$(cat "$folder/deploy.log")"
    said "$(grep "is ready after" "$folder/deploy.log")"
    echo "the walk had the expected results"
}
if [ "$runtime" = plain ]; then undeploy && exit; fi

said "two replicas on equal ports, and a hand-over"
manager scale "$deployment" --replicas 2 >/dev/null
manager rollout status "$deployment" --timeout 60s >/dev/null
since() { echo $((($(date +%s%N) - begun) / 1000000)); }
# Waits for another leader, for at most a number of milliseconds.
handed_over() {
    while [ "$(leader)" = "$first" ]; do
        [ "$(since)" -lt "$1" ] || fail "$first still leads after $1 ms"
        sleep 0.05
    done
    said "handed over after $(since) ms"
}
first=$(leader) begun=$(date +%s%N)
manager delete pod "${first%%_*}" --wait=false >/dev/null
handed_over 3000

said "the leader is killed: the other replica leads when the Lease has ended, and the program runs again"
manager rollout status "$deployment" --timeout 60s >/dev/null
first=$(leader) pod=${first%%_*} killed=
for process in $(pgrep --exact manager); do
    if grep --quiet --null-data "^HOSTNAME=$pod\$" "/proc/$process/environ"; then kill -9 "$process" && killed=$process; fi
done
[ -n "$killed" ] || fail "no process of $pod was found"
begun=$(date +%s%N)
handed_over 16000
until_said 1 manager get pod "$pod" --output jsonpath='{.status.containerStatuses[0].restartCount}'

said "rights: without the binding, the API server refuses the manager"
account=system:serviceaccount:operator-demo-system:operator-demo-controller-manager
kubectl auth can-i list custompods.zhhnzw.mock.com --as "$account" --quiet || fail "the manager may not list its kind"
kubectl delete clusterrolebinding operator-demo-manager-rolebinding >/dev/null
if kubectl auth can-i list custompods.zhhnzw.mock.com --as "$account" --quiet; then fail "the manager still may list its kind"; fi

undeploy
