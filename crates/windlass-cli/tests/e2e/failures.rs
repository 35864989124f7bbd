//! Errors as JSON, for programs that run the command.

use serde_json::Value;

use crate::operator::{Project, one_version};
use crate::process::windlass;

/// Runs the command outside of a project, and returns the exit code and the last line of stderr.
fn outcome(arguments: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = windlass(arguments).current_dir(folder.path()).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), error.lines().last().unwrap_or_default().to_owned())
}

fn error(line: &str) -> Value {
    let json: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    json["error"].clone()
}

#[test]
fn every_verb_of_a_project_has_errors_as_json() {
    for verb in [
        "create api --group a --version v1 --kind B",
        "create webhook --group a --version v1 --kind B --defaulting",
        "delete api --group a --version v1 --kind B",
        "edit --multigroup",
        "update",
        "manifests",
        "check",
        "dev",
        "test",
        "install",
        "run",
        "uninstall",
    ] {
        let arguments: Vec<&str> = verb.split(' ').collect();
        let (code, line) = outcome(&[&arguments[..], &["--output", "json"]].concat());
        let error = error(&line);
        assert_eq!((code, error["exitCode"].as_i64()), (1, Some(1)), "{line}");
        assert!(error["message"].as_str().unwrap().contains("is not in a project"), "{line}");
        assert_eq!(error["hint"], "begin a project with `windlass init`");
        assert!(error["causes"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_flag_may_be_before_the_verb_and_arguments_that_are_refused_are_json_too() {
    let (code, line) = outcome(&["--output", "json", "generate"]);
    assert_eq!((code, error(&line)["hint"].as_str()), (1, Some("begin a project with `windlass init`")));
    let (code, line) = outcome(&["install", "--output=json", "--wrong"]);
    let error = error(&line);
    assert_eq!((code, error["exitCode"].as_i64()), (2, Some(2)));
    assert!(error["message"].as_str().unwrap().contains("unexpected argument '--wrong'"), "{line}");
    let (code, line) = outcome(&["install"]);
    assert!(
        code == 1 && line.starts_with("error: ") && line.ends_with("Begin a project with `windlass init`"),
        "{line}"
    );
}

#[test]
fn the_first_build_is_announced_once() {
    let project = Project::new(&one_version(), "false");
    let said = |project: &Project| {
        let output = project.command(&["manifests", "--dry-run"]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        said(&project).contains("the first build compiles all dependencies: about "),
        "{}",
        said(&project)
    );
    std::fs::create_dir_all(project.path("demo/target/debug/.fingerprint")).unwrap();
    assert!(!said(&project).contains("first build"));
}
