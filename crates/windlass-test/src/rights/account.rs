//! A service account with the rights of a manager.

use std::panic::Location;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use kube_client::api::{Api, DeleteParams, PostParams};
use kube_client::{Client, Config};
use kube_core::{ObjectMeta, ResourceExt};
use serde_json::json;
use windlass_apiserver::{Identity, Server};
use windlass_runtime::permission::{Permissions, Right, RoleScope};

use crate::eventually::keep_trying;

/// How long the rights of an account may take to come into effect.
const EFFECTIVE: Duration = Duration::from_secs(30);

/// How a client gets the identity of a service account.
pub(crate) enum Login<'a> {
    /// The server in this process takes the identity as given.
    InProcess(&'a Server),
    /// Another server gets a token.
    Token(&'a Config),
}

/// A service account in a separate namespace.
pub(crate) struct Account {
    pub(crate) namespace: String,
    pub(crate) client: Client,
    admin: Client,
    /// The namespaces with Roles.
    roles: Vec<String>,
}

/// The name of the service account, and of the account's roles.
const NAME: &str = "operator";

impl Account {
    /// Creates an account with rights, and waits until the rights are in effect.
    pub(crate) async fn create(
        admin: Client,
        login: Login<'_>,
        permissions: &Permissions,
        caller: &'static Location<'static>,
    ) -> Self {
        let created = Self::try_create(admin, login, permissions).await;
        let account =
            created.unwrap_or_else(|error| panic!("{caller}: cannot create the service account: {error}"));
        for right in first_of_each_place(permissions) {
            keep_trying(EFFECTIVE, || account.has(right), String::new, caller).await;
        }
        account
    }

    async fn try_create(
        admin: Client,
        login: Login<'_>,
        permissions: &Permissions,
    ) -> kube_client::Result<Self> {
        let params = PostParams::default();
        let generated = ObjectMeta { generate_name: Some("operator-".to_owned()), ..ObjectMeta::default() };
        let namespaces: Api<Namespace> = Api::all(admin.clone());
        let own = Namespace { metadata: generated, ..Namespace::default() };
        let namespace = namespaces.create(&params, &own).await?.name_any();
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), &namespace);
        let account = ServiceAccount { metadata: named(NAME), ..ServiceAccount::default() };
        let account = accounts.create(&params, &account).await?;

        let client = match login {
            Login::InProcess(server) => {
                let identity = Identity::service_account(&namespace, NAME);
                let identity = identity.with_uid(account.uid().unwrap_or_default());
                Client::new(server.service(identity), namespace.as_str())
            }
            Login::Token(config) => {
                let spec = TokenRequestSpec::default();
                let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
                let token = accounts.create_token_request(NAME, &params, &request).await?;
                let token = token.status.and_then(|status| status.token).unwrap_or_default();
                with_token(config, &namespace, &token)?
            }
        };
        let mut account = Self { namespace, client, admin, roles: Vec::new() };
        account.grant(permissions).await?;
        Ok(account)
    }

    async fn grant(&mut self, permissions: &Permissions) -> kube_client::Result<()> {
        let params = PostParams::default();
        let name = self.namespace.as_str();
        let rules = permissions.cluster_role();
        if !rules.is_empty() {
            let role = ClusterRole { metadata: named(name), rules: Some(rules), ..ClusterRole::default() };
            Api::<ClusterRole>::all(self.admin.clone()).create(&params, &role).await?;
            let binding = ClusterRoleBinding {
                metadata: named(name),
                role_ref: role_ref("ClusterRole", name),
                subjects: Some(vec![self.subject()]),
            };
            Api::<ClusterRoleBinding>::all(self.admin.clone()).create(&params, &binding).await?;
        }
        let mut roles = permissions.roles();
        let own = permissions.operator_role();
        if !own.is_empty() {
            roles.insert(self.namespace.clone(), own);
        }
        for (namespace, rules) in roles {
            self.grant_in(&namespace, rules).await?;
            self.roles.push(namespace);
        }
        Ok(())
    }

    async fn grant_in(&self, namespace: &str, rules: Vec<PolicyRule>) -> kube_client::Result<()> {
        let params = PostParams::default();
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        if namespaces.get_opt(namespace).await?.is_none() {
            let missing = Namespace { metadata: named(namespace), ..Namespace::default() };
            namespaces.create(&params, &missing).await?;
        }
        // The roles have the name of the account's namespace: two accounts may have roles in one namespace.
        let name = self.namespace.as_str();
        let role = Role { metadata: named(name), rules: Some(rules) };
        Api::<Role>::namespaced(self.admin.clone(), namespace).create(&params, &role).await?;
        let binding = RoleBinding {
            metadata: named(name),
            role_ref: role_ref("Role", name),
            subjects: Some(vec![self.subject()]),
        };
        Api::<RoleBinding>::namespaced(self.admin.clone(), namespace).create(&params, &binding).await?;
        Ok(())
    }

    fn subject(&self) -> Subject {
        Subject {
            kind: "ServiceAccount".to_owned(),
            name: NAME.to_owned(),
            namespace: Some(self.namespace.clone()),
            ..Subject::default()
        }
    }

    /// Asks the server whether the account has a right.
    async fn has(&self, right: &Right) -> Result<(), String> {
        let Some((group, resource)) = right.resource() else { return Ok(()) };
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (resource, None),
        };
        let attributes = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            subresource,
            verb: Some(right.verb().to_string()),
            name: right.name().map(ToOwned::to_owned),
            namespace: match right.place() {
                RoleScope::Cluster => None,
                RoleScope::Operator => Some(self.namespace.clone()),
                RoleScope::Namespace(namespace) => Some(namespace.clone()),
            },
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer =
            reviews.create(&PostParams::default(), &review).await.map_err(|error| error.to_string())?;
        let allowed = answer.status.is_some_and(|status| status.allowed);
        allowed.then_some(()).ok_or_else(|| format!("the service account may not yet {right}"))
    }

    /// Deletes the created objects. Errors of the server are ignored.
    pub(crate) async fn remove(self) {
        let params = DeleteParams::default();
        let (admin, name) = (self.admin, self.namespace.as_str());
        let _ = Api::<ClusterRoleBinding>::all(admin.clone()).delete(name, &params).await;
        let _ = Api::<ClusterRole>::all(admin.clone()).delete(name, &params).await;
        for namespace in &self.roles {
            let _ = Api::<RoleBinding>::namespaced(admin.clone(), namespace).delete(name, &params).await;
            let _ = Api::<Role>::namespaced(admin.clone(), namespace).delete(name, &params).await;
        }
        let _ = Api::<Namespace>::all(admin).delete(name, &params).await;
    }
}

/// Returns a client of another server with a token.
fn with_token(config: &Config, namespace: &str, token: &str) -> kube_client::Result<Client> {
    let mut config = config.clone();
    namespace.clone_into(&mut config.default_namespace);
    config.auth_info =
        serde_json::from_value(json!({ "token": token })).map_err(kube_client::Error::SerdeError)?;
    Client::try_from(config)
}

/// Returns a right of each role. The role is in effect when that right is in effect.
fn first_of_each_place(permissions: &Permissions) -> Vec<&Right> {
    let mut firsts: Vec<&Right> = Vec::new();
    for right in permissions.rights() {
        if right.resource().is_some() && firsts.last().is_none_or(|last| last.place() != right.place()) {
            firsts.push(right);
        }
    }
    firsts
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

fn role_ref(kind: &str, name: &str) -> RoleRef {
    RoleRef {
        api_group: Some("rbac.authorization.k8s.io".to_owned()),
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}
