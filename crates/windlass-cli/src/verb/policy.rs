//! `windlass policy`

use std::path::PathBuf;

use clap::Args;
use windlass_apiserver::Identity;

use crate::error::Result;
use crate::output::Output;
use crate::policy::{Files, Operation, Trial};

/// Try admission policies on objects, without a cluster: the result and the cost of each expression, and the reply of the API server.
///
/// The API server of Windlass, in this process, gets the policies, and then a request for each object. Nothing is stored. The files need the
/// policies, the bindings, and all that the policies refer to: parameters, definitions of kinds, namespaces with labels, roles for the
/// authorizer. A policy without a binding in the files is tried on all requests. A namespace that the files lack is made, without labels.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass policy policy.yaml --object deployment.yaml                  # creates the objects
  windlass policy policy.yaml --object new.yaml --old old.yaml          # updates the objects of old.yaml
  windlass policy policy.yaml --object old.yaml --delete                # deletes the objects
  windlass policy policies/ crds.yaml --object sample.yaml --as system:serviceaccount:shop:builder
  windlass policy policy.yaml --object deployment.yaml --as jane --as-group developers

Exit codes: 0 all objects are admitted, 1 an object is denied or the trial failed (the reason is on stderr), 2 invalid arguments.")]
pub(crate) struct Policy {
    /// Files, or folders with YAML files: policies, bindings, parameters, definitions of kinds, namespaces, roles.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The objects to try: a file with one or more documents, or - for the standard input.
    #[arg(long = "object", short = 'o', value_name = "FILE", required = true)]
    objects: Vec<PathBuf>,

    /// The objects before the request: an object of --object with the same kind and name is an update.
    #[arg(long, value_name = "FILE")]
    old: Vec<PathBuf>,

    /// Delete the objects of --object.
    #[arg(long)]
    delete: bool,

    /// The user of the request. The user may make the request, and otherwise has the rights that roles of the files give. Default: an
    /// administrator.
    #[arg(long = "as", value_name = "USER")]
    user: Option<String>,

    /// A group of the user.
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
}

impl Policy {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let files = Files::read(&self.files, &self.old, &self.objects)?;
        let user = match &self.user {
            Some(name) => user(name, &self.groups),
            None => Identity::admin(),
        };
        let operation = if self.delete { Operation::Delete } else { Operation::Write };
        let verdicts = Trial::prepare(files, user, operation).await?.run(out).await?;
        match (verdicts.denied, verdicts.tried) {
            (0, _) => Ok(()),
            (1, 1) => Err("the object is denied".into()),
            (denied, tried) => Err(format!("{denied} of {tried} objects are denied").into()),
        }
    }
}

fn user(name: &str, groups: &[String]) -> Identity {
    let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let user = match account {
        Some((namespace, account)) => Identity::service_account(namespace, account),
        None => Identity::user(name),
    };
    groups.iter().fold(user, Identity::with_group)
}
