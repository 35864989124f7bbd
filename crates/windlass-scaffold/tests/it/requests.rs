//! Refused requests and repeated requests.

use windlass_scaffold::{
    CreateApi, CreateWebhook, DeleteApi, DeleteWebhook, Edit, External, Hub, Init, Plan, Project,
};

use crate::memory::{Memory, shown};
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
    refused(
        sandbox.create(&CreateApi { namespaced: Some(false), ..bar() }),
        "exists already with another scope",
    );
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
fn a_built_in_kind_exists_in_kubernetes() {
    let project = Sandbox::init().project;
    for (group, kind, part) in [
        (
            "apps",
            "Web",
            "Kubernetes has no kind Web in apps/v1: The kinds are ControllerRevision, DaemonSet, Deployment,",
        ),
        ("apps", "Deploymnet", "did you mean Deployment?"),
        ("core", "ConfigMaps", "did you mean ConfigMap?"),
        ("rbac.authorization.k8s.io", "ClusterRoles", "did you mean ClusterRole?"),
    ] {
        let webhook =
            CreateWebhook { gvk: gvk(group, "v1", kind), defaulting: true, ..CreateWebhook::default() };
        let refused = webhook.apply(&project).expect_err("no such kind").to_string();
        assert!(refused.contains(part), "{refused}");
    }
    let api = CreateApi {
        group: "apps".into(),
        version: "v1".into(),
        kind: "Web".into(),
        resource: Some(false),
        ..CreateApi::default()
    };
    assert!(api.apply(&project).expect_err("no such kind").to_string().contains("no kind Web"));
}

#[test]
fn webhooks_of_built_in_kinds_and_of_other_crates_need_no_controller() {
    let mut sandbox = Sandbox::init();
    let before = sandbox.disk.clone();
    let pod = CreateWebhook { gvk: gvk("core", "v1", "Pod"), validation: true, ..CreateWebhook::default() };
    sandbox.webhook(&pod).unwrap();
    let registry = sandbox.disk.text("src/generated/registry.rs");
    assert!(registry.contains("hooks.admission(webhooks::pod::validation::webhook(setup))"), "{registry}");
    let validation = sandbox.disk.text("src/webhooks/pod/validation.rs");
    assert!(validation.contains("AdmissionWebhook::validator::<Pod>(validate)"), "{validation}");
    assert!(!sandbox.disk.files.contains_key("src/controllers/pod.rs"));
    let external =
        External { path: "cert_manager::v1".into(), domain: "io".into(), module: "cert-manager@1".into() };
    let certificate = CreateWebhook {
        gvk: gvk("cert-manager", "v1", "Certificate"),
        defaulting: true,
        external: Some(external),
        ..CreateWebhook::default()
    };
    sandbox.webhook(&certificate).unwrap();
    let defaulting = sandbox.disk.text("src/webhooks/certificate/defaulting.rs");
    assert!(defaulting.contains("use cert_manager::v1::Certificate;"), "{defaulting}");
    for gvk in [pod.gvk, certificate.gvk] {
        let delete = DeleteWebhook { gvk, ..DeleteWebhook::default() };
        sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    }
    assert_eq!(sandbox.disk, before);

    // A kind that is misspelled in a group of the project is not built in.
    sandbox.create(&api("apps", "v1", "Website")).unwrap();
    let wrong =
        CreateWebhook { gvk: gvk("apps", "v1", "Webiste"), validation: true, ..CreateWebhook::default() };
    refused(sandbox.webhook(&wrong), "the project has no Webiste");
}

#[test]
fn webhooks_can_have_paths_of_their_own() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let webhooks = CreateWebhook {
        gvk: gvk("foo", "v1", "Bar"),
        defaulting: true,
        defaulting_path: Some("/set-bar".into()),
        validation: true,
        ..CreateWebhook::default()
    };
    refused(
        sandbox.webhook(&CreateWebhook { validation_path: Some("no path".into()), ..webhooks.clone() }),
        "webhook path \"no path\" is not a path",
    );
    refused(
        sandbox.webhook(&CreateWebhook { defaulting: false, ..webhooks.clone() }),
        "--defaulting-path is for --defaulting",
    );
    sandbox.webhook(&webhooks).unwrap();
    let defaulting = sandbox.disk.text("src/webhooks/bar/defaulting.rs");
    let webhook = "    AdmissionWebhook::defaulter::<Bar>(default).path(\"/set-bar\")\n";
    assert!(defaulting.contains(webhook), "{defaulting}");
    let validation = sandbox.disk.text("src/webhooks/bar/validation.rs");
    assert!(validation.contains("    AdmissionWebhook::validator::<Bar>(validate)\n"), "{validation}");
    let delete = DeleteWebhook { gvk: gvk("foo", "v1", "Bar"), defaulting: true, ..DeleteWebhook::default() };
    sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    assert!(!sandbox.disk.text("windlass.toml").contains("set-bar"));
}

