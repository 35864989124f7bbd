//! The CustomResourceDefinitions that a change is compared with.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use windlass_codegen::manifests::documents;
use windlass_scaffold::{Disk, Folder};

use crate::error::Result;

/// The folder with the definitions of a project.
const BASES: &str = "config/crd/bases";

/// Returns the objects in the YAML files of a folder, or of the project at a commit, tag or branch of git.
pub(crate) fn base_definitions(root: &Path, base: &str) -> Result<Vec<Value>> {
    let folder = std::env::current_dir()?.join(base);
    let texts = if folder.is_dir() { texts_of_folder(&folder)? } else { texts_of_commit(root, base)? };
    let mut objects = Vec::new();
    for (path, text) in texts {
        objects.extend(documents(&text).map_err(|error| format!("{path}: {error}"))?);
    }
    objects.retain(|object| object["kind"] == "CustomResourceDefinition");
    if objects.is_empty() {
        return Err(format!("there are no CustomResourceDefinitions in {base} to compare with").into());
    }
    Ok(objects)
}

fn is_yaml(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

fn texts_of_folder(folder: &Path) -> Result<Vec<(String, String)>> {
    let disk = Folder::new(folder);
    let mut texts = Vec::new();
    for path in disk.list(".")?.into_iter().filter(|path| is_yaml(path)) {
        if let Some(text) = disk.read(&path)? {
            texts.push((folder.join(&path).display().to_string(), text));
        }
    }
    Ok(texts)
}

fn texts_of_commit(root: &Path, commit: &str) -> Result<Vec<(String, String)>> {
    if commit.starts_with('-') {
        return Err(format!("{commit:?} is neither a folder nor a commit, tag or branch of git").into());
    }
    let listed =
        git(root, &["ls-tree", "-r", "--name-only", "-z", commit, "--", BASES]).map_err(|error| {
            format!("{commit:?} is neither a folder nor a commit, tag or branch of git: {error}")
        })?;
    let paths = listed.split('\0').filter(|path| is_yaml(path));
    // Paths are relative to the folder of the project.
    paths.map(|path| Ok((path.to_owned(), git(root, &["show", &format!("{commit}:./{path}")])?))).collect()
}

fn git(root: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(root).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot run git: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const DEFINITION: &str = "kind: CustomResourceDefinition\nmetadata: { name: a }\n---\nkind: Role\n";

    fn names(objects: &[Value]) -> Vec<&str> {
        objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect()
    }

    #[test]
    fn definitions_come_from_a_folder_or_a_commit() {
        let folder = tempfile::tempdir().expect("a folder");
        // A project in a folder of a repository.
        let root = folder.path().join("my project");
        let bases = root.join(BASES);
        fs::create_dir_all(&bases).expect("made");
        fs::write(bases.join("a.yaml"), DEFINITION).expect("written");
        let in_folder = base_definitions(&root, &bases.to_string_lossy()).expect("a folder");
        assert_eq!(names(&in_folder), ["a"]);

        let error = base_definitions(&root, "v1").expect_err("no repository").to_string();
        assert!(error.starts_with("\"v1\" is neither a folder nor a commit"), "{error}");
        for arguments in [
            vec!["init", "-q", "."],
            vec!["add", "."],
            vec!["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "a"],
            vec!["tag", "v1"],
        ] {
            git(&root, &arguments).expect("git runs");
        }
        fs::remove_file(bases.join("a.yaml")).expect("removed");
        assert_eq!(names(&base_definitions(&root, "v1").expect("a tag")), ["a"]);
        let error = base_definitions(&root, &bases.to_string_lossy()).expect_err("nothing there").to_string();
        assert!(error.starts_with("there are no CustomResourceDefinitions in "), "{error}");
        assert!(base_definitions(&root, "--help").is_err());
    }
}
