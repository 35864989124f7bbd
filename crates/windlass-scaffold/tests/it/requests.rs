//! What is refused, and what may be repeated.

use windlass_scaffold::{CreateApi, CreateWebhook, DeleteApi, DeleteWebhook, Edit, Init, Plan, Project};

use crate::memory::shown;
use crate::{Sandbox, api, bar, gvk};

#[track_caller]
fn refused<T>(result: windlass_scaffold::Result<T>, part: &str) {
    let Err(error) = result else { panic!("it was not refused: {part}") };
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn the_same_request_twice_writes_nothing() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let again = Plan::create(Some(&sandbox.project), &bar().apply(&sandbox.project).unwrap())
        .run(&sandbox.disk)
        .unwrap();
    assert_eq!(shown(&again.writes), Vec::<String>::new());
    assert!(again.writes.is_empty());
}

#[test]
fn an_interrupted_request_is_completed_by_the_next() {
    let mut sandbox = Sandbox::init();
    let after = bar().apply(&sandbox.project).unwrap();
    let outcome = Plan::create(Some(&sandbox.project), &after).run(&sandbox.disk).unwrap();
    let mut complete = sandbox.disk.clone();
    complete.apply(&outcome.writes);
    // Everything but the state was written.
    let state = sandbox.disk.text("windlass.toml");
    sandbox.disk.apply(&outcome.writes);
    sandbox.disk.files.insert("windlass.toml".into(), state);
    sandbox.create(&bar()).unwrap();
    assert_eq!(sandbox.disk, complete);
}

#[test]
fn files_of_the_user_are_not_overwritten_without_force() {
    let mut sandbox = Sandbox::init();
    sandbox.disk.files.insert("src/controllers/bar.rs".into(), "mine".into());
    refused(sandbox.create(&bar()), "a file exists already: src/controllers/bar.rs");
    let after = bar().apply(&sandbox.project).unwrap();
    let forced = Plan::create(Some(&sandbox.project), &after).force(true).run(&sandbox.disk).unwrap();
    assert!(shown(&forced.writes).contains(&"changed src/controllers/bar.rs".to_owned()));
}

#[test]
fn a_file_of_the_user_in_the_place_of_a_generated_one_is_kept() {
    let mut sandbox = Sandbox::init();
    sandbox.disk.files.insert("src/controllers/mod.rs".into(), "// mine\n".into());
    refused(sandbox.create(&bar()), "src/controllers/mod.rs is not generated");
}

#[test]
fn names_and_neighbours_are_checked() {
    let mut sandbox = Sandbox::init();
    refused(sandbox.create(&api("", "v1", "Bar")), "the group is empty");
    refused(sandbox.create(&api("foo", "1", "Bar")), "version \"1\" is not a version");
    refused(sandbox.create(&api("foo", "v1", "bar")), "try Bar");
    refused(sandbox.create(&api("foo", "v1", "Match")), "a keyword of Rust");
    refused(
        sandbox.create(&CreateApi { resource: Some(false), ..bar() }),
        "foo/v1 is not a built-in group of Kubernetes",
    );
    sandbox.create(&bar()).unwrap();
    refused(sandbox.create(&api("other", "v1", "Baz")), "windlass edit --multigroup");
    refused(sandbox.create(&CreateApi { namespaced: false, ..bar() }), "exists already with another scope");
    refused(sandbox.create(&CreateApi { plural: Some("barz".into()), ..bar() }), "another plural");
    refused(
        sandbox.create(&CreateApi { controller: Some(true), ..api("foo", "v2", "Bar") }),
        "has a controller already",
    );
    refused(
        sandbox.create(&CreateApi { plural: Some("barz".into()), ..api("foo", "v2", "Bar") }),
        "all versions of a kind",
    );
    refused(sandbox.create(&api("foo", "v1", "BAR")), "has the module bar already");
    refused(Init { name: Some("My Operator".into()), ..Init::default() }.project("x"), "--project-name");
}