#[test]
fn a_kind_can_have_several_controllers() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&CreateApi { controller: Some(false), namespaced: Some(false), ..bar() }).unwrap();
    assert!(!sandbox.disk.files.contains_key("src/controllers/bar.rs"));
    // In kubebuilder's words: the type is there, and is not made again.
    sandbox.create(&CreateApi { resource: Some(false), controller: Some(true), ..bar() }).unwrap();
    assert!(sandbox.disk.files.contains_key("src/controllers/bar.rs"));
    let backup = CreateApi { controller_name: Some("bar-backup".into()), ..bar() };
    sandbox.create(&backup).unwrap();
    let controller = sandbox.disk.text("src/controllers/bar_backup.rs");
    assert!(
        controller.contains("Controller::of::<Bar>(reconcile)\n        .named(\"bar-backup\")"),
        "{controller}"
    );
    let registry = sandbox.disk.text("src/generated/registry.rs");
    for module in ["bar", "bar_backup"] {
        assert!(registry.contains(&format!("controllers::{module}::controller(setup)")), "{registry}");
    }
    let after = backup.apply(&sandbox.project).unwrap();
    let again = Plan::create(Some(&sandbox.project), &after);
    assert!(again.run(&sandbox.disk).unwrap().writes.is_empty());
    refused(
        sandbox.create(&CreateApi { controller_name: Some("Bar_1".into()), ..bar() }),
        "is not a DNS-1123 label",
    );
    // Only the named controller.
    let only = CreateApi { controller_name: Some("foo-cleaner".into()), ..api("foo", "v1", "Baz") };
    sandbox.create(&only).unwrap();
    assert!(!sandbox.disk.files.contains_key("src/controllers/baz.rs"));
    let delete = DeleteApi { gvk: gvk("foo", "v1", "Bar") };
    sandbox.become_(delete.apply(&sandbox.project)).unwrap();
    assert!(!sandbox.disk.files.contains_key("src/controllers/bar_backup.rs"));
}

#[test]
fn a_further_version_begins_as_a_copy_of_the_last() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let v1 = "api/src/v1/bar.rs";
    sandbox.disk.edit(v1, "    namespaced\n", "    namespaced,\n    shortname = \"b\"\n");
    sandbox.disk.edit(v1, "pub foo: Option<String>", "pub replicas: u32");
    sandbox.disk.edit("config/samples/foo_v1_bar.yaml", "foo: bar", "replicas: 3");
    sandbox.create(&api("foo", "v2", "Bar")).unwrap();
    let wanted = sandbox.disk.text(v1).replace("version = \"v1\"", "version = \"v2\"");
    assert_eq!(sandbox.disk.text("api/src/v2/bar.rs"), wanted);
    let sample = sandbox.disk.text("config/samples/foo_v2_bar.yaml");
    assert!(sample.contains("apiVersion: foo.abc.com/v2") && sample.contains("replicas: 3"), "{sample}");

    // The copy is a file of the user: an update leaves the copy alone, and a deletion removes an untouched copy.
    let update = Plan::update(&sandbox.project, &sandbox.project).run(&sandbox.disk).unwrap();
    assert!(update.writes.is_empty(), "{:?}", shown(&update.writes));
    let delete = DeleteApi { gvk: gvk("foo", "v2", "Bar") }.apply(&sandbox.project);
    sandbox.become_(delete).unwrap();
    assert!(!sandbox.disk.files.contains_key("api/src/v2/bar.rs"));
}

