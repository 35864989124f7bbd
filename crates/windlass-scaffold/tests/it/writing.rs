//! Files on a real disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use windlass_scaffold::{Disk, Folder, Writes};

#[test]
fn a_file_that_another_command_has_changed_meanwhile_stays() {
    let place = tempfile::tempdir().unwrap();
    let folder = Folder::new(place.path());
    fs::write(folder.path("windlass.toml"), "a = 1\n").unwrap();
    let mut second = Writes::new();
    second.write(&folder, "windlass.toml", "a = 2\n").unwrap();
    second.write(&folder, "new.rs", "").unwrap();
    fs::write(folder.path("windlass.toml"), "a = 1\nb = 1\n").unwrap();
    let error = second.apply(&folder).unwrap_err().to_string();
    assert_eq!(error, "another command has changed windlass.toml meanwhile: run this command again");
    assert_eq!(folder.read("windlass.toml").unwrap().unwrap(), "a = 1\nb = 1\n");
    assert_eq!(folder.read("new.rs").unwrap(), None);
}

#[test]
fn a_folder_on_another_file_system_gets_whole_files() {
    let place = tempfile::tempdir().unwrap();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("NOT TESTED without a second file system at /dev/shm");
        return;
    };
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    if device(place.path()) == device(other.path()) {
        eprintln!("NOT TESTED with a single file system");
        return;
    }
    let folder = Folder::new(place.path());
    symlink(other.path(), folder.path("out")).unwrap();
    for text in ["one", "two"] {
        let mut writes = Writes::new();
        writes.write(&folder, "out/a.yaml", text).unwrap();
        writes.apply(&folder).unwrap();
        assert_eq!(folder.read("out/a.yaml").unwrap().as_deref(), Some(text));
    }
    let names: Vec<_> = fs::read_dir(other.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.yaml"]);
}
