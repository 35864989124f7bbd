//! `windlass generate`

use std::path::PathBuf;

use clap::Args;

use super::write_args::WriteArgs;
use crate::error::Result;
use crate::generate;
use crate::output::Output;

/// Write Rust code for the kinds of a project: clientset, informers, listers, apply configurations, registration, types.
///
/// The kinds are the kinds that the project's operator declares: the operator is built first. With --crd, the
/// kinds come from CRDs in files.
#[derive(Args)]
#[command(after_help = "\
Pieces:
  client              a typed client for each kind (clientset)
  informers           the shared informer factory; brings listers and register
  listers             typed reads from caches
  applyconfiguration  functions that begin an apply configuration, for types that derive ApplyConfiguration
  register            the kinds and resources, with their mapping (scheme, RESTMapper)
  types               Rust types from the schemas of CRDs (with --crd)
  all                 all of them; types only with --crd and without --types

Examples:
  windlass generate                                             everything, for the kinds of this project
  windlass generate client,informers,listers
  windlass generate types --crd crds.yaml --output src/crds     types of someone else's kinds
  windlass generate all --crd crds.yaml --output src/crds       ... with clients for them

Generated files begin with a line that says so; they are rewritten, and removed when they are stale. Other files are never touched.
Where Go generates deepcopy, Rust derives Clone: there is nothing to generate.")]
pub(crate) struct Generate {
    /// What to generate: `all`, or pieces, separated by commas. The arguments of generate-groups.sh may
    /// follow.
    #[arg(value_name = "PIECE")]
    arguments: Vec<String>,

    /// Files with CRDs as YAML or JSON, or folders of such files, instead of the operator's declarations. May
    /// be given several times.
    #[arg(long, value_name = "FILE|DIR")]
    crd: Vec<PathBuf>,

    /// The folder to write into. Default: api/src/client, the module `client` of the project's api crate.
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// The module that has the Rust types: `{group}` and `{version}` are replaced. Default: that of the project.
    #[arg(long, value_name = "PATH")]
    types: Option<String>,

    /// The path of the generated module in the crate. Default: from the folder below `src`.
    #[arg(long, value_name = "PATH")]
    module: Option<String>,

    /// Accepted for users of code-generator; the header of generated files is fixed.
    #[arg(long, value_name = "FILE", hide = true)]
    go_header_file: Option<PathBuf>,

    /// Accepted for users of code-generator; output is a folder here (--output).
    #[arg(long, value_name = "DIR", hide = true)]
    output_base: Option<PathBuf>,

    #[command(flatten)]
    write: WriteArgs,
}

impl Generate {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let Self { arguments, crd, output, types, module, go_header_file, output_base, write } = self;
        let mut remarks = Vec::new();
        for (flag, given) in [("--go-header-file", go_header_file), ("--output-base", output_base)] {
            if given.is_some() {
                remarks.push(format!("{flag} has no meaning here and is ignored"));
            }
        }
        let wanted = generate::Wanted::parse(&arguments)?;
        let place = generate::Place::find(&crd, output, types, module)?;
        let definitions = place.definitions(&mut Output::stderr()).await?;
        let made = generate::plan(&wanted, &place, definitions)?;
        for remark in remarks.iter().chain(&wanted.remarks).chain(&made.remarks) {
            Output::stderr().line(format_args!("note: {remark}"));
        }
        write.finish(&made.writes, &place.folder, out)?;
        Ok(())
    }
}
