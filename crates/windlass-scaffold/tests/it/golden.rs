//! Whole projects. `UPDATE_EXPECT=1 cargo test -p windlass-scaffold` writes the files in tests/golden again.

use std::fmt::Write;
use std::process::{Command, Stdio};

use expect_test::{ExpectFile, expect_file};
use windlass_scaffold::{CreateApi, CreateWebhook, External, Init};

use crate::{NO_LICENSE, Sandbox, api, bar, gvk};

/// Compares the files of a project with a golden file. The golden file lists only the paths of hashed files.
#[track_caller]
fn check(sandbox: &Sandbox, expected: ExpectFile) {
    let mut text = String::new();
    for path in sandbox.disk.tree() {
        let _ = writeln!(text, "=== {path}");
        for line in sandbox.disk.text(path).lines() {
            match line.split_once(" = ") {
                Some((name, hash)) if hash.len() == 66 => writeln!(text, "{name} = \"…\""),
                _ => writeln!(text, "{line}"),
            }
            .unwrap();
        }
    }
    expected.assert_eq(&text);
    check_format(sandbox);
}

/// Checks that `cargo fmt` changes no file. Passes without rustfmt.
#[track_caller]
fn check_format(sandbox: &Sandbox) {
    let folder = tempfile::tempdir().unwrap();
    for path in sandbox.disk.tree() {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, sandbox.disk.text(path)).unwrap();
    }
    let mut command = Command::new("rustfmt");
    command.args(["--check", "--edition", "2024", "api/src/lib.rs", "src/lib.rs", "src/main.rs"]);
    command.current_dir(folder.path()).stdout(Stdio::piped());
    let Ok(checked) = command.output() else { return };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn an_empty_project() {
    check(&Sandbox::init(), expect_file!["../golden/empty.txt"]);
}

#[test]
fn one_kind_with_its_controller() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    check(&sandbox, expect_file!["../golden/bar.txt"]);
}

#[test]
fn a_repository_without_a_license_and_an_acronym() {
    let repo = Some("git.tiduyun.com/tsi-controller".to_owned());
    let init = Init {
        domain: "tiduyun.com".into(),
        repo,
        license: NO_LICENSE,
        name: Some("tsi".into()),
        ..Init::default()
    };
    let mut sandbox = Sandbox::of(&init);
    sandbox.create(&CreateApi { namespaced: Some(false), ..api("tsi", "v1alpha1", "IPPool") }).unwrap();
    check(&sandbox, expect_file!["../golden/ip_pool.txt"]);
}

#[test]
fn several_versions_with_all_webhooks() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    sandbox.create(&api("foo", "v2", "Bar")).unwrap();
    let webhooks = CreateWebhook {
        gvk: gvk("foo", "v2", "Bar"),
        defaulting: true,
        validation: true,
        conversion: true,
        ..CreateWebhook::default()
    };
    sandbox.webhook(&webhooks).unwrap();
    check(&sandbox, expect_file!["../golden/webhooks.txt"]);
}

#[test]
fn several_groups_and_kinds_of_others() {
    let init = Init {
        domain: "abc.com".into(),
        multigroup: true,
        namespaced: true,
        path: Some("/src/windlass".into()),
        ..Init::default()
    };
    let mut sandbox = Sandbox::of(&init);
    sandbox.create(&api("ship", "v1", "ServiceBinding")).unwrap();
    sandbox
        .create(&CreateApi {
            plural: Some("octopi".into()),
            controller: Some(false),
            ..api("sea-creatures", "v1beta1", "Octopus")
        })
        .unwrap();
    sandbox.create(&CreateApi { resource: Some(false), ..api("apps", "v1", "Deployment") }).unwrap();
    sandbox
        .create(&CreateApi { resource: Some(false), namespaced: Some(false), ..api("core", "v1", "Node") })
        .unwrap();
    let external =
        External { path: "cert_manager::v1".into(), domain: "io".into(), module: "cert-manager@1".into() };
    sandbox
        .create(&CreateApi { external: Some(external), ..api("cert-manager", "v1", "Certificate") })
        .unwrap();
    let validation = |gvk| CreateWebhook { gvk, validation: true, ..CreateWebhook::default() };
    sandbox.webhook(&validation(gvk("apps", "v1", "Deployment"))).unwrap();
    sandbox.webhook(&validation(gvk("ship", "v1", "ServiceBinding"))).unwrap();
    let defaulting = CreateWebhook {
        gvk: gvk("ship", "v1", "ServiceBinding"),
        defaulting: true,
        ..CreateWebhook::default()
    };
    sandbox.webhook(&defaulting).unwrap();
    check(&sandbox, expect_file!["../golden/multigroup.txt"]);
}

#[test]
fn long_names_leave_no_line_for_rustfmt() {
    let kind = |letters: usize| format!("K{}", "k".repeat(letters - 1));
    for (name, letters) in [
        ("a", 3),
        ("operator-demo", 16),
        ("kubebuilder-demo", 18),
        ("a-project-with-a-name-that-is-rather-long", 21),
    ]
    .into_iter()
    .chain((22..=42).map(|letters| ("demo", letters)))
    .chain([("p", 62)])
    {
        let init = Init { domain: "abc.com".into(), name: Some(name.into()), ..Init::default() };
        let mut sandbox = Sandbox::of(&init);
        let kind = kind(letters);
        sandbox
            .create(&CreateApi { namespaced: Some(letters % 4 != 0), ..api("foo", "v1alpha1", &kind) })
            .unwrap();
        sandbox.create(&CreateApi { namespaced: Some(letters % 4 != 0), ..api("foo", "v1", &kind) }).unwrap();
        let webhooks = CreateWebhook {
            gvk: gvk("foo", "v1", &kind),
            defaulting: true,
            validation: true,
            conversion: true,
            ..CreateWebhook::default()
        };
        sandbox.webhook(&webhooks).unwrap();
        let named = |name: &str, api| CreateApi { controller_name: Some(name.into()), ..api };
        sandbox.create(&named(&"n".repeat(letters), api("foo", "v1", &kind))).unwrap();
        let pod = CreateApi { resource: Some(false), ..api("core", "v1", "Pod") };
        sandbox.create(&named(&"p".repeat(letters), pod)).unwrap();
        check_format(&sandbox);
    }
}
