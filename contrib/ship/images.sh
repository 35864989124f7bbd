#!/usr/bin/env bash
# Lets other tools judge the images of Windlass: docker-registry with a password and a CA of its own, skopeo, and, if they are
# installed, umoci with runc, and containerd. Stops at the first step whose result is not the expected one.
#
#   contrib/ship/images.sh
#
# Needs docker-registry, skopeo, openssl, perl, curl and git (Debian: apt-get install docker-registry skopeo). Without them all steps are
# skipped, with the reason; a step whose own tools are missing is skipped alone. A daemon and Docker are not needed.
set -euo pipefail

checkout=$(cd "$(dirname "$0")/../.." && pwd)
skip() { echo "skipped: $*"; exit 0; }
fail() { echo "failed: $*" >&2; exit 1; }
said() { printf -- '-- %s\n' "$*"; }
has() { command -v "$1" >/dev/null; }
equal() { [ "$2" = "$3" ] || fail "$1: $2 is not $3"; }
contains() { case $2 in *"$3"*) ;; *) fail "$1: no '$3' in: $2" ;; esac; }
for tool in docker-registry skopeo openssl perl curl git; do
    has "$tool" || skip "$tool is not on the PATH"
done

# bcrypt, the only form of passwords that docker-registry reads.
hash=$(perl -e 'print crypt($ARGV[0], q($2b$05$abcdefghijklmnopqrstuu)) // ""' right)
case $hash in '$2b$'*) ;; *) skip "perl cannot make passwords for docker-registry on this machine" ;; esac

