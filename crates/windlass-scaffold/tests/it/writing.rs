//! Files on a real disk.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use windlass_scaffold::{Disk, Folder, Writes};

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
