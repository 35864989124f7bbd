//! The files that every project has.

use super::template::fill;
use super::{BOILERPLATE, Made, dependencies, line};
use crate::{License, Project};

const CARGO: &str = include_str!("../../templates/Cargo.toml.txt");
const SETUP: &str = include_str!("../../templates/setup.rs.txt");
const AGENTS: &str = include_str!("../../templates/AGENTS.md.txt");
const MAIN: &str = include_str!("../../templates/main.rs.txt");
const LIB: &str = include_str!("../../templates/lib.rs.txt");
const README: &str = include_str!("../../templates/README.md.txt");
const MAKEFILE: &str = include_str!("../../templates/Makefile.txt");
const DOCKERFILE: &str = include_str!("../../templates/Dockerfile.txt");
const DOCKERIGNORE: &str = include_str!("../../templates/dockerignore.txt");
const WORKFLOWS: [(&str, &str); 3] = [
    ("test", include_str!("../../templates/workflows/test.yml.txt")),
    ("image", include_str!("../../templates/workflows/image.yml.txt")),
    ("release", include_str!("../../templates/workflows/release.yml.txt")),
];
const GITIGNORE: &str = include_str!("../../templates/gitignore.txt");

/// The minimum version of Rust, that of Windlass.
const RUST: &str = env!("CARGO_PKG_RUST_VERSION");

pub(super) fn files(project: &Project, made: &mut Made<'_>) {
    let (name, crate_name, api) = (&project.project_name, project.crate_name(), project.api_package());
    let package = package(project);
    let inherited = inherited(project);
    let dependencies = dependencies::table(project);
    let webhooks = project.resources.iter().any(|resource| !resource.webhooks.is_empty());
    let controllers = project.resources.iter().any(|resource| resource.controllers().next().is_some());
    let modules = [
        (controllers, "pub mod controllers;\n"),
        (true, "mod generated;\n"),
        (true, "pub mod setup;\n"),
        (webhooks, "pub mod webhooks;\n"),
    ];
    let clients = if project.has_client() { clients(&api) } else { String::new() };
    let modules: String = modules.iter().filter(|(there, _)| *there).map(|(_, line)| *line).collect();
    let values = [
        ("name", name.as_str()),
        ("crate", &crate_name),
        ("api", &api),
        ("package", &package),
        ("inherited", &inherited),
        ("dependencies", &dependencies),
        ("domain", &project.domain),
        ("modules", &modules),
        ("main", &line::main_body(&crate_name)),
        ("clients", &clients),
        ("rust", RUST),
        ("windlass", &project.windlass),
        ("and_webhooks", if webhooks { " and webhooks" } else { "" }),
    ];
    made.user("cargo", "Cargo.toml", fill(CARGO, &values));
    made.user("readme", "README.md", fill(README, &values));
    made.user("makefile", "Makefile", fill(MAKEFILE, &values));
    made.user("gitignore", ".gitignore", GITIGNORE);
    made.user("dockerfile", "Dockerfile", fill(DOCKERFILE, &values));
    made.user("dockerignore", ".dockerignore", DOCKERIGNORE);
    for (name, text) in WORKFLOWS {
        let path = format!(".github/workflows/{name}.yml");
        made.user(format!("workflow-{name}"), path, fill(text, &values));
    }
    made.rust("main", "src/main.rs", &fill(MAIN, &values));
    made.user("agents", "AGENTS.md", fill(AGENTS, &values));
    made.rust("setup", "src/setup.rs", &fill(SETUP, &values));
    made.rust("lib", "src/lib.rs", &fill(LIB, &values));
    if let Some(header) = made.header.filter(|_| project.license != License::None) {
        made.user("boilerplate", BOILERPLATE, header);
    }
}

/// Returns the dependencies of tests that use the clients.
fn clients(api: &str) -> String {
    format!(
        "# The clients that `windlass generate` writes.\n{api} = {{ workspace = true, features = [\"client\"] }}\nwindlass-client.workspace = \
         true\n"
    )
}

/// Returns the common settings of the packages.
fn package(project: &Project) -> String {
    let mut lines = vec![
        "version = \"0.1.0\"".to_owned(),
        "edition = \"2024\"".to_owned(),
        format!("rust-version = \"{RUST}\""),
    ];
    lines.extend(project.license.spdx().map(|license| format!("license = \"{license}\"")));
    lines.extend(project.repo.as_ref().map(|repo| {
        let scheme = if repo.contains("://") { "" } else { "https://" };
        format!("repository = {}", toml::Value::String(format!("{scheme}{repo}")))
    }));
    lines.join("\n")
}

/// Returns the lines that inherit the common settings.
pub(super) fn inherited(project: &Project) -> String {
    let mut fields = vec!["version", "edition", "rust-version"];
    fields.extend(project.license.spdx().map(|_| "license"));
    fields.extend(project.repo.as_ref().map(|_| "repository"));
    let lines: Vec<String> = fields.iter().map(|field| format!("{field}.workspace = true")).collect();
    lines.join("\n")
}
