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
    let folder = if name == "custom-pod" { "examples" } else { "crates" };
    let manifest_path = PathBuf::from(format!("{folder}/{name}/Cargo.toml"));
    Package { name: name.into(), manifest_path, dependencies, targets: vec![], publish: None }
}

const LIST: &str = "\
<!-- edges -->

```
apiserver, cache → (none)
runtime → cache
dev → apiserver
test → runtime
windlass → runtime, [dev]
examples → windlass
xtask → anything
```
";

fn errors(packages: &[Package]) -> Vec<String> {
    errors_by(LIST, packages)
}

fn errors_by(list: &str, packages: &[Package]) -> Vec<String> {
    let mut report = Report::default();
    edges::check_with(list, packages, &mut report);
    report.errors
}

/// The packages of the list, with the dependencies of the list.
fn packages() -> Vec<Package> {
    vec![
        package("windlass-cache", &[("memchr", None, false)]),
        package(
            "windlass-runtime",
            &[("windlass-cache", None, false), ("windlass-test", Some("dev"), false)],
        ),
        package("windlass-apiserver", &[]),
        package("windlass-dev", &[("windlass-apiserver", None, false)]),
        package("windlass-test", &[("windlass-runtime", None, false)]),
        package("windlass", &[("windlass-runtime", None, false), ("windlass-dev", None, true)]),
        package("custom-pod", &[("windlass", None, false)]),
        package("xtask", &[("windlass-cache", None, false), ("kube-client", None, false)]),
    ]
}

/// The packages of the list; each package of `others` replaces the package of its name.
fn packages_with(others: Vec<Package>) -> Vec<Package> {
    let mut packages = packages();
    packages.retain(|package| others.iter().all(|other| other.name != package.name));
    packages.extend(others);
    packages
}

#[test]
fn edges_of_the_list_pass() {
    assert_eq!(errors(&packages()), Vec::<String>::new());
}

#[test]
fn other_edges_are_named() {
    let packages = packages_with(vec![
        package("windlass-cache", &[("k8s-openapi", None, false)]),
        package("windlass-runtime", &[("windlass-test", None, false)]),
        package("windlass-apiserver", &[("windlass-cache", None, false), ("kube-client", None, false)]),
        package("windlass", &[("windlass-runtime", None, false), ("windlass-dev", None, false)]),
        package("custom-pod", &[("windlass-runtime", None, false)]),
        package("windlass-new", &[]),
    ]);
    assert_eq!(
        errors(&packages),
        [
            "windlass-cache → k8s-openapi: forbidden by xtask/src/tidy/edges.rs",
            "windlass-runtime → windlass-test: must be a dev-dependency",
            "windlass-runtime → windlass-cache: no such dependency; remove it from ARCHITECTURE.md",
            "windlass-apiserver → windlass-cache: not in the list of ARCHITECTURE.md",
            "windlass-apiserver → kube-client: forbidden by xtask/src/tidy/edges.rs",
            "windlass → windlass-dev: must be optional, behind a feature",
            "custom-pod → windlass-runtime: not in the list of ARCHITECTURE.md",
            "windlass-new: add the crate to the list of ARCHITECTURE.md",
        ]
    );
}

#[test]
fn a_list_with_mistakes_is_an_error() {
    let errors = |from: &str, to: &str| errors_by(&LIST.replace(from, to), &packages()).join("\n");
    assert_eq!(
        errors("test → runtime", "tests → runtime"),
        "ARCHITECTURE.md: the list of crates names \"tests\", which does not exist"
    );
    assert_eq!(errors("test →", "cache →"), "ARCHITECTURE.md: cache is listed twice");
    assert_eq!(errors("test →", "test ->"), "ARCHITECTURE.md: \"test -> runtime\" has no arrow");
    assert_eq!(errors("edges", "lines"), "ARCHITECTURE.md: there is no block after `<!-- edges -->`");
}

#[test]
fn a_crate_below_the_one_for_tests_names_it_by_path() {
    let mut runtime = package(
        "windlass-runtime",
        &[("windlass-cache", None, false), ("windlass-test", Some("dev"), false)],
    );
    runtime.dependencies[1].req = "^0.1.0".to_owned();
    let mut example =
        package("custom-pod", &[("windlass", None, false), ("windlass-test", Some("dev"), false)]);
    example.dependencies[1].req = "^0.1.0".to_owned();
    let said = errors(&packages_with(vec![runtime, example]));
    assert_eq!(
        said,
        ["windlass-runtime → windlass-test: must have a path and no version, or neither can be released"]
    );
}
