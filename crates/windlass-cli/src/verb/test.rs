//! `windlass test`

use clap::Args;

use crate::error::Result;
use crate::output::Output;
use crate::project::{Cargo, Workspace};

/// Run the tests of the project. Each test has a separate control plane, in the test's process. All test programs run, also after a
/// failed test.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass test
  windlass test bar                       # tests with this in their name
  windlass test -- --nocapture            # flags of the tests")]
pub(crate) struct Test {
    /// Run only tests with this text in the name.
    filter: Option<String>,

    /// Flags of the tests.
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Test {
    pub(crate) async fn run(self) -> Result<()> {
        let workspace = Workspace::current()?;
        workspace.announce_first_build(&mut Output::stderr());
        let cargo = Cargo::new(&workspace.root, "test").args(["--workspace", "--no-fail-fast"]);
        let cargo = cargo.args(self.filter.iter());
        cargo.args(["--"]).args(&self.flags).run().await
    }
}
