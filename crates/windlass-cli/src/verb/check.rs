//! `windlass check`

use clap::Args;
use serde_json::Value;
use windlass_codegen::compatibility::breaking_changes;
use windlass_scaffold::{Action, Writes};

use crate::error::Result;
use crate::generate;
use crate::manifests::{Choices, ProjectManifests, base_definitions, parse};
use crate::output::Output;
use crate::project::Workspace;

/// Check the project, for CI: are generated manifests and clients up to date, are CRDs compatible, and do
/// roles grant all declared rights?
///
/// - Drift: a generated file below config/, or a client of `windlass generate`, that does not agree with the
///   code.
/// - Incompatible CRDs, with --against: a field, a kind or a version that is gone, a rule that is tighter, another scope or name.
/// - Missing rights: a right that a controller declares, and that your own files in config/rbac do not grant.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass check
  windlass check --against v1.2.0              # a commit, tag or branch of git
  windlass check --against ../release/crds     # a folder with YAML files
  windlass check crd:maxDescLen=0 all          # if the manifests are made with these words

Exit codes: 0 nothing was found, 1 something was found (it is printed) or the check failed (the reason is on stderr), 2 invalid arguments.")]
pub(crate) struct Check {
    /// Compare the CRDs with the CRDs of a folder, or of a commit, tag or branch of git.
    #[arg(long, value_name = "DIR|COMMIT")]
    against: Option<String>,

    /// The words of `windlass manifests` in this project, if the project uses words.
    #[arg(value_name = "PART")]
    words: Vec<String>,
}

impl Check {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let workspace = Workspace::current()?;
        // A base that does not exist is said before the operator is built.
        let base = self.against.as_deref().map(|base| base_definitions(&workspace.root, base)).transpose()?;
        let request = parse(&self.words)?;
        let found =
            ProjectManifests::load(&workspace, &request, &Choices::default(), &mut Output::stderr()).await?;
        let mut findings = drift(&found.writes(&workspace, &request)?, "windlass manifests");
        findings.extend(drift(&generate::drift(&workspace.root, &found.manifests)?, "windlass generate"));
        findings.extend(base.iter().flat_map(|base| incompatible(&found, base)));
        findings.extend(missing(&found));
        for finding in &findings {
            out.line(finding);
        }
        match findings.len() {
            0 => {
                out.line("nothing found");
                Ok(())
            }
            1 => Err("1 finding".into()),
            number => Err(format!("{number} findings").into()),
        }
    }
}

fn drift(writes: &Writes, command: &str) -> Vec<String> {
    let line = |(action, path): (Action, &str)| {
        let what = match action {
            Action::Create => "is missing",
            Action::Change => "differs from what the code says",
            Action::Remove => "is generated, and nothing needs it",
        };
        format!("drift: {path} {what}: run `{command}`")
    };
    writes.actions().map(line).collect()
}

fn incompatible(found: &ProjectManifests, base: &[Value]) -> Vec<String> {
    let now: Vec<Value> = found.manifests.crds().into_iter().cloned().collect();
    breaking_changes(base, &now).iter().map(|change| format!("incompatible: {change}")).collect()
}

fn missing(found: &ProjectManifests) -> Vec<String> {
    let missing = found.manifests.missing_rights(&found.inventory);
    missing
        .iter()
        .map(|right| format!("missing right: {right}: add it to your role in config/rbac"))
        .collect()
}
