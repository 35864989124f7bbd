//! `windlass kubeconfig`

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use kube::config::Kubeconfig;

use crate::error::{Advice, Result};
use crate::output::Output;
use crate::project::{local_kubeconfig, running_server};
use crate::user_kubeconfig::{self, Account};

/// Print a kubeconfig of another user, to run an operator with exactly the declared rights.
///
/// `windlass cluster` writes the kubeconfig of an administrator, with all rights. An operator with that
/// kubeconfig never finds missing permissions of the operator's roles. This command asks the running control
/// plane for a token of a service account, or writes a kubeconfig that impersonates a user.
#[derive(Args)]
#[command(group(ArgGroup::new("user").required(true).args(["service_account", "as_user"])))]
#[command(after_help = "\
Examples:
  kubectl --kubeconfig .windlass/kubeconfig apply -f config/rbac.yaml      # service account, roles and bindings
  windlass kubeconfig --service-account default/my-operator --output .windlass/operator
  KUBECONFIG=.windlass/operator cargo run

  windlass kubeconfig --as jane --as-group developers > .windlass/jane
  kubectl --kubeconfig .windlass/jane auth whoami
  kubectl --kubeconfig .windlass/jane auth can-i --list

A token ends with its service account, and with the control plane that issued it. Without a role, a service account may only look up
what the server offers: `kubectl create role` and `kubectl create rolebinding` grant more.")]
pub(crate) struct UserKubeconfig {
    /// Use a token of this service account.
    #[arg(long, value_name = "NAMESPACE/NAME")]
    service_account: Option<Account>,

    /// How long the token is valid: a number and s, m or h; at least 10m.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = seconds, requires = "service_account")]
    duration: i64,

    /// Impersonate this user. The kubeconfig has the credentials of the administrator: use the kubeconfig for
    /// tests, and do not share the kubeconfig.
    #[arg(long = "as", value_name = "NAME")]
    as_user: Option<String>,

    /// Impersonate a member of this group. May be repeated.
    #[arg(long = "as-group", value_name = "GROUP", requires = "as_user")]
    as_group: Vec<String>,

    /// The kubeconfig of the administrator. Default: KUBECONFIG; else .windlass/kubeconfig, while that cluster runs; else ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Write to this file, with mode 0600, instead of stdout.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl UserKubeconfig {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let admin = administrator(self.kubeconfig.as_deref())?;
        let made = match (&self.service_account, &self.as_user) {
            (Some(account), _) => user_kubeconfig::of_account(admin, account, self.duration).await?,
            (None, Some(user)) => user_kubeconfig::impersonating(&admin, user, &self.as_group)?,
            (None, None) => return Err("either --service-account or --as is required".into()),
        };
        let text = serde_saphyr::to_string(&made)?;
        match &self.output {
            Some(file) => windlass_dev::write_kubeconfig(file, &text)?,
            None => out.line(text.trim_end()),
        }
        Ok(())
    }
}

/// Reads the kubeconfig of the administrator: the named file, or the first of the usual places, as `windlass install` does.
fn administrator(named: Option<&Path>) -> Result<Kubeconfig> {
    let by_environment = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
    let local = local_kubeconfig()?;
    let local = local.as_path();
    let file = named.or_else(|| (!by_environment && running_server(local).is_some()).then_some(local));
    let (place, read) = match file {
        Some(file) => (file.display().to_string(), Kubeconfig::read_from(file)),
        None if by_environment => ("the files of KUBECONFIG".to_owned(), Kubeconfig::read()),
        None => ("~/.kube/config".to_owned(), Kubeconfig::read()),
    };
    let hint = "start a control plane with `windlass cluster`, or name the kubeconfig of the administrator with --kubeconfig FILE";
    read.map_err(|error| Advice::new(format!("cannot read {place}: {error}"), hint))
}

/// Parses a duration of seconds (`600s`), minutes (`10m`) or hours (`24h`).
fn seconds(text: &str) -> Result<i64, String> {
    const SHORTEST: i64 = 600;
    let wrong = || "expected a number and s, m or h, for example 12h".to_owned();
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let number: i64 = text.get(..text.len() - 1).unwrap_or_default().parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(unit).ok_or_else(wrong)?;
    if seconds < SHORTEST { Err("a token is valid for at least 10m".to_owned()) } else { Ok(seconds) }
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!((seconds("600s"), seconds("10m"), seconds("24h")), (Ok(600), Ok(600), Ok(86_400)));
        for wrong in ["", "h", "600", "1d", "-24h", "9m", "99999999999999999999h", "ß"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
