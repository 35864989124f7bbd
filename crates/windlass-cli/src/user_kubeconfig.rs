//! Kubeconfigs of other users than the administrator.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{
    AuthInfo, Context, KubeConfigOptions, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext,
};
use kube::{Api, Client, Config};

use crate::error::Result;

/// A service account, written as `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    namespace: String,
    name: String,
}

impl std::str::FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME, for example default/my-operator".to_owned()),
        }
    }
}

/// Returns the kubeconfig of a service account, with a token that is valid for `seconds`.
pub(crate) async fn of_account(admin: Kubeconfig, account: &Account, seconds: i64) -> Result<Kubeconfig> {
    let Account { namespace, name } = account;
    let config = Config::from_custom_kubeconfig(admin.clone(), &KubeConfigOptions::default()).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(Client::try_from(config)?, namespace);
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let issued = match accounts.create_token_request(name, &PostParams::default(), &request).await {
        Ok(issued) => issued,
        Err(kube::Error::Api(status)) if status.code == 404 => {
            return Err(format!(
                "there is no service account {name} in the namespace {namespace}. Create it: kubectl create \
                 serviceaccount {name} --namespace {namespace}"
            )
            .into());
        }
        Err(error) => return Err(error.into()),
    };
    let token = issued.status.ok_or("the server did not issue a token")?.token;
    let user = serde_json::from_value(serde_json::json!({ "token": token }))?;
    let user_name = format!("system:serviceaccount:{namespace}:{name}");
    for_user(&admin, &user_name, user, Some(namespace.clone()))
}

/// Returns a kubeconfig with the credentials of the administrator, who impersonates a user.
pub(crate) fn impersonating(admin: &Kubeconfig, user: &str, groups: &[String]) -> Result<Kubeconfig> {
    let context = current(admin)?;
    let named = admin.auth_infos.iter().find(|info| Some(&info.name) == context.user.as_ref());
    let mut credentials = named.and_then(|info| info.auth_info.clone()).unwrap_or_default();
    credentials.impersonate = Some(user.to_owned());
    credentials.impersonate_groups = (!groups.is_empty()).then(|| groups.to_vec());
    for_user(admin, user, credentials, context.namespace.clone())
}

fn current(config: &Kubeconfig) -> Result<&Context> {
    let wanted = config.current_context.as_deref();
    let named = config.contexts.iter().find(|context| Some(context.name.as_str()) == wanted);
    named
        .and_then(|named| named.context.as_ref())
        .ok_or_else(|| "the kubeconfig has no current context".into())
}

/// Returns a kubeconfig with the current cluster of `admin` and a user.
fn for_user(
    admin: &Kubeconfig,
    name: &str,
    credentials: AuthInfo,
    namespace: Option<String>,
) -> Result<Kubeconfig> {
    let cluster = current(admin)?.cluster.clone();
    let found = admin.clusters.iter().find(|named| named.name == cluster);
    let found: NamedCluster =
        found.cloned().ok_or("the kubeconfig has no cluster for its current context")?;
    // Some clients, such as fabric8 for Java, refuse requests without a namespace.
    let namespace = namespace.or_else(|| Some("default".to_owned()));
    let context = Context { cluster, user: Some(name.to_owned()), namespace, ..Context::default() };
    Ok(Kubeconfig {
        kind: Some("Config".to_owned()),
        api_version: Some("v1".to_owned()),
        clusters: vec![found],
        auth_infos: vec![NamedAuthInfo {
            name: name.to_owned(),
            auth_info: Some(credentials),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: name.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(name.to_owned()),
        ..Kubeconfig::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_a_namespace_and_a_name() {
        let account: Account = "default/bot".parse().unwrap();
        assert_eq!(account, Account { namespace: "default".to_owned(), name: "bot".to_owned() });
        for wrong in ["bot", "/bot", "default/", "a/b/c", ""] {
            assert!(wrong.parse::<Account>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_impersonator_keeps_its_own_credentials() {
        let admin = Kubeconfig::from_yaml(
            "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: k, cluster: {server: 'https://a'}}], \
             users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]}",
        );
        let made = impersonating(&admin.unwrap(), "jane", &["a".to_owned()]).unwrap();
        let made = serde_json::to_value(made).unwrap();
        assert_eq!(
            made["users"][0],
            serde_json::json!({"name": "jane", "user": {"token": "t", "as": "jane", "as-groups": ["a"]}})
        );
        assert_eq!(made["contexts"][0]["context"]["namespace"], "n");
        let without = Kubeconfig::from_yaml(
            "{current-context: c, clusters: [{name: k, cluster: {server: 'https://a'}}], contexts: [{name: c, context: {cluster: k}}]}",
        );
        let without = impersonating(&without.unwrap(), "jane", &[]).unwrap();
        assert_eq!(without.contexts[0].context.as_ref().unwrap().namespace.as_deref(), Some("default"));
        assert_eq!((&made["current-context"], &made["clusters"][0]["name"]), (&"jane".into(), &"k".into()));
    }
}
