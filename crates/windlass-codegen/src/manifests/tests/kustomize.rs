//! kustomize builds `install.yaml` from `config/default`.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::{Component, Inventory, Options, everything, full, manifests, small};
use crate::manifests::documents;

/// Builds with `$KUSTOMIZE`, `kustomize` or `kubectl kustomize`. Returns `None` if no such program is
/// installed.
fn build(folder: &Path) -> Option<Vec<Value>> {
    let own = std::env::var("KUSTOMIZE").unwrap_or_else(|_| "kustomize".to_owned());
    let output = Command::new(own)
        .arg("build")
        .arg(folder)
        .output()
        .or_else(|_| Command::new("kubectl").arg("kustomize").arg(folder).output())
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(documents(&String::from_utf8_lossy(&output.stdout)).expect("YAML"))
}

fn compare(inventory: &Inventory, options: Options) {
    let manifests = manifests(inventory, options);
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in manifests.files() {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
    let Some(built) = build(&folder.path().join("config/default")) else {
        eprintln!("skipped: neither kustomize nor kubectl is installed");
        return;
    };
    let ours = documents(&manifests.install()).expect("YAML");
    let names = |objects: &[Value]| -> Vec<String> {
        let name = |object: &Value| {
            format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
        };
        objects.iter().map(name).collect()
    };
    assert_eq!(names(&ours), names(&built));
    for (ours, built) in ours.iter().zip(&built) {
        assert_eq!(ours, built);
    }
}

/// Returns texts that a YAML parser may take for other types.
fn odd_texts() -> Inventory {
    let mut inventory = small();
    let texts = [
        "yes",
        "on",
        "no",
        "y",
        "~",
        "null",
        "1e3",
        "0x1f",
        "0o7",
        "017",
        "1_000",
        "12:30:45",
        "2026-11-22",
        ".inf",
        "- a",
        "a: b",
        "a #b",
        " a",
        "a ",
        "",
        "|",
        "\"",
        "'",
        "\t",
        "a\nb\n",
        "a\n\n  b",
        "\u{feff}",
        "中文",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "{",
        "[",
        "?",
        "---",
        "...",
        "=",
        "<<",
        "a\r\nb",
        "\u{2028}",
        "true",
        "1.0",
        "-",
        "😀",
    ];
    let annotations = inventory.crds[0].metadata.annotations.get_or_insert_default();
    let keyed = texts.iter().enumerate();
    annotations.extend(keyed.map(|(index, text)| (format!("text-{index}"), (*text).to_owned())));
    inventory
}

#[test]
fn kustomize_builds_what_install_has() {
    compare(&full(), everything());
    compare(&full(), Options::new("web-operator"));
    compare(&odd_texts(), Options::new("web-operator"));
    compare(&small(), Options::new("web-operator"));
    let mut bare = Options::new("web-operator");
    bare.components.clear();
    compare(&small(), bare);
    let mut policies = Options::new("web-operator");
    policies.components = [Component::NetworkPolicy].into();
    compare(&full(), policies);
    let mut inventory = full();
    inventory.webhooks.as_mut().expect("webhooks").certificates = crate::CertificateOrigin::SelfIssued;
    compare(&inventory, everything());
}
