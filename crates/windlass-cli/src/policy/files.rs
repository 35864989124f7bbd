//! The files of a trial.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::error::{Advice, Result};

/// The group of policies.
const GROUP: &str = "admissionregistration.k8s.io/";

/// The kinds of policies. The kind of a binding has the ending `Binding`.
const POLICIES: [&str; 2] = ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"];

/// The documents of a trial.
pub(crate) struct Files {
    /// The policies and their bindings.
    pub(super) policies: Vec<Value>,
    /// The names of the policies that got a binding.
    pub(super) unbound: Vec<String>,
    /// The objects that are there before the request: definitions of kinds and namespaces first.
    pub(super) surroundings: Vec<Value>,
    /// The objects to try.
    pub(super) objects: Vec<Value>,
}

impl Files {
    /// Reads the files, and gives each policy without a binding a binding for all requests.
    ///
    /// # Errors
    /// A file cannot be read, a document is no object, or there is no policy.
    pub(crate) fn read(files: &[PathBuf], old: &[PathBuf], objects: &[PathBuf]) -> Result<Self> {
        let objects = documents(objects)?;
        let (mut policies, mut surroundings): (Vec<_>, Vec<_>) =
            documents(files)?.into_iter().partition(is_of_policies);
        surroundings.extend(documents(old)?);
        surroundings.sort_by_key(place);
        if !policies.iter().any(|policy| POLICIES.contains(&kind(policy))) {
            return Err(Advice::new(
                "the files have no admission policy",
                "name a file with a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy",
            ));
        }
        let bindings: Vec<Value> = policies.iter().filter_map(|policy| binding(policy, &policies)).collect();
        let unbound = bindings.iter().map(|binding| name(binding).to_owned()).collect();
        policies.extend(bindings);
        Ok(Self { policies, unbound, surroundings, objects })
    }

    /// Returns the ValidatingAdmissionPolicies of the files.
    pub(super) fn validating(&self) -> impl Iterator<Item = &Value> {
        self.policies.iter().filter(|policy| kind(policy) == POLICIES[0])
    }

    /// Returns a policy of the files.
    pub(super) fn policy(&self, of_kind: &str, of_name: &str) -> Option<&Value> {
        self.policies.iter().find(|policy| kind(policy) == of_kind && name(policy) == of_name)
    }
}

/// Returns a binding for a policy that has none.
fn binding(policy: &Value, all: &[Value]) -> Option<Value> {
    let kind_of_binding = format!("{}Binding", POLICIES.into_iter().find(|known| *known == kind(policy))?);
    let binds = |other: &&Value| {
        kind(other) == kind_of_binding && other["spec"]["policyName"] == policy["metadata"]["name"]
    };
    if all.iter().any(|other| binds(&other)) {
        return None;
    }
    let mut spec = json!({ "policyName": policy["metadata"]["name"] });
    if kind(policy) == POLICIES[0] {
        spec["validationActions"] = json!(["Deny"]);
    }
    if !policy["spec"]["paramKind"].is_null() {
        spec["paramRef"] = json!({ "selector": {}, "parameterNotFoundAction": "Deny" });
    }
    Some(json!({
        "apiVersion": policy["apiVersion"], "kind": kind_of_binding, "metadata": { "name": policy["metadata"]["name"] }, "spec": spec,
    }))
}

/// Returns the documents of files, in the order of the files. A folder stands for its YAML files.
fn documents(paths: &[PathBuf]) -> Result<Vec<Value>> {
    let mut documents = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut entries: Vec<PathBuf> =
                fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
            entries.retain(|entry| {
                entry.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            });
            entries.sort();
            for entry in &entries {
                documents.extend(of_file(entry)?);
            }
        } else {
            documents.extend(of_file(path)?);
        }
    }
    Ok(documents)
}

fn of_file(path: &Path) -> Result<Vec<Value>> {
    let shown = path.display();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        text
    } else {
        fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?
    };
    let found = windlass_dev::read_manifests(&text).map_err(|error| format!("{shown}: {error}"))?;
    let mut documents = Vec::with_capacity(found.len());
    for document in found {
        if kind(&document) == "List" && document["items"].is_array() {
            documents.extend(document["items"].as_array().cloned().unwrap_or_default());
        } else if document["kind"].is_string() && document["apiVersion"].is_string() {
            documents.push(document);
        } else if !document["resources"].is_array() {
            // A list of files for kustomize has no kind.
            return Err(format!("{shown}: a document has no apiVersion or no kind").into());
        }
    }
    Ok(documents)
}

fn is_of_policies(document: &Value) -> bool {
    let is_policy = |known: &str| kind(document).strip_suffix("Binding").unwrap_or(kind(document)) == known;
    document["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP))
        && POLICIES.into_iter().any(is_policy)
}

/// Returns the place of an object in the order of creation.
fn place(object: &Value) -> u8 {
    match kind(object) {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        _ => 2,
    }
}

pub(super) fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Files> {
        let folder = tempfile::tempdir()?;
        for (number, text) in texts.iter().enumerate() {
            fs::write(folder.path().join(format!("{number}.yaml")), text)?;
        }
        Files::read(&[folder.path().to_owned()], &[], &[])
    }

    const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: { name: p }\nspec: { paramKind: { apiVersion: v1, kind: ConfigMap } }\n";

    #[test]
    fn a_policy_without_a_binding_gets_a_binding_for_all_requests_and_parameters() {
        let files = read(&[POLICY]).expect("read");
        assert_eq!(files.unbound, ["p"]);
        let expected = json!({
            "policyName": "p", "validationActions": ["Deny"],
            "paramRef": { "selector": {}, "parameterNotFoundAction": "Deny" },
        });
        assert_eq!(
            (kind(&files.policies[1]), &files.policies[1]["spec"]),
            ("ValidatingAdmissionPolicyBinding", &expected)
        );
        let binding = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: { name: b }\nspec: { policyName: p }\n";
        let files = read(&[POLICY, binding]).expect("read");
        assert_eq!((files.unbound.len(), files.policies.len()), (0, 2));
    }

    #[test]
    fn definitions_and_namespaces_come_first_and_files_without_a_policy_are_refused() {
        let objects = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\n---\napiVersion: v1\nkind: Namespace\nmetadata: { name: n }\n---\n\
             apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: d }\n";
        let files = read(&[objects, POLICY]).expect("read");
        let kinds: Vec<&str> = files.surroundings.iter().map(kind).collect();
        assert_eq!(kinds, ["CustomResourceDefinition", "Namespace", "ConfigMap"]);
        assert!(
            read(&[objects]).err().is_some_and(|error| error.to_string().contains("no admission policy"))
        );
        assert!(
            read(&[POLICY, "a: b\n"])
                .err()
                .is_some_and(|error| error.to_string().contains("1.yaml: a document has no"))
        );
    }
}
