//! Flags of kubebuilder and operator-sdk that have no meaning here. The flags are accepted, so that existing
//! command lines work.

use clap::Args;

use crate::output::Output;

/// Flags without a meaning.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ForeignArgs {
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fetch_deps: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_go_version_check: Option<String>,
    #[arg(long, hide = true)]
    plugins: Option<String>,
    #[arg(long, hide = true)]
    project_version: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    component_config: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    make: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ssa: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    legacy: Option<String>,
    #[arg(long, hide = true)]
    crd_version: Option<String>,
    #[arg(long, hide = true)]
    webhook_version: Option<String>,
}

impl ForeignArgs {
    /// Explains for each given flag why the flag has no effect.
    pub(crate) fn explain(&self) {
        let mut err = Output::stderr();
        for (flag, given, why) in [
            ("--fetch-deps", self.fetch_deps.is_some(), "cargo fetches dependencies when it builds"),
            ("--skip-go-version-check", self.skip_go_version_check.is_some(), "there is no Go"),
            ("--plugins", self.plugins.is_some(), "there is one layout"),
            ("--project-version", self.project_version.is_some(), "windlass.toml has a format of its own"),
            ("--component-config", self.component_config.is_some(), "an operator has flags"),
            ("--make", self.make.is_some(), "nothing has to be generated before the first build"),
            ("--ssa", self.ssa.is_some(), "`windlass generate` writes apply configurations"),
            ("--legacy", self.legacy.is_some(), "webhooks are in src/webhooks"),
            ("--crd-version", self.crd_version.is_some(), "CRDs have the version v1"),
            (
                "--webhook-version",
                self.webhook_version.is_some(),
                "webhook configurations have the version v1",
            ),
        ] {
            if given {
                err.line(format_args!("note: {flag} has no effect here: {why}"));
            }
        }
    }
}
