//! `windlass generate`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A CRD with two versions. Only one version has a status.
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: networks.samplecrd.k8s.io }
spec:
  group: samplecrd.k8s.io
  scope: Namespaced
  names: { kind: Network, plural: networks }
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {} }
    schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { cidr: { type: string } } }, status: { type: object } } } }
  - name: v1beta1
    served: true
    storage: false
    schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, properties: { cidr: { type: string } } } } } }
";

fn windlass(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.current_dir(folder).args(line.split(' ')).output().expect("it runs")
}

#[track_caller]
fn succeeds(folder: &Path, line: &str) -> (String, String) {
    let output = windlass(folder, line);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{out}{err}");
    (out, err)
}

/// A crate with a CRD.
fn krate() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("a crate");
    fs::create_dir_all(root.join("src")).expect("created");
    fs::write(root.join("Cargo.toml"), "[package]\nname = \"my-networks\"\n").expect("written");
    fs::write(root.join("crd.yaml"), CRD).expect("written");
    (folder, root)
}

#[test]
fn the_line_of_generate_groups_writes_the_clients_of_one_version() {
    let (_folder, root) = krate();
    let line = "generate all example.com/demo/pkg/client example.com/demo/pkg/apis samplecrd:v1 --crd crd.yaml --output src/client \
                --types crate::apis::{group}::{version} --go-header-file boilerplate.txt";
    let (out, err) = succeeds(&root, &format!("{line} --dry-run"));
    assert!(out.contains("would create src/client/clientset/samplecrd/v1.rs"), "{out}");
    assert!(!root.join("src/client").exists(), "a dry run writes nothing");
    for note in [
        "--go-header-file has no meaning",
        "\"example.com/demo/pkg/apis\" has no meaning",
        "no apply configuration",
    ] {
        assert!(err.contains(note), "{err}");
    }
    succeeds(&root, line);
    let client = fs::read_to_string(root.join("src/client/clientset/samplecrd/v1.rs")).expect("written");
    assert!(
        client.contains("use crate::apis::samplecrd::v1::Network;") && client.contains("UpdateStatus"),
        "{client}"
    );
    assert!(
        fs::read_to_string(root.join("src/client/informers/mod.rs"))
            .expect("written")
            .contains("use my_networks::client::informers")
    );
    assert!(!root.join("src/client/clientset/samplecrd/v1beta1.rs").exists());
    assert_eq!(succeeds(&root, line).0, "nothing to write: everything is up to date\n");
}

#[test]
fn types_come_with_the_clients_of_foreign_kinds_and_stale_files_go() {
    let (_folder, root) = krate();
    succeeds(&root, "generate all --crd crd.yaml --output src/crds");
    let types = fs::read_to_string(root.join("src/crds/types/samplecrd/v1.rs")).expect("written");
    assert!(types.contains("pub struct NetworkSpec"), "{types}");
    let client = fs::read_to_string(root.join("src/crds/clientset/samplecrd/v1beta1.rs")).expect("written");
    assert!(client.contains("use crate::crds::types::samplecrd::v1beta1::Network;"), "{client}");
    fs::write(root.join("src/crds/mine.rs"), "//! Mine.\n").expect("written");

    // A version is gone, and one piece is generated: stale files of this piece are removed, other files stay.
    let without = CRD.split("  - name: v1beta1").next().expect("a part");
    fs::write(root.join("crd.yaml"), without).expect("written");
    let (out, _) = succeeds(&root, "generate client --crd crd.yaml --output src/crds");
    assert!(out.contains("removed src/crds/clientset/samplecrd/v1beta1.rs"), "{out}");
    assert!(
        root.join("src/crds/listers/samplecrd/v1beta1.rs").exists() && root.join("src/crds/mine.rs").exists()
    );
    let root_module = fs::read_to_string(root.join("src/crds/mod.rs")).expect("written");
    for module in ["clientset", "informers", "listers", "register", "types"] {
        assert!(root_module.contains(&format!("pub mod {module};")), "{root_module}");
    }
    let (out, _) = succeeds(&root, "generate all --crd crd.yaml --output src/crds --diff");
    assert!(out.contains("--- a/src/crds/listers/samplecrd/v1beta1.rs\n+++ /dev/null"), "{out}");
}

#[test]
fn mistakes_are_explained() {
    let (_folder, root) = krate();
    let refused = |line: &str| {
        let output = windlass(&root, line);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).expect("text")
    };
    assert!(refused("generate clients --crd crd.yaml --output src/x").contains("\"clients\" is no piece"));
    assert!(refused("generate").contains("is not in a project"));
    assert!(refused("generate all --crd crd.yaml").contains("--crd needs --output"));
    assert!(refused("generate all --crd absent.yaml --output src/x").contains("cannot read absent.yaml"));
    assert!(
        refused("generate all a b other:v1 --crd crd.yaml --output src/x")
            .contains("no CRD of the wanted groups")
    );
    fs::create_dir_all(root.join("src/x/clientset")).expect("created");
    fs::write(root.join("src/x/clientset/mod.rs"), "//! Mine.\n").expect("written");
    assert!(refused("generate all --crd crd.yaml --output src/x").contains("is not generated"));
}

/// The clients of the examples agree with the CRDs of the examples.
#[test]
fn the_examples_are_up_to_date() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let network = "generate all --types crate::apis::{group}::{version}";
    let ip_pool = "generate client,informers,listers --types crate";
    for (example, line) in [("network", network), ("ip-pool", ip_pool)] {
        let line = format!("{line} --crd crd.yaml --output src/client --diff");
        assert_eq!(succeeds(&examples.join(example), &line).0, "", "{example}");
    }
}