#[test]
fn webhooks_need_their_kind_and_can_be_added_later() {
    let mut sandbox = Sandbox::init();
    let webhook =
        |version: &str| CreateWebhook { gvk: gvk("foo", version, "Bar"), ..CreateWebhook::default() };
    refused(
        sandbox.webhook(&CreateWebhook { validation: true, ..webhook("v1") }),
        "the project has no Bar (foo/v1); it has none",
    );
    sandbox.create(&bar()).unwrap();
    refused(sandbox.webhook(&webhook("v1")), "at least one of");
    refused(sandbox.webhook(&CreateWebhook { conversion: true, ..webhook("v1") }), "Bar has one version");
    sandbox.webhook(&CreateWebhook { validation: true, ..webhook("v1") }).unwrap();
    sandbox.disk.edit("src/webhooks/bar/validation.rs", "// Your logic.", "// My logic.");
    sandbox.webhook(&CreateWebhook { defaulting: true, ..webhook("v1") }).unwrap();
    assert!(sandbox.disk.text("src/webhooks/bar/validation.rs").contains("My logic"));
    assert!(
        sandbox.disk.text("src/webhooks/bar/mod.rs").contains("pub mod defaulting;\npub mod validation;")
    );
    sandbox.create(&api("foo", "v2", "Bar")).unwrap();
    refused(
        sandbox.webhook(&CreateWebhook { validation: true, ..webhook("v2") }),
        "has a validating webhook already",
    );
    refused(
        sandbox.webhook(&CreateWebhook { conversion: true, spokes: vec!["v3".into()], ..webhook("v2") }),
        "no version v3",
    );
}

#[test]
fn what_is_deleted_leaves_the_project_as_it_was() {
    let mut sandbox = Sandbox::init();
    let before = sandbox.disk.clone();
    sandbox.create(&bar()).unwrap();
    let with_bar = sandbox.disk.clone();
    sandbox
        .webhook(&CreateWebhook {
            gvk: gvk("foo", "v1", "Bar"),
            validation: true,
            ..CreateWebhook::default()
        })
        .unwrap();
    let delete = DeleteWebhook { gvk: gvk("foo", "v1", "Bar"), ..DeleteWebhook::default() };
    sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    assert_eq!(sandbox.disk, with_bar);
    refused(delete.apply(&sandbox.project), "has no webhooks");
    let delete = DeleteApi { gvk: gvk("foo", "v1", "Bar") };
    sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    assert_eq!(sandbox.disk, before);
    refused(delete.apply(&sandbox.project), "the project has no Bar (foo/v1)");
}

#[test]
fn edited_files_are_deleted_only_if_they_are_committed() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    sandbox.disk.edit("api/src/v1/bar.rs", "foo: Option<String>", "replicas: u32");
    let delete = DeleteApi { gvk: gvk("foo", "v1", "Bar") };
    refused(sandbox.become_(delete.apply(&sandbox.project)), "not committed: api/src/v1/bar.rs");
    sandbox.disk.committed = true;
    sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    assert!(!sandbox.disk.files.contains_key("api/src/v1/bar.rs"));
}

#[test]
fn a_version_that_is_converted_is_not_deleted() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    sandbox.create(&api("foo", "v2", "Bar")).unwrap();
    sandbox
        .webhook(&CreateWebhook {
            gvk: gvk("foo", "v2", "Bar"),
            conversion: true,
            ..CreateWebhook::default()
        })
        .unwrap();
    refused(
        DeleteApi { gvk: gvk("foo", "v1", "Bar") }.apply(&sandbox.project),
        "windlass delete webhook --group foo --version v2",
    );
}

#[test]
fn the_state_is_read_back_and_checked() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let text = sandbox.disk.text("windlass.toml");
    assert_eq!(Project::parse(&text).unwrap().to_text().unwrap(), text);
    refused(Project::parse(&text.replace("version = 1", "version = 9")), "update windlass");
    refused(Project::parse(&text.replace("kind = \"Bar\"", "kind = \"../Bar\"")), "PascalCase");
    refused(Project::parse(&text.replace("domain", "domian")), "domian");
    refused(Edit::default().apply(&sandbox.project), "nothing is to be changed");
}
