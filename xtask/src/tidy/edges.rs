//! Compares the dependencies between crates with the table in ARCHITECTURE.md.

use super::Report;
use crate::project::Package;

/// The crates of the workspace that a crate may have as normal dependencies.
struct Rule {
    name: &'static str,
    /// Allowed.
    uses: &'static [&'static str],
    /// Allowed as optional dependencies only, behind a feature.
    may_enable: &'static [&'static str],
    /// Third-party crates that are forbidden.
    never: &'static [&'static str],
}

const CLIENT: &[&str] = &["kube", "kube-client", "kube-runtime"];
const CLUSTER: &[&str] = &[
    "http",
    "hyper",
    "k8s-openapi",
    "kube",
    "kube-client",
    "kube-core",
    "kube-runtime",
    "rustls",
    "tokio-rustls",
];

const RULES: &[Rule] = &[
    Rule { name: "windlass-patience", uses: &[], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-workqueue", uses: &[], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-cache", uses: &[], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-schema", uses: &[], may_enable: &[], never: CLIENT },
    Rule { name: "windlass-wire", uses: &["windlass-schema"], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-quota", uses: &["windlass-schema"], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-derive", uses: &[], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-apply", uses: &["windlass-derive"], may_enable: &[], never: CLIENT },
    Rule { name: "windlass-http", uses: &[], may_enable: &[], never: &["kube-runtime"] },
    Rule {
        name: "windlass-runtime",
        uses: &[
            "windlass-apply",
            "windlass-cache",
            "windlass-codegen",
            "windlass-http",
            "windlass-webhook",
            "windlass-workqueue",
        ],
        may_enable: &[],
        never: &["kube-runtime"],
    },
    Rule { name: "windlass-webhook", uses: &[], may_enable: &[], never: CLIENT },
    Rule {
        name: "windlass-apiserver",
        uses: &["windlass-quota", "windlass-schema", "windlass-wire"],
        may_enable: &[],
        never: CLIENT,
    },
    Rule { name: "windlass-image", uses: &[], may_enable: &[], never: CLIENT },
    Rule { name: "windlass-node", uses: &["windlass-image"], may_enable: &[], never: CLIENT },
    Rule {
        name: "windlass-controllers",
        uses: &["windlass-node", "windlass-quota", "windlass-runtime", "windlass-schema"],
        may_enable: &[],
        never: &["kube-runtime"],
    },
    Rule { name: "windlass-opentelemetry", uses: &[], may_enable: &[], never: CLIENT },
    Rule { name: "windlass-scaffold", uses: &["windlass-schema"], may_enable: &[], never: CLUSTER },
    Rule { name: "windlass-codegen", uses: &["windlass-schema"], may_enable: &[], never: CLIENT },
    Rule {
        name: "windlass-client",
        uses: &["windlass-apply", "windlass-runtime"],
        may_enable: &[],
        never: &["kube-runtime"],
    },
    Rule {
        name: "windlass-dev",
        uses: &[
            "windlass-apiserver",
            "windlass-controllers",
            "windlass-node",
            "windlass-runtime",
            "windlass-schema",
        ],
        may_enable: &[],
        never: &["kube-runtime"],
    },
    Rule {
        name: "windlass-test",
        uses: &[
            "windlass-apiserver",
            "windlass-controllers",
            "windlass-dev",
            "windlass-patience",
            "windlass-runtime",
        ],
        may_enable: &[],
        never: &["kube-runtime"],
    },
    Rule {
        name: "windlass",
        uses: &["windlass-apply", "windlass-derive", "windlass-runtime", "windlass-webhook"],
        may_enable: &["windlass-codegen", "windlass-dev", "windlass-opentelemetry"],
        never: &["kube-runtime"],
    },
    Rule {
        name: "windlass-cli",
        uses: &[
            "custom-pod",
            "windlass-apiserver",
            "windlass-apply",
            "windlass-codegen",
            "windlass-controllers",
            "windlass-dev",
            "windlass-image",
            "windlass-node",
            "windlass-runtime",
            "windlass-scaffold",
        ],
        may_enable: &[],
        never: &["kube-runtime"],
    },
];

/// The rule for examples: they could be operators outside of this repository.
const EXAMPLE: Rule = Rule {
    name: "examples/*",
    uses: &["windlass", "windlass-client"],
    may_enable: &[],
    never: &["kube-runtime"],
};

/// A crate for tests. It depends on crates whose tests use it: these name it by path, without a version, because they are released before it.
const FOR_TESTS: &str = "windlass-test";

pub(super) fn check(packages: &[Package], report: &mut Report) {
    let is_ours = |name: &str| packages.iter().any(|package| package.name == name);
    for package in packages {
        let Some(rule) = rule_of(package) else { continue };
        let is_below =
            RULES.iter().any(|rule| rule.name == FOR_TESTS && rule.uses.contains(&package.name.as_str()));
        if is_below
            && package
                .dependencies
                .iter()
                .any(|dependency| dependency.name == FOR_TESTS && dependency.req != "*")
        {
            report.errors.push(format!(
                "{} → {FOR_TESTS}: must have a path and no version, or neither can be released",
                package.name
            ));
        }
        for dependency in package.dependencies.iter().filter(|dependency| dependency.kind.is_none()) {
            let (from, to) = (&package.name, dependency.name.as_str());
            if to == FOR_TESTS {
                report.errors.push(format!("{from} → {to}: must be a dev-dependency"));
            } else if rule.never.contains(&to) {
                report
                    .errors
                    .push(format!("{from} → {to}: forbidden for {}; see xtask/src/tidy/edges.rs", rule.name));
            } else if rule.may_enable.contains(&to) && !dependency.optional {
                report.errors.push(format!("{from} → {to}: must be optional, behind a feature"));
            } else if is_ours(to) && !rule.uses.contains(&to) && !rule.may_enable.contains(&to) {
                report.errors.push(format!("{from} → {to}: not in the dependency table of ARCHITECTURE.md"));
            }
        }
    }
}

/// Returns the rule for a package, or `None` for tasks, benchmarks and fuzz targets, which may use anything.
fn rule_of(package: &Package) -> Option<&'static Rule> {
    if matches!(
        package.name.as_str(),
        "xtask" | "benches" | "windlass-benches" | "windlass-features" | "windlass-fuzz" | "windlass-twin"
    ) {
        return None;
    }
    let by_name = RULES.iter().find(|rule| rule.name == package.name);
    // A crate without a rule gets the rule for examples, the strictest one that is useful.
    by_name.or(Some(&EXAMPLE))
}
