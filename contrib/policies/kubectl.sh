#!/usr/bin/env bash
# Policies by hand: what kubectl prints about admission policies. KUBECONFIG names the server, KUBECTL the program.
# Two servers print the same: diff <(KUBECONFIG=a contrib/policies/kubectl.sh) <(KUBECONFIG=b contrib/policies/kubectl.sh)
set -u
k=${KUBECTL:-kubectl}
work=$(mktemp -d)
trap '"$k" delete -f "$work" --ignore-not-found --wait=false >/dev/null 2>&1; "$k" delete ns policies-test --wait=false >/dev/null 2>&1; rm -rf "$work"' EXIT

cat > "$work/1-policy.yaml" <<'EOF'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policies-test}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments]}
  matchConditions: [{name: named, expression: "object.metadata.name.startsWith('web')"}]
  variables: [{name: most, expression: "int(params.data.most)"}]
  validations:
  - expression: object.spec.replicas <= variables.most
    messageExpression: "'at most ' + string(variables.most) + ' replicas'"
    reason: Forbidden
  auditAnnotations: [{key: replicas, valueExpression: "string(object.spec.replicas)"}]
EOF
cat > "$work/2-bindings.yaml" <<'EOF'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: policies-test}
spec:
  policyName: policies-test
  validationActions: [Deny]
  paramRef: {name: policies-test, namespace: policies-test, parameterNotFoundAction: Deny}
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: policies-test}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: policies-test-warn}
spec:
  policyName: policies-test-warn
  validationActions: [Warn, Audit]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: policies-test}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policies-test-warn}
spec:
  failurePolicy: Ignore
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: ["*"], resources: [configmaps]}
  validations: [{expression: "has(object.metadata.labels)", message: labels are missing}]
EOF
cat > "$work/3-mutating.yaml" <<'EOF'
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: policies-test}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'made': 'here'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: policies-test}
spec:
  policyName: policies-test
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: policies-test}}}
EOF
deployment() {
  cat <<EOF
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: policies-test}
spec:
  replicas: $2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
EOF
}
# Prints a command, its output and its code, without what differs from run to run.
run() {
  echo "\$ kubectl $*"
  "$k" "$@" 2>&1 | sed -E 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UID/g; s/20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/TIME/g;
    s/(Resource Version: +|resourceVersion: ")[0-9]+/\1RV/; s/ [0-9]+m?s$/ AGE/; s#/tmp/[A-Za-z]+-[0-9]+#/tmp/DIFF#g; s#/tmp/tmp\.[A-Za-z0-9]+#FOLDER#g; /^(---|\+\+\+) /s/\t.*//'
  echo "code ${PIPESTATUS[0]}"
}
# A policy has an effect some time after it was written.
until_refused() { for _ in $(seq 100); do "$@" >/dev/null 2>&1 || return; sleep 0.1; done; echo "never refused: $*"; }

"$k" create ns policies-test >/dev/null
run create --dry-run=server -f "$work/1-policy.yaml"
run create -f "$work/1-policy.yaml"
run apply -f "$work/2-bindings.yaml"
run apply --server-side -f "$work/3-mutating.yaml"
"$k" -n policies-test create cm policies-test --from-literal=most=2 >/dev/null 2>&1
for kind in validatingadmissionpolicy validatingadmissionpolicybinding mutatingadmissionpolicy mutatingadmissionpolicybinding; do
  run explain $kind
  run explain $kind.spec --recursive
  run get $kind policies-test
  run get $kind policies-test -o wide
  run get $kind policies-test -o yaml
done
run explain validatingadmissionpolicy.spec.validations.messageExpression
deployment web 3 > "$work/web.yaml"; deployment other 3 > "$work/other.yaml"; deployment web 1 > "$work/small.yaml"
until_refused "$k" create --dry-run=server -f "$work/web.yaml"
run create --dry-run=server -f "$work/web.yaml"
run apply -f "$work/web.yaml"
run apply --server-side -f "$work/web.yaml"
run apply -f "$work/other.yaml"
run apply -f "$work/small.yaml"
run diff -f "$work/web.yaml"
run scale -n policies-test deployment/web --replicas=5
run patch -n policies-test deployment/web -p '{"spec":{"replicas":4}}'
run create --dry-run=server -n policies-test cm plain --from-literal=a=b -o yaml
run create -n policies-test cm plain --from-literal=a=b
run label -n policies-test cm plain made-
run annotate -n policies-test cm plain a=b
for kind in validatingadmissionpolicy validatingadmissionpolicybinding mutatingadmissionpolicy mutatingadmissionpolicybinding; do
  run describe $kind policies-test
done
run patch validatingadmissionpolicy policies-test --type=merge -p '{"spec":{"validations":[{"expression":"object.spec.replicas > \"1\""}]}}'
run patch validatingadmissionpolicy policies-test --type=merge -p '{"spec":{"validations":[{"expression":"object.("}]}}'
run patch mutatingadmissionpolicy policies-test --type=merge -p '{"spec":{"mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"1"}}]}}'
run patch validatingadmissionpolicybinding policies-test --type=merge -p '{"spec":{"validationActions":["Deny","Warn"]}}'
run delete -n policies-test deployment web other
run api-resources --api-group=admissionregistration.k8s.io
