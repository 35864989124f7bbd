//! The folder on a real disk.

use std::collections::BTreeMap;
use std::fs;

use windlass_scaffold::{Folder, GENERATED, Init, Plan, Writes};

#[test]
fn files_are_written_whole_and_no_draft_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::new(directory.path().join("my operator"));
    let project = Init::default().project("demo").unwrap();
    let outcome = Plan::create(None, &project).run(&folder).unwrap();
    outcome.writes.apply(&folder).unwrap();
    assert!(folder.path("src/main.rs").is_file() && folder.path("windlass.toml").is_file());
    let machinery: Vec<_> =
        fs::read_dir(folder.path(".windlass")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(machinery, ["base"]);
    assert!(Plan::create(None, &project).run(&folder).unwrap().writes.is_empty());
}

/// A folder that cannot be written fails before the state is.
#[test]
fn a_failure_leaves_the_state_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::new(directory.path());
    let mut writes = Writes::new();
    writes.write(&folder, "windlass.toml", "new").unwrap();
    writes.write(&folder, "src/main.rs", "new").unwrap();
    fs::write(folder.path("src"), "a file, not a folder").unwrap();
    let said = writes.apply(&folder).unwrap_err().to_string();
    assert!(said.contains("src/main.rs"), "{said}");
    assert!(!folder.path("windlass.toml").exists());
}

#[test]
fn generated_files_that_are_no_longer_wanted_go_and_the_users_stay() {
    let directory = tempfile::tempdir().unwrap();
    let folder = Folder::new(directory.path());
    let generated = format!("# {GENERATED}\n");
    let mut writes = Writes::new();
    for (path, text) in [("config/crd/old.yaml", &*generated), ("config/crd/mine.yaml", "mine\n")] {
        writes.write(&folder, path, text).unwrap();
    }
    writes.apply(&folder).unwrap();

    let mut writes = Writes::new();
    writes
        .generated(&folder, "config", BTreeMap::from([("config/new.yaml".to_owned(), generated.clone())]))
        .unwrap();
    let actions: Vec<_> =
        writes.actions().map(|(action, path)| format!("{} {path}", action.done())).collect();
    assert_eq!(actions, ["removed config/crd/old.yaml", "created config/new.yaml"]);
    assert!(writes.diff().contains("--- a/config/crd/old.yaml\n+++ /dev/null"), "{}", writes.diff());
    writes.apply(&folder).unwrap();
    assert!(folder.path("config/crd/mine.yaml").exists() && !folder.path("config/crd/old.yaml").exists());

    let mut writes = Writes::new();
    let clash = BTreeMap::from([("config/crd/mine.yaml".to_owned(), generated)]);
    assert!(writes.generated(&folder, "config", clash).unwrap_err().to_string().contains("is not generated"));
}
