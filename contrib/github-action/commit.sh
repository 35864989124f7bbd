#!/usr/bin/env bash
# Checks the inputs, and writes the commit of a branch or tag to the outputs of the step: commit.sh REPOSITORY REF MODE
set -euo pipefail
repository=$1 ref=$2 mode=$3

case $mode in
    assets | cluster | none) ;;
    *)
        echo "::error::mode is '$mode'; write assets, cluster or none"
        exit 1
        ;;
esac

if [[ $ref =~ ^[0-9a-f]{40}$ ]]; then
    commit=$ref
else
    # An annotated tag has a second line, REF^{}, with the commit.
    commit=$(git ls-remote "$repository" "refs/heads/$ref" "refs/tags/$ref" "refs/tags/$ref^{}" | tail -n 1 | cut -f 1)
fi
if [ -z "$commit" ]; then
    echo "::error::$repository has no branch and no tag '$ref'; correct the input ref"
    exit 1
fi
echo "commit=$commit" >> "$GITHUB_OUTPUT"