#[test]
fn controllers_and_webhooks_move_to_the_hub_with_the_users_code() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let webhooks = CreateWebhook {
        defaulting: true,
        validation: true,
        gvk: gvk("foo", "v1", "Bar"),
        ..CreateWebhook::default()
    };
    sandbox.webhook(&webhooks).unwrap();
    let (controller, validation) = ("src/controllers/bar.rs", "src/webhooks/bar/validation.rs");
    sandbox.disk.edit(controller, "v1::{Bar, BarStatus}", "v1::{Bar, BarSpec, BarStatus}");
    sandbox.disk.edit(validation, "// Your logic.", "// My logic.");
    sandbox.create(&api("foo", "v2", "Bar")).unwrap();
    let after = edit_to("v2", None).apply(&sandbox.project).unwrap();
    let outcome = Plan::update(&sandbox.project, &after).run(&sandbox.disk).unwrap();
    assert_eq!((&outcome.conflicts[..], &outcome.unmerged[..]), (&[][..], &[][..]));
    sandbox.apply(&outcome.writes);
    let text = sandbox.disk.text(controller);
    assert!(text.contains("operator_demo_api::v2::{Bar, BarSpec, BarStatus}"), "{text}");
    let text = sandbox.disk.text(validation);
    assert!(text.contains("My logic") && text.contains("operator_demo_api::v2::Bar;"), "{text}");
    assert!(sandbox.disk.files.contains_key("src/webhooks/bar/conversion_v1.rs"));
    let registry = sandbox.disk.text("src/generated/registry.rs");
    assert!(registry.contains("merge_crds(vec![v1, v2], \"v2\")"), "{registry}");
    assert!(registry.contains("Converter::hub::<operator_demo_api::v2::Bar>()"), "{registry}");

    refused(
        edit_to("v3", None).apply(&sandbox.project),
        "has no kind with version v3; it has Bar (foo/v1), Bar (foo/v2)",
    );
    refused(edit_to("v2", Some("Baz")).apply(&sandbox.project), "has no Baz with version v2");
    sandbox.create(&api("foo", "v3", "Bar")).unwrap();
    refused(
        edit_to("v3", None).apply(&sandbox.project),
        "windlass delete webhook --group foo --version v2 --kind Bar --conversion",
    );
    let after = edit_to("v2", None).apply(&sandbox.project).unwrap();
    let outcome = Plan::update(&sandbox.project, &after).run(&sandbox.disk).unwrap();
    sandbox.apply(&outcome.writes);
    assert!(
        sandbox.disk.files.contains_key("src/webhooks/bar/conversion_v3.rs"),
        "a version without a conversion"
    );
}

fn edit_to(version: &str, kind: Option<&str>) -> Edit {
    let hub = Hub { version: version.into(), kind: kind.map(Into::into), group: None };
    Edit { hub: Some(hub), ..Edit::default() }
}

#[test]
fn a_new_repository_may_have_a_readme_and_a_list_of_ignored_files() {
    let project = Init::default().project("operator-demo").unwrap();
    let mut disk = Memory::default();
    disk.files.insert("README.md".into(), "mine".into());
    disk.files.insert(".gitignore".into(), "mine".into());
    let outcome = Plan::create(None, &project).run(&disk).unwrap();
    assert_eq!(outcome.kept, [".gitignore", "README.md"]);
    disk.apply(&outcome.writes);
    assert_eq!((disk.text("README.md").as_str(), disk.text(".gitignore").as_str()), ("mine", "mine"));
    // The files are not merged later.
    let project = Project::parse(&disk.text("windlass.toml")).unwrap();
    let update = Plan::update(&project, &project).run(&disk).unwrap();
    assert!(update.writes.is_empty() && update.unmerged.is_empty());
}

#[test]
fn a_move_that_was_interrupted_is_completed() {
    let mut sandbox = Sandbox::init();
    sandbox.create(&bar()).unwrap();
    let edit = Edit { multigroup: Some(true), ..Edit::default() };
    let after = edit.apply(&sandbox.project).unwrap();
    let outcome = Plan::update(&sandbox.project, &after).run(&sandbox.disk).unwrap();
    let mut complete = sandbox.disk.clone();
    complete.apply(&outcome.writes);
    let moved = "src/controllers/foo/bar.rs";
    sandbox.disk.files.insert(moved.into(), complete.text(moved));
    let outcome = Plan::update(&sandbox.project, &after).run(&sandbox.disk).unwrap();
    sandbox.disk.apply(&outcome.writes);
    assert_eq!(sandbox.disk, complete);
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
    // The hub takes the controller, the webhooks and the stored version along.
    let hub = DeleteApi { gvk: gvk("foo", "v2", "Bar") };
    refused(
        hub.apply(&sandbox.project),
        "hub of the conversions of v1; remove the conversion first: \
         windlass delete webhook --group foo --version v2 --kind Bar --conversion",
    );
    let conversion = DeleteWebhook { gvk: hub.gvk.clone(), conversion: true, ..DeleteWebhook::default() };
    sandbox.become_(conversion.apply(&sandbox.project)).unwrap();
    sandbox.become_(hub.apply(&sandbox.project)).unwrap();
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
