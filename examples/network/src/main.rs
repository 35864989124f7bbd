//! The operator. `network dev` runs the operator on an embedded control plane, with a stand-in of Neutron;
//! `network crds` prints the CRD.
#![forbid(unsafe_code)]

use std::time::Duration;

use network::{
    Options,
    apis::samplecrd::v1::Network,
    neutron::{Credentials, NeutronConfig},
    runnable,
};
use windlass::prelude::*;

/// Keeps networks in OpenStack Neutron as Network objects say.
#[derive(clap::Args)]
struct NetworkArgs {
    /// The URL of Neutron; by default, a stand-in runs in this process
    #[arg(long, value_name = "URL")]
    neutron_url: Option<String>,
    /// Seconds that a request to Neutron may take
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    neutron_timeout: u64,
    /// The owner of this operator's networks in Neutron; clusters that share a project need different names
    #[arg(long, value_name = "NAME", default_value = "kubernetes")]
    owner: String,
    /// The number of workers
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Seconds after which every network is compared with Neutron again
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    resync: u64,
    /// How many networks the stand-in gives to a project, and how many subnets; -1: any number
    #[arg(long, value_name = "NUMBER", default_value_t = 100, allow_negative_numbers = true)]
    stand_in_quota: i64,
    #[command(flatten)]
    keystone: KeystoneArgs,
}

/// The credentials for Keystone, in OpenStack's words.
#[derive(clap::Args)]
#[command(next_help_heading = "Keystone")]
struct KeystoneArgs {
    /// The URL of Keystone, with `/v3`; by default, no token is sent
    #[arg(long = "os-auth-url", env = "OS_AUTH_URL", value_name = "URL")]
    auth_url: Option<String>,
    /// The user
    #[arg(long = "os-username", env = "OS_USERNAME", default_value = "", hide_env_values = true)]
    username: String,
    /// The password; better in the environment than on the command line
    #[arg(long = "os-password", env = "OS_PASSWORD", default_value = "", hide_env_values = true)]
    password: String,
    /// The domain of the user
    #[arg(long = "os-user-domain-name", env = "OS_USER_DOMAIN_NAME", default_value = "Default")]
    user_domain_name: String,
    /// The project
    #[arg(long = "os-project-name", env = "OS_PROJECT_NAME", default_value = "")]
    project_name: String,
    /// The domain of the project
    #[arg(long = "os-project-domain-name", env = "OS_PROJECT_DOMAIN_NAME", default_value = "Default")]
    project_domain_name: String,
}

impl NetworkArgs {
    fn options(self) -> Options {
        let timeout = Duration::from_secs(self.neutron_timeout.max(1));
        let keystone = self.keystone;
        let neutron = self.neutron_url.map(|url| match keystone.auth_url {
            None => NeutronConfig { timeout, ..NeutronConfig::noauth(url) },
            Some(auth_url) => {
                let credentials = Credentials {
                    auth_url,
                    username: keystone.username,
                    password: keystone.password,
                    user_domain: keystone.user_domain_name,
                    project: keystone.project_name,
                    project_domain: keystone.project_domain_name,
                };
                NeutronConfig { timeout, ..NeutronConfig::keystone(url, credentials) }
            }
        });
        let resync = Duration::from_secs(self.resync.max(1));
        Options {
            neutron,
            owner: self.owner,
            workers: self.workers,
            resync,
            stand_in_quota: self.stand_in_quota,
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (manager, args) = Manager::from_args_with::<NetworkArgs>();
    manager
        .crd(Network::crd())
        .sample(include_str!("../sample.yaml"))
        .runnable(runnable(args.options()))
        .run()
        .await
}
