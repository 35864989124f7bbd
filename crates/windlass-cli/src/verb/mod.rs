//! The subcommands, one file each.

mod assets;
mod bundle;
mod chart;
mod check;
mod cluster;
mod completions;
mod confirm;
mod create;
mod delete;
mod demo;
mod deploy;
mod dev;
mod edit;
mod estimate;
mod foreign;
mod generate;
mod image;
mod init;
mod install;
mod kubeconfig;
mod manifests;
mod policy;
mod registry;
mod run;
mod test;
mod undeploy;
mod update;
mod version;
mod write_args;

use clap::Subcommand;
use tokio::runtime::Builder;

use crate::error::Result;
use crate::output::Output;
use crate::signals::ShutdownSignal;

/// A subcommand with its arguments.
#[derive(Subcommand)]
pub(crate) enum Verb {
    Init(init::Init),
    Create(create::Create),
    Delete(delete::Delete),
    Edit(edit::Edit),
    Update(update::Update),
    Generate(generate::Generate),
    Manifests(manifests::Manifests),
    Check(check::Check),
    Estimate(estimate::Estimate),
    Policy(policy::Policy),
    Dev(dev::Dev),
    Test(test::Test),
    Install(install::Install),
    Run(run::Run),
    Uninstall(install::Uninstall),
    Deploy(deploy::Deploy),
    Undeploy(undeploy::Undeploy),
    Chart(chart::Chart),
    Bundle(bundle::Bundle),
    Cluster(cluster::Cluster),
    Demo(demo::Demo),
    Image(image::Image),
    Registry(registry::Registry),
    Kubeconfig(kubeconfig::UserKubeconfig),
    Assets(assets::Assets),
    #[command(alias = "completion")]
    Completions(completions::Completions),
    Version(version::Version),
}

impl Verb {
    /// Runs the subcommand to the end.
    pub(crate) fn run(self, out: &mut Output) -> Result<()> {
        // The control plane is idle most of the time: two threads keep the process small and still
        // responsive.
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let result = runtime.block_on(async {
            match self {
                Self::Init(init) => init.run(out),
                Self::Create(create) => create.run(out),
                Self::Delete(delete) => delete.run(out),
                Self::Edit(edit) => edit.run(out),
                Self::Update(update) => update.run(out),
                Self::Generate(generate) => until_signal(generate.run(out)).await,
                Self::Manifests(manifests) => until_signal(manifests.run(out)).await,
                Self::Check(check) => until_signal(check.run(out)).await,
                Self::Estimate(estimate) => Box::pin(until_signal(estimate.run(out))).await,
                Self::Policy(policy) => Box::pin(until_signal(policy.run(out))).await,
                Self::Dev(dev) => dev.run(out).await,
                Self::Test(test) => until_signal(test.run()).await,
                Self::Install(install) => until_signal(install.run(out)).await,
                Self::Run(run) => run.run(out).await,
                Self::Uninstall(uninstall) => Box::pin(until_signal(uninstall.run(out))).await,
                Self::Deploy(deploy) => Box::pin(until_signal(deploy.run(out))).await,
                Self::Undeploy(undeploy) => Box::pin(until_signal(undeploy.run(out))).await,
                Self::Chart(chart) => until_signal(chart.run(out)).await,
                Self::Bundle(bundle) => until_signal(bundle.run(out)).await,
                Self::Cluster(cluster) => cluster.run(out).await,
                Self::Demo(demo) => demo.run(out).await,
                Self::Image(image) => Box::pin(until_signal(image.run(out))).await,
                Self::Registry(registry) => registry.run(out).await,
                Self::Kubeconfig(kubeconfig) => kubeconfig.run(out).await,
                Self::Assets(assets) => assets.run(out),
                Self::Completions(completions) => completions.run(out),
                Self::Version(_) => {
                    version::Version::run(out);
                    Ok(())
                }
            }
        });
        // A blocking task, such as a name lookup, must not delay the exit.
        runtime.shutdown_background();
        result
    }
}

/// Runs a subcommand without clean-up until the end, or until Ctrl-C or SIGTERM. Processes of the subcommand
/// end with the subcommand.
async fn until_signal(run: impl Future<Output = Result<()>>) -> Result<()> {
    let shutdown = ShutdownSignal::listen()?;
    tokio::select! {
        biased;
        () = shutdown.received() => Err("interrupted".into()),
        result = run => result,
    }
}

/// Returns the year of a copyright.
fn year() -> i32 {
    jiff::Zoned::now().year().into()
}
