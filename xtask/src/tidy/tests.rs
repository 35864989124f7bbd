use std::path::PathBuf;

use super::{Report, edges};
use crate::project::{Dependency, Package};

fn package(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Package {
    let dependencies = dependencies
        .iter()
        .map(|&(name, kind, optional)| Dependency {
            name: name.into(),
            kind: kind.map(Into::into),
            optional,
            req: "*".to_owned(),
        })
        .collect();
    Package { name: name.into(), manifest_path: PathBuf::new(), dependencies, targets: vec![] }
}

fn errors(packages: &[Package]) -> Vec<String> {
    let mut report = Report::default();
    edges::check(packages, &mut report);
    report.errors
}

#[test]
fn edges_of_the_table_pass() {
    let packages = [
        package("windlass-cache", &[("memchr", None, false)]),
        package(
            "windlass-runtime",
            &[("windlass-cache", None, false), ("windlass-test", Some("dev"), false)],
        ),
        package("windlass-apiserver", &[]),
        package("windlass-dev", &[("windlass-apiserver", None, false)]),
        package("windlass", &[("windlass-runtime", None, false), ("windlass-dev", None, true)]),
        package("custom-pod", &[("windlass", None, false)]),
        package("xtask", &[("windlass-cache", None, false), ("kube-client", None, false)]),
    ];
    assert_eq!(errors(&packages), Vec::<String>::new());
}

#[test]
fn other_edges_are_named() {
    let packages = [
        package("windlass-cache", &[("k8s-openapi", None, false)]),
        package("windlass-runtime", &[("windlass-test", None, false)]),
        package("windlass-apiserver", &[("windlass-cache", None, false), ("kube-client", None, false)]),
        package("windlass-dev", &[]),
        package("windlass", &[("windlass-dev", None, false)]),
        package("custom-pod", &[("windlass-runtime", None, false)]),
        package("windlass-test", &[]),
    ];
    assert_eq!(
        errors(&packages),
        [
            "windlass-cache → k8s-openapi: forbidden for windlass-cache; see xtask/src/tidy/edges.rs",
            "windlass-runtime → windlass-test: must be a dev-dependency",
            "windlass-apiserver → windlass-cache: not in the dependency table of ARCHITECTURE.md",
            "windlass-apiserver → kube-client: forbidden for windlass-apiserver; see xtask/src/tidy/edges.rs",
            "windlass → windlass-dev: must be optional, behind a feature",
            "custom-pod → windlass-runtime: not in the dependency table of ARCHITECTURE.md",
        ]
    );
}

#[test]
fn a_crate_below_the_one_for_tests_names_it_by_path() {
    let mut runtime = package("windlass-runtime", &[("windlass-test", Some("dev"), false)]);
    runtime.dependencies[0].req = "^0.1.0".to_owned();
    let mut example = package("custom-pod", &[("windlass-test", Some("dev"), false)]);
    example.dependencies[0].req = "^0.1.0".to_owned();
    let said = errors(&[runtime, example, package("windlass-test", &[])]);
    assert_eq!(
        said,
        ["windlass-runtime → windlass-test: must have a path and no version, or neither can be released"]
    );
}