(cd "$checkout" && cargo build --quiet -p windlass-cli)
folder=$(mktemp -d)
export PATH=${CARGO_TARGET_DIR:-$checkout/target}/debug:$PATH WINDLASS_IMAGES=$folder/images
unset CARGO_TARGET_DIR REGISTRY_AUTH_FILE
started=()
# Only the programs of this script are ended.
finish() {
    for program in "${started[@]}"; do kill "$program" 2>/dev/null && wait "$program" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
# Waits until a log has a text, for at most half a minute. Prints the matching part.
until_logged() {
    for _ in $(seq 150); do
        if grep -oE -m 1 -- "$2" "$1" 2>/dev/null; then return; fi
        sleep 0.2
    done
    fail "no '$2' after half a minute in: $(cat "$1")"
}
digest_of() { echo "${1##*@}"; }

said "two clones at two paths make one digest"
mkdir -p "$folder/one/src" "$folder/other/place"
cat >"$folder/one/Cargo.toml" <<'END'
[package]
name = "demo"
version = "0.1.0"
edition = "2024"
license = "Apache-2.0"

[workspace]
END
cat >"$folder/one/src/main.rs" <<'END'
fn main() {
    println!("hello from {}, built in {}", std::env::args().next().unwrap_or_default(), file!());
    assert!(std::fs::metadata("/etc/ssl/certs/ca-certificates.crt").is_ok());
    if std::env::args().count() > 9 {
        panic!("a panic names a path of the source");
    }
}
END
(cd "$folder/one" && cargo generate-lockfile --quiet --offline && echo /target >.gitignore && git init --quiet && git add --all &&
    git -c user.email=images@example.com -c user.name=images commit --quiet --message images)
git clone --quiet "$folder/one" "$folder/other/place/two"
cd "$folder/one"
build=(windlass image build --profile release)
built=$(digest_of "$("${build[@]}" --tag demo 2>"$folder/build.log")")
grep linux/ "$folder/build.log"
again=$(cd "$folder/other/place/two" && digest_of "$("${build[@]}" --tag demo 2>/dev/null)")
equal "the digest of the second clone" "$again" "$built"

said "docker-registry with a password and its own CA"
key=(-newkey rsa:2048 -nodes)
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n' >"$folder/leaf.ext"
openssl req -x509 "${key[@]}" -days 2 -subj /CN=ca -keyout "$folder/ca.key" -out "$folder/ca.pem" 2>/dev/null
openssl req "${key[@]}" -subj /CN=registry -keyout "$folder/key.pem" -out "$folder/registry.csr" 2>/dev/null
openssl x509 -req -in "$folder/registry.csr" -CA "$folder/ca.pem" -CAkey "$folder/ca.key" -CAcreateserial -days 2 \
    -extfile "$folder/leaf.ext" -out "$folder/registry.pem" 2>/dev/null
echo "me:$hash" >"$folder/htpasswd"
cat >"$folder/registry.yml" <<END
version: 0.1
storage: {filesystem: {rootdirectory: $folder/registry}}
http: {addr: "127.0.0.1:0", tls: {certificate: $folder/registry.pem, key: $folder/key.pem}}
auth: {htpasswd: {realm: registry, path: $folder/htpasswd}}
END
docker-registry serve "$folder/registry.yml" >"$folder/registry.log" 2>&1 & started+=($!)
registry=127.0.0.1:$(until_logged "$folder/registry.log" 'listening on 127\.0\.0\.1:[0-9]+' | grep -oE '[0-9]+$')
image=$registry/team/demo:v1
push() { printf %s "$1" | windlass image push demo "$2" --username me --password-stdin --ca-file "$folder/ca.pem"; }

code=0 && output=$(push wrong "$image" 2>&1) || code=$?
[ "$code" != 0 ] || fail "a wrong password was accepted"
contains "a wrong password" "$output" "unauthorized: authentication required"
code=0 && output=$(printf right | windlass image push demo "$image" --username me --password-stdin 2>&1) || code=$?
[ "$code" != 0 ] || fail "a registry of an unknown CA was trusted"
contains "an unknown CA" "$output" "--ca-file"

said "the digest is the same in the store, at the registry, and after a pull"
equal "the pushed digest" "$(digest_of "$(push right "$image" 2>"$folder/push.log")")" "$built"
mkdir "$folder/certs" && cp "$folder/ca.pem" "$folder/certs/ca.crt"
skopeo=(skopeo --override-os linux)
trust=(--cert-dir "$folder/certs" --creds me:right)
equal "the digest that skopeo reads" "$("${skopeo[@]}" inspect "${trust[@]}" --format '{{.Digest}}' "docker://$image")" "$built"
pulled=$(printf right | windlass image --store "$folder/pulled" pull "$image" --username me --password-stdin --ca-file "$folder/ca.pem" 2>/dev/null)
equal "the pulled digest" "$(digest_of "$pulled")" "$built"
contains "the second push" "$(push right "$image" 2>&1)" ": 0 blobs sent"
windlass image build --profile release --tag "$image" >/dev/null 2>&1
contains "the push to a second repository" "$(push right "$registry/other/demo:v1" 2>&1)" "mounted"
"${skopeo[@]}" copy --quiet --src-cert-dir "$folder/certs" --src-creds me:right "docker://$image" "oci:$folder/layout:v1"

said "the SBOM: in the image, at a registry with and without the referrers API, and valid"
oci="application/vnd.oci.image"
fetch() {
    curl --silent --fail --show-error --cacert "$folder/ca.pem" --user me:right \
        --header "Accept: $oci.index.v1+json, $oci.manifest.v1+json" "https://$registry/v2/team/demo/$1"
}
tag=$(fetch "manifests/${built/:/-}" | tr -d ' \n')
contains "the tag of the SBOM" "$tag" '"artifactType":"application/vnd.cyclonedx+json"'
artifact=$(grep -oE 'sha256:[0-9a-f]{64}' <<<"$tag" | head -n 1)
document=$(fetch "manifests/$artifact" | grep -oE '"layers":.*' | grep -oE 'sha256:[0-9a-f]{64}' | head -n 1)
fetch "blobs/$document" >"$folder/sbom.json"
windlass registry --port 0 --store "$folder/own" >"$folder/own.log" 2>&1 & started+=($!)
own=$(until_logged "$folder/own.log" '127\.0\.0\.1:[0-9]+')
windlass image push demo "$own/demo:v1" >/dev/null 2>&1
contains "the referrers" "$(curl --silent --fail "http://$own/v2/demo/referrers/$built")" "$artifact"
if python3 -c 'import cyclonedx.validation.json, jsonschema' 2>/dev/null; then
    python3 - "$folder/sbom.json" <<'END' || fail "the SBOM does not match the schema of CycloneDX 1.6"
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(f"{problem}" if problem else 0)
END
else
    said "skipped: the schema of the SBOM: pip install 'cyclonedx-python-lib[validation]'"
fi

said "an archive for other tools"
windlass image build --profile release --tag "$image" --output "$folder/image.tar" >/dev/null 2>&1
"${skopeo[@]}" copy --quiet "docker-archive:$folder/image.tar" "dir:$folder/from-docker-archive"
equal "the digest in the archive" "$("${skopeo[@]}" inspect --format '{{.Digest}}' "oci-archive:$folder/image.tar")" "$built"

hello="hello from /manager, built in src/main.rs"
root=$([ "$(id -u)" = 0 ] && echo yes || true)
if [ -n "$root" ] && has umoci && has runc; then
    said "umoci unpacks the image, and runc runs the program"
    umoci unpack --image "$folder/layout:v1" "$folder/bundle" >/dev/null 2>&1
    sed -i 's/"terminal": true/"terminal": false/' "$folder/bundle/config.json"
    if runc run --bundle "$folder/bundle" "windlass-images-$$" >"$folder/runc.log" 2>&1 </dev/null; then
        equal "the output of the program" "$(cat "$folder/runc.log")" "$hello"
    elif grep -q "^hello" "$folder/runc.log"; then
        fail "the program failed: $(cat "$folder/runc.log")"
    else
        said "skipped: runc starts no container on this machine: $(tail -n 1 "$folder/runc.log")"
    fi
else
    said "skipped: umoci and runc, with the rights of root"
fi

if [ -n "$root" ] && has containerd && has ctr; then
    said "containerd imports the image with the same digest"
    printf 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' >"$folder/containerd.toml"
    containerd --config "$folder/containerd.toml" --root "$folder/containerd" --state "$folder/containerd-state" \
        --address "$folder/containerd.sock" >"$folder/containerd.log" 2>&1 & started+=($!)
    until_logged "$folder/containerd.log" "containerd successfully booted" >/dev/null
    windlass image load --containerd="$folder/containerd.sock" "$image" 2>/dev/null
    ctr=(ctr --address "$folder/containerd.sock" --namespace k8s.io)
    contains "the images of containerd" "$("${ctr[@]}" images list | grep -F "$image")" "$built"
    if "${ctr[@]}" run --rm --snapshotter native "$image" "windlass-images-$$" >"$folder/ctr.log" 2>&1; then
        equal "the output of the program" "$(cat "$folder/ctr.log")" "$hello"
    elif grep -q "^hello" "$folder/ctr.log"; then
        fail "the program failed: $(cat "$folder/ctr.log")"
    else
        said "skipped: containerd starts no container on this machine: $(tail -n 1 "$folder/ctr.log")"
    fi
else
    said "skipped: containerd, with the rights of root"
fi

host=$(uname -m) other=aarch64 name=arm64
if [ "$host" = aarch64 ]; then other=x86_64 name=amd64; fi
if "${build[@]}" --platform "linux/$name" --tag cross >/dev/null 2>"$folder/cross.log"; then
    said "an index of two platforms: $(grep -oE "with .* for $other[^ .]*" "$folder/cross.log" | head -n 1)"
    "${build[@]}" --platform linux/amd64 --platform linux/arm64 --tag index >/dev/null 2>&1
    windlass image push index "$own/index:v1" >/dev/null 2>&1
    for architecture in amd64 arm64; do
        found=$("${skopeo[@]}" --override-arch "$architecture" inspect --tls-verify=false --format '{{.Architecture}}' "docker://$own/index:v1")
        equal "the architecture" "$found" "$architecture"
    done
else
    said "skipped: an index of two platforms: $(tail -n 1 "$folder/cross.log")"
fi
echo "the images had the expected results"
