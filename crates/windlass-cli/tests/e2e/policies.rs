//! `windlass policy`: admission policies on objects, without a cluster.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::process::windlass;

const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: replicas }
spec:
  paramKind: { apiVersion: v1, kind: ConfigMap }
  matchConstraints:
    resourceRules:
      - { apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [deployments] }
  matchConditions:
    - { name: not-system, expression: "!request.userInfo.username.startsWith('system:')" }
  variables:
    - { name: max, expression: "int(params.data.max)" }
  validations:
    - expression: object.spec.replicas <= variables.max
      messageExpression: "'at most ' + string(variables.max) + ' replicas'"
    - expression: oldObject == null || object.spec.replicas >= oldObject.spec.replicas
      message: replicas must not fall
---
apiVersion: v1
kind: ConfigMap
metadata: { name: limits, namespace: shop }
data: { max: "3" }
"#;

fn deployment(replicas: u32) -> String {
    format!(
        r"
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: web, namespace: shop }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: web }} }}
  template:
    metadata: {{ labels: {{ app: web }} }}
    spec: {{ containers: [{{ name: main, image: busybox }}] }}
"
    )
}

/// Returns the exit code, stdout and stderr of `windlass policy` in a folder with the files.
fn outcome(files: &[(&str, &str)], arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), files);
    let mut command = windlass(&["policy"]);
    let output = command.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn each_expression_has_its_result_and_its_cost() {
    let (new, old) = (deployment(4), deployment(5));
    let files = [("policy.yaml", POLICY), ("new.yaml", &new), ("old.yaml", &old)];
    let (code, out, err) = outcome(&files, &["policy.yaml", "--object", "new.yaml"]);
    let expected = "\
replicas has no binding in the files, and is tried on all requests
Deployment shop/web (create, as kubernetes-admin)
  ValidatingAdmissionPolicy replicas, binding replicas, params shop/limits
    match condition not-system: true (cost COST): !request.userInfo.username.startsWith('system:')
    validation 1: false (cost COST): object.spec.replicas <= variables.max
    validation 2: true (cost COST): oldObject == null || object.spec.replicas >= oldObject.spec.replicas
    message of validation 1: at most 3 replicas (cost COST): 'at most ' + string(variables.max) + ' replicas'
  denied: 422 deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'replicas' with binding 'replicas' denied request: at most 3 replicas
";
    assert_eq!(without_costs(&out), expected, "{err}");
    assert_eq!((code, err.as_str()), (1, "error: the object is denied\n"));

    let (code, out, _) = outcome(&files, &["policy.yaml", "--object", "new.yaml", "--old", "old.yaml"]);
    assert!(out.contains("Deployment shop/web (update, as kubernetes-admin)"), "{out}");
    assert!(code == 1 && out.contains("validation 2: false"), "{out}");
}

/// Replaces the numbers after `cost`.
fn without_costs(text: &str) -> String {
    let mut pieces = text.split("(cost ");
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (cost, rest) = piece.split_once(')').expect("a parenthesis");
        assert!(cost.parse::<u64>().is_ok_and(|cost| cost > 0), "{cost}");
        result.push_str("(cost COST)");
        result.push_str(rest);
    }
    result
}

#[test]
fn warnings_about_types_are_those_of_a_cluster() {
    let policy = POLICY.replace("oldObject == null ||", "object.spec.strategy > 1 ||");
    let object = deployment(1);
    let files = [("policy.yaml", policy.as_str()), ("new.yaml", &object)];
    let (_, out, err) = outcome(&files, &["policy.yaml", "--object", "new.yaml"]);
    let warning = "\
replicas: warning: spec.validations[1].expression:
  apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(Deployment.spec.strategy, int)'
   | object.spec.strategy > 1 || object.spec.replicas >= oldObject.spec.replicas
   | .....................^
Deployment shop/web";
    assert!(out.contains(warning), "{out}{err}");
}

