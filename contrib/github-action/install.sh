#!/usr/bin/env bash
# Builds windlass unless the cache has the program, and adds the program to the PATH: install.sh REPOSITORY COMMIT
set -euo pipefail
repository=$1 commit=$2
root=$RUNNER_TEMP/windlass

if [ ! -x "$root/bin/windlass" ]; then
    if ! command -v cargo > /dev/null; then
        echo "::error::cargo is not on the PATH; install a Rust toolchain in an earlier step"
        exit 1
    fi
    cargo install --locked --root "$root" --git "$repository" --rev "$commit" windlass-cli
fi
"$root/bin/windlass" version
echo "$root/bin" >> "$GITHUB_PATH"
