#!/usr/bin/env bash
# Runs the steps of action.yml as a runner does, with a stand-in for `cargo install`: WINDLASS=FILE test.sh
set -euo pipefail
cd "$(dirname "$0")"
: "${WINDLASS:?names the program windlass}"
work=$(mktemp -d)
clusters=()
finish() {
    for cluster in "${clusters[@]}"; do kill "$cluster" 2> /dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT

fail() {
    echo "failed: $1" >&2
    exit 1
}
# Whether a file has a line.
has() { grep -qxF -- "$2" "$1"; }

export RUNNER_TEMP=$work/temp GITHUB_OUTPUT=$work/output GITHUB_PATH=$work/path GITHUB_ENV=$work/env
mkdir "$work/temp" "$work/stub"

# A repository with a branch, a light tag and an annotated tag.
git init -q -b trunk "$work/repository"
git -C "$work/repository" -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m first
git -C "$work/repository" tag light
git -C "$work/repository" -c user.name=a -c user.email=a@example.com tag -a -m one annotated
head=$(git -C "$work/repository" rev-parse HEAD)

for ref in trunk light annotated "$head"; do
    : > "$GITHUB_OUTPUT"
    ./commit.sh "$work/repository" "$ref" assets
    has "$GITHUB_OUTPUT" "commit=$head" || fail "the commit of $ref: $(cat "$GITHUB_OUTPUT")"
done
if ./commit.sh "$work/repository" absent assets > "$work/said"; then fail "a branch that is absent is accepted"; fi
grep -q "no branch and no tag 'absent'" "$work/said" || fail "$(cat "$work/said")"
if ./commit.sh "$work/repository" trunk bogus > "$work/said"; then fail "a mode that does not exist is accepted"; fi
grep -q "mode is 'bogus'" "$work/said" || fail "$(cat "$work/said")"

# Each step of action.yml names a script that exists.
mapfile -t scripts < <(sed -n 's|.*$GITHUB_ACTION_PATH/\([a-z]*\.sh\).*|\1|p' action.yml)
[ "${scripts[*]}" = "commit.sh install.sh assets.sh cluster.sh" ] || fail "the scripts of action.yml: ${scripts[*]}"

# The stand-in writes its arguments, and the program to the folder after --root.
cat > "$work/stub/cargo" << 'STUB'
#!/usr/bin/env bash
echo "$*" >> "$RUNNER_TEMP/cargo"
mkdir -p "$4/bin" && cp "$WINDLASS" "$4/bin/windlass"
STUB
chmod +x "$work/stub/cargo"
for _ in 1 2; do
    PATH=$work/stub:$PATH ./install.sh "$work/repository" "$head"
done
wanted="install --locked --root $RUNNER_TEMP/windlass --git $work/repository --rev $head windlass-cli"
[ "$(cat "$RUNNER_TEMP/cargo")" = "$wanted" ] || fail "the program is built once: $(cat "$RUNNER_TEMP/cargo")"
has "$GITHUB_PATH" "$RUNNER_TEMP/windlass/bin" || fail "the PATH"

./assets.sh
has "$GITHUB_ENV" "KUBEBUILDER_ASSETS=$RUNNER_TEMP/windlass/assets" || fail "KUBEBUILDER_ASSETS"
for program in kube-apiserver etcd; do
    "$RUNNER_TEMP/windlass/assets/$program" --help > /dev/null || fail "$program does not run"
done

./cluster.sh
has "$GITHUB_ENV" "KUBECONFIG=$RUNNER_TEMP/windlass/kubeconfig" || fail "KUBECONFIG"
mapfile -t clusters < <(pgrep -f -- "--kubeconfig $RUNNER_TEMP/windlass/kubeconfig")
[ ${#clusters[@]} -eq 1 ] || fail "a cluster runs after the step"
if command -v kubectl > /dev/null; then
    kubectl --kubeconfig "$RUNNER_TEMP/windlass/kubeconfig" get namespace default
fi

# A cluster that cannot start fails the step.
rm "$RUNNER_TEMP/windlass/bin/windlass" # the cluster of before still runs
printf '#!/bin/sh\necho no cluster today\nexit 1\n' > "$RUNNER_TEMP/windlass/bin/windlass"
chmod +x "$RUNNER_TEMP/windlass/bin/windlass"
if ./cluster.sh > "$work/said"; then fail "a cluster that ends is accepted"; fi
grep -q "no cluster today" "$work/said" || fail "$(cat "$work/said")"
echo "the action: all steps passed"