#[test]
fn a_user_a_binding_and_a_deletion_decide_which_expressions_run() {
    let object = deployment(4);
    let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: { name: tests }\nspec:\n  \
                   policyName: replicas\n  validationActions: [Warn]\n  paramRef: { name: limits, parameterNotFoundAction: Deny }\n  \
                   matchResources: { namespaceSelector: { matchLabels: { stage: test } } }\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop, labels: { stage: test } }\n";
    let files = [("policy.yaml", POLICY), ("b.yaml", binding), ("n.yaml", namespace), ("new.yaml", &object)];
    let run = |arguments: &[&str]| outcome(&files, &[arguments, &["--object", "new.yaml"]].concat());

    let (code, out, _) = run(&["policy.yaml", "b.yaml", "n.yaml", "--as", "jane"]);
    assert!(out.contains("(create, as jane)") && out.contains("binding tests, params shop/limits"), "{out}");
    let warning = "warning: Validation failed for ValidatingAdmissionPolicy 'replicas' with binding 'tests': at most 3 replicas";
    assert!(code == 0 && out.contains(warning) && out.contains("  admitted"), "{out}");

    let (code, out, _) = run(&["policy.yaml", "b.yaml"]);
    assert!(code == 0 && out.contains("binding tests\n    does not match the request"), "{out}");

    let (code, out, _) = run(&["policy.yaml", "--as", "system:serviceaccount:shop:builder"]);
    assert!(code == 0 && out.contains("not-system: false") && !out.contains("validation 1"), "{out}");

    let (code, out, _) = run(&["policy.yaml", "--delete"]);
    assert!(code == 0 && out.contains("(delete, as"), "{out}");
    assert!(out.contains("ValidatingAdmissionPolicy replicas\n    does not match the request"), "{out}");
}

#[test]
fn a_mutation_of_a_custom_object_is_shown_as_a_diff() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: shops.example.com }\nspec:\n  \
                      group: example.com\n  scope: Namespaced\n  names: { plural: shops, singular: shop, kind: Shop, listKind: ShopList }\n  \
                      versions:\n    - { name: v1, served: true, storage: true, schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, \
                      properties: { size: { type: integer } } } } } } }\n";
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: { name: size }\nspec:\n  \
                  reinvocationPolicy: Never\n  failurePolicy: Fail\n  matchConstraints: { resourceRules: [{ apiGroups: [example.com], apiVersions: ['*'], \
                  operations: [CREATE], resources: [shops] }] }\n  mutations:\n    - patchType: ApplyConfiguration\n      applyConfiguration: { expression: \
                  'Object{spec: Object.spec{size: object.spec.size * 2}}' }\n";
    let object = "apiVersion: example.com/v1\nkind: Shop\nmetadata: { name: s }\nspec: { size: 3 }\n";
    let files = [("crd.yaml", definition), ("policy.yaml", policy), ("object.yaml", object)];
    let (code, out, err) = outcome(&files, &["policy.yaml", "crd.yaml", "--object", "object.yaml"]);
    assert_eq!(code, 0, "{out}{err}");
    for line in ["    mutation 1: ", "  -  size: 3\n", "  +  size: 6\n", "  admitted\n"] {
        assert!(out.contains(line), "{line:?} is missing:\n{out}");
    }
}

#[test]
fn mistakes_in_the_files_are_said() {
    let object = deployment(4);
    let unknown = "apiVersion: example.com/v1\nkind: Shop\nmetadata: { name: s }\n";
    let broken = POLICY.replace("object.spec.replicas <= variables.max", "object.spec.replicas <=");
    let files =
        [("policy.yaml", POLICY), ("broken.yaml", &broken), ("new.yaml", &object), ("unknown.yaml", unknown)];
    for (arguments, part) in [
        (&["new.yaml", "--object", "new.yaml"][..], "the files have no admission policy"),
        (&["policy.yaml", "--object", "unknown.yaml"], "CustomResourceDefinition of the kind"),
        (&["broken.yaml", "--object", "new.yaml"], "Syntax error"),
        (&["absent.yaml", "--object", "new.yaml"], "absent.yaml: "),
    ] {
        let (code, _, err) = outcome(&files, arguments);
        assert!(code == 1 && err.contains(part), "{arguments:?}: {err}");
    }
}
