#!/usr/bin/env bash
# Runs a command with a containerd of its own, for tests of `--runtime cri`.
#
#   contrib/ship/containerd.sh COMMAND [ARGUMENT...]
#
# The command finds the endpoint of the containerd in WINDLASS_TEST_CRI, and the image of a busybox as `localhost/busybox:1` if this machine
# has a static busybox. All files of the containerd are in a temporary folder, and go with the command. Needs root, a C compiler and
# Debian's packages containerd, runc and containernetworking-plugins; skipped with the reason otherwise.
set -euo pipefail

skip() { echo "skipped: $*"; exit 0; }
fail() { echo "failed: $*" >&2; exit 1; }
[ $# -gt 0 ] || fail "no command: contrib/ship/containerd.sh COMMAND [ARGUMENT...]"
[ "$(id -u)" = 0 ] || skip "containerd needs root"
for tool in containerd ctr runc cc ip tar sha256sum; do
    command -v "$tool" >/dev/null || skip "$tool is not on the PATH (apt-get install containerd runc containernetworking-plugins gcc libc6-dev iproute2)"
done
plugins=
for folder in /usr/lib/cni /opt/cni/bin; do [ -x "$folder/bridge" ] && plugins=$folder && break; done
[ -n "$plugins" ] || skip "the network plugin bridge is missing (apt-get install containernetworking-plugins)"

folder=$(mktemp -d)
socket=$folder/containerd.sock
# Another containerd of this script has another bridge and another network.
number=$((1 + $$ % 250)) bridge=windlass$$ containerd=
control() { ctr --address "$socket" --namespace k8s.io "$@"; }
finish() {
    if [ -n "$containerd" ]; then
        # Containers outlive containerd.
        for task in $(control tasks list --quiet 2>/dev/null); do
            control tasks kill --signal SIGKILL "$task" >/dev/null 2>&1 || true
            control tasks delete --force "$task" >/dev/null 2>&1 || true
        done
        kill "$containerd" 2>/dev/null && wait "$containerd" 2>/dev/null || true
        # A shim whose task was deleted may live on.
        for shim in $(pgrep --full -- "-address $socket" || true); do kill -9 "$shim" 2>/dev/null || true; done
    fi
    ip link delete "$bridge" 2>/dev/null || true
    { grep -oF "$folder" /proc/mounts >/dev/null && awk -v f="$folder/" 'index($2, f) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount --lazy; } || true
    rm -rf "$folder"
}
trap finish EXIT

mkdir "$folder/net.d"
cat >"$folder/net.d/bridge.conflist" <<CNI
{"cniVersion": "0.4.0", "name": "windlass", "plugins": [{"type": "bridge", "bridge": "$bridge", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "$folder/addresses", "ranges": [[{"subnet": "10.89.$number.0/24"}]],
           "routes": [{"dst": "0.0.0.0/0"}]}}]}
CNI
# The score of the out-of-memory killer cannot be lowered on every machine.
cat >"$folder/config.toml" <<CONFIG
version = 2
root = "$folder/root"
state = "$folder/state"
[grpc]
  address = "$socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$folder/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$plugins"
    conf_dir = "$folder/net.d"
CONFIG

# Imports the folder $1 as the image $2 with the entry point $3: an archive of Docker, with one layer.
import() {
    local layer config
    tar --create --file "$folder/layer.tar" --directory "$1" --owner 0 --group 0 .
    layer=$(sha256sum "$folder/layer.tar" | cut -d ' ' -f 1)
    config='{"architecture": "'$architecture'", "os": "linux", "config": {"Entrypoint": ["'$3'"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:'$layer'"]}}'
    echo "$config" >"$folder/config.json"
    echo '[{"Config": "config.json", "RepoTags": ["'"$2"'"], "Layers": ["layer.tar"]}]' >"$folder/manifest.json"
    tar --create --file "$folder/image.tar" --directory "$folder" manifest.json config.json layer.tar
    control images import "$folder/image.tar" >/dev/null || fail "the image $2 was not imported"
}

containerd --config "$folder/config.toml" >"$folder/log" 2>&1 & containerd=$!
for _ in $(seq 100); do control version >/dev/null 2>&1 && break; sleep 0.1; done
control version >/dev/null 2>&1 || fail "containerd does not answer: $(tail -n 3 "$folder/log")"

architecture=$(uname -m | sed -e s/x86_64/amd64/ -e s/aarch64/arm64/)
mkdir -p "$folder/pause" "$folder/busybox/bin" "$folder/busybox/etc" "$folder/busybox/tmp"
# The first process of a sandbox waits for ever, and collects the processes that end.
cc -static -Os -x c -o "$folder/pause/pause" - <<'PAUSE'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, SIG_IGN);
    for (;;) pause();
}
PAUSE
import "$folder/pause" localhost/pause:1 /pause
for busybox in /bin/busybox /usr/bin/busybox; do
    [ -x "$busybox" ] || continue
    cp "$busybox" "$folder/busybox/bin/busybox"
    for name in $("$busybox" --list); do
        [ "$name" = busybox ] || ln -s busybox "$folder/busybox/bin/$name"
    done
    echo root:x:0:0:root:/root:/bin/sh >"$folder/busybox/etc/passwd"
    import "$folder/busybox" localhost/busybox:1 /bin/sh
    break
done

code=0
WINDLASS_TEST_CRI=unix://$socket "$@" || code=$?
[ "$code" = 0 ] || { echo "the last lines of containerd:" >&2; tail -n 20 "$folder/log" >&2; }
exit "$code"
