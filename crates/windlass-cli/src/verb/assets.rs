//! `windlass assets`

use std::path::{Path, PathBuf};
use std::{env, fs};

use clap::Args;
use windlass_dev::shell_word;

use crate::error::Result;
use crate::multicall::Applet;
use crate::output::Output;

/// Write the programs that envtest starts into a folder: kube-apiserver and etcd.
///
/// Test suites with envtest (controller-runtime, kubebuilder) or jenvtest then run on windlass's API server,
/// without a download. Objects are in the memory of kube-apiserver; etcd only answers health checks.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass assets .windlass/assets
  KUBEBUILDER_ASSETS=$PWD/.windlass/assets go test ./...

Both programs are copies of this one. Run the command again after an update.
kubectl is not among them: suites that call it take the one on the PATH with TEST_ASSET_KUBECTL.")]
pub(crate) struct Assets {
    /// The folder. A missing folder is created; existing programs of these names are replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Assets {
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        let program = env::current_exe()?;
        fs::create_dir_all(&self.folder).map_err(|error| cannot("create", &self.folder, &error))?;
        let mut first: Option<PathBuf> = None;
        for applet in Applet::ALL {
            let path = self.folder.join(applet.name());
            place(first.as_deref(), &program, &path)?;
            out.line(format_args!("{}", path.display()));
            first.get_or_insert(path);
        }
        let folder = self.folder.canonicalize().unwrap_or(self.folder);
        out.line("");
        out.line(format_args!("  export KUBEBUILDER_ASSETS={}", shell_word(&folder)));
        Ok(())
    }
}

/// Writes a program: another name for `first`, or else a copy of `program`. A program that runs keeps its old file.
fn place(first: Option<&Path>, program: &Path, path: &Path) -> Result<()> {
    let draft = path.with_extension("new");
    let _ = fs::remove_file(&draft);
    let linked = first.is_some_and(|first| fs::hard_link(first, &draft).is_ok());
    if !linked {
        fs::copy(program, &draft).map_err(|error| cannot("write", &draft, &error))?;
    }
    fs::rename(&draft, path).map_err(|error| cannot("write", path, &error))?;
    Ok(())
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}
