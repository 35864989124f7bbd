//! `edit` and `update`: the three-way merge.

use windlass_scaffold::{Edit, License, Outcome, Plan, Project};

use crate::memory::{Memory, shown};
use crate::{Sandbox, api, bar};

fn edit(sandbox: &Sandbox, edit: &Edit) -> Outcome {
    let after = edit.apply(&sandbox.project).unwrap();
    let header = after.license.header(after.owner.as_deref(), 2026, None);
    Plan::update(&sandbox.project, &after).header(header).run(&sandbox.disk).unwrap()
}

fn sandbox() -> Sandbox {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    sandbox.disk.edit("src/controllers/bar.rs", "// Your logic: read", "// Mine: read");
    sandbox
}

#[test]
fn an_update_without_changes_writes_nothing() {
    let sandbox = sandbox();
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert!(outcome.writes.is_empty(), "{:?}", shown(&outcome.writes));
}

#[test]
fn a_change_of_the_state_alone_is_shown() {
    let sandbox = Sandbox::init();
    let writes = edit(&sandbox, &Edit { multigroup: Some(true), ..Edit::default() }).writes;
    assert_eq!(shown(&writes), ["changed windlass.toml"]);
}

#[test]
fn another_owner_changes_the_headers_and_keeps_the_users_code() {
    let mut sandbox = sandbox();
    let outcome = edit(&sandbox, &Edit { owner: Some("lisi".into()), ..Edit::default() });
    assert_eq!((&outcome.conflicts[..], &outcome.unmerged[..]), (&[][..], &[][..]));
    sandbox.apply(&outcome.writes);
    let text = sandbox.disk.text("src/controllers/bar.rs");
    assert!(text.starts_with("// Copyright 2026 lisi.\n") && text.contains("// Mine: read"), "{text}");
}

#[test]
fn no_license_removes_the_headers() {
    let mut sandbox = sandbox();
    sandbox.apply(&edit(&sandbox, &Edit { license: Some(License::None), ..Edit::default() }).writes);
    assert!(sandbox.disk.text("src/main.rs").starts_with("//! Runs the operator."));
    assert!(!sandbox.disk.files.contains_key("hack/boilerplate.rs.txt"));
    assert!(!sandbox.disk.text("Cargo.toml").contains("license"));
}

#[test]
fn folders_for_groups_move_the_users_code_and_its_imports() {
    let mut sandbox = sandbox();
    sandbox.apply(&edit(&sandbox, &Edit { multigroup: Some(true), ..Edit::default() }).writes);
    let text = sandbox.disk.text("src/controllers/foo/bar.rs");
    assert!(
        text.contains("use operator_demo_api::foo::v1::{Bar, BarStatus};") && text.contains("// Mine: read"),
        "{text}"
    );
    for gone in [
        "src/controllers/bar.rs",
        "api/src/v1/bar.rs",
        "api/src/v1/mod.rs",
        ".windlass/base/src/controllers/bar.rs",
    ] {
        assert!(!sandbox.disk.files.contains_key(gone), "{gone}");
    }
    sandbox.create(&api("other", "v1", "Baz")).unwrap();
    let back =
        Edit { multigroup: Some(false), ..Edit::default() }.apply(&sandbox.project).unwrap_err().to_string();
    assert!(back.contains("several groups (foo, other)"), "{back}");
}

/// Returns a project of an older Windlass with another template of a file.
fn of_an_older_template(path: &str, text: &str) -> Sandbox {
    let mut sandbox = sandbox();
    let current = sandbox.disk.text(path);
    sandbox.disk.files.insert(path.into(), text.into());
    sandbox.disk.files.insert(format!(".windlass/base/{path}"), text.into());
    let old_hash = hash_of(&sandbox, path);
    let state = sandbox.disk.text("windlass.toml").replace(&old_hash, &digest(text));
    sandbox.disk.files.insert("windlass.toml".into(), state.clone());
    sandbox.project = Project::parse(&state).unwrap();
    assert_ne!(current, text);
    sandbox
}

fn hash_of(sandbox: &Sandbox, path: &str) -> String {
    sandbox.project.files[path].clone()
}

/// The hash that a project records for a text, found by scaffolding the text.
fn digest(text: &str) -> String {
    use sha2::Digest;
    let digits = sha2::Sha256::digest(text).into_iter().map(|byte| [byte >> 4, byte & 15]);
    digits.flatten().filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

const OLD_MAIN: &str = "//! Runs the operator.\n\nfn main() {\n    println!(\"old\");\n}\n";

#[test]
fn a_file_that_the_user_left_alone_becomes_the_new_template() {
    let sandbox = of_an_older_template("src/main.rs", OLD_MAIN);
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!(shown(&outcome.writes), ["changed src/main.rs"]);
    assert!(outcome.writes.text("src/main.rs").unwrap().contains("register(manager, &setup)"));
}

#[test]
fn a_controller_of_a_project_without_setup_gets_the_parameter_and_keeps_its_logic() {
    let path = "src/controllers/bar.rs";
    let old = sandbox().disk.text(path).replace("// Mine: read", "// Your logic: read");
    let old = old.replace("use crate::Setup;\n\n", "").replace("controller(_: &Setup)", "controller()");
    let mut sandbox = of_an_older_template(path, &old);
    sandbox.disk.edit(path, "// Your logic: read", "// Mine: read");
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!((&outcome.conflicts[..], &outcome.unmerged[..]), (&[][..], &[][..]));
    let text = outcome.writes.text(path).unwrap();
    assert!(text.contains("controller(_: &Setup)") && text.contains("// Mine: read"), "{text}");
}

#[test]
fn changes_of_the_same_lines_are_a_conflict_that_is_named() {
    let mut sandbox = of_an_older_template("src/main.rs", OLD_MAIN);
    sandbox.disk.edit("src/main.rs", "old", "mine");
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!(outcome.conflicts, ["src/main.rs"]);
    let text = outcome.writes.text("src/main.rs").unwrap();
    assert!(text.contains("<<<<<<<") && text.contains("mine") && text.contains("register"), "{text}");
}

#[test]
fn without_the_scaffolded_text_an_edited_file_is_left_alone_and_named() {
    let mut sandbox = of_an_older_template("src/main.rs", OLD_MAIN);
    sandbox.disk.edit("src/main.rs", "old", "mine");
    sandbox.disk.files.remove(".windlass/base/src/main.rs");
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!(outcome.unmerged, ["src/main.rs"]);
    assert!(outcome.writes.text("src/main.rs").is_none());
}

#[test]
fn a_file_of_a_newer_template_is_added_by_an_update_only() {
    let mut sandbox = sandbox();
    let setup = sandbox.disk.files.remove("src/setup.rs").unwrap();
    sandbox.project.files.remove("src/setup.rs");
    let after = api("foo", "v2", "Bar").apply(&sandbox.project).unwrap();
    let refused = Plan::create(Some(&sandbox.project), &after).run(&sandbox.disk).unwrap_err().to_string();
    assert!(refused.contains("without src/setup.rs; run `windlass update` first"), "{refused}");
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!(outcome.writes.text("src/setup.rs"), Some(setup.as_str()));
}

#[test]
fn a_file_that_the_user_deleted_stays_deleted() {
    let mut sandbox = sandbox();
    sandbox.disk.files.remove("Makefile");
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert!(outcome.writes.is_empty());
    let _: &Memory = &sandbox.disk;
}

#[test]
fn an_old_name_is_renamed_in_a_scaffolded_file_and_reported_elsewhere() {
    let path = "src/controllers/bar.rs";
    let old = sandbox().disk.text(path).replace("// Mine: read", "// Your logic: read");
    let old = old.replace("get_not_terminating", "get_alive");
    assert!(old.contains("get_alive"), "{old}");
    let mut sandbox = of_an_older_template(path, &old);
    // The user has changed the line with the old name.
    sandbox.disk.edit(path, "cx.get_alive(&key)?", "cx.get_alive(&key)?.filter(is_mine)");
    sandbox
        .disk
        .files
        .insert("src/backups.rs".into(), "fn f() {\n    c.owns_with::<Pod>(|w| w);\n}\n".into());
    let outcome = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert_eq!((&outcome.conflicts[..], &outcome.unmerged[..]), (&[][..], &[][..]));
    let text = outcome.writes.text(path).unwrap();
    assert!(text.contains("cx.get_not_terminating(&key)?.filter(is_mine)"), "{text}");
    assert_eq!(
        outcome.old_names,
        ["src/backups.rs:2: `owns_with` is now `.watch(Watch::owned(kind::<C>())..)`"]
    );
}
