//! The token controller: fills Secrets of type `kubernetes.io/service-account-token`, and deletes such
//! Secrets without a service account.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube_client::api::{Api, DeleteParams, Preconditions};
use kube_core::ResourceExt;
use windlass_runtime::informer::CacheOptions;
use windlass_runtime::{Action, Context, Controller, Error, HandlerContext, ObjectKey, Reconciler, Result};

use crate::component::{self, KUBE_CONTROLLER_MANAGER};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Signs the token of a Secret: gets the service account and the name of the Secret. `None` if there is no token now.
pub(crate) type SignToken = Box<dyn Fn(&ServiceAccount, &str) -> Option<String> + Send + Sync>;

struct Tokens {
    sign: SignToken,
    root_ca: Option<String>,
}

/// Returns the controller. The keys are Secrets.
pub(crate) fn controller(sign: SignToken, root_ca: Option<String>) -> Controller {
    let of_type = CacheOptions::new().field_selector(format!("type={TYPE}"));
    Controller::of::<Secret>(Tokens { sign, root_ca })
        .named("serviceaccount-token-controller")
        .options(of_type)
        .watches::<ServiceAccount>(secrets_of)
}

/// Returns the Secrets of a service account, and the Secrets that the service account names.
fn secrets_of(account: &ServiceAccount, cx: &HandlerContext) -> Result<Vec<ObjectKey>> {
    let namespace = account.namespace().unwrap_or_default();
    let name = account.name_any();
    let secrets = cx.lister::<Secret>()?.namespace(&namespace).all()?;
    let own =
        secrets.iter().filter(|secret| account_of(secret) == Some(name.as_str())).map(ResourceExt::name_any);
    let named = account.secrets.iter().flatten().filter_map(|reference| reference.name.clone());
    Ok(own.chain(named).map(|secret| ObjectKey::namespaced(&namespace, &secret)).collect())
}

fn account_of(secret: &Secret) -> Option<&str> {
    secret.annotations().get(ACCOUNT_NAME).map(String::as_str)
}

impl Reconciler<Secret> for Tokens {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<Secret>) -> Result<Action> {
        let Some(namespace) = key.namespace() else { return Ok(Action::done()) };
        let Some(secret) = cx.get(&key)? else {
            return forget(&key, namespace, &cx).await;
        };
        if secret.type_.as_deref() != Some(TYPE) || secret.metadata.deletion_timestamp.is_some() {
            return Ok(Action::done());
        }
        match find_account(&secret, namespace, &cx).await? {
            Some(account) => self.fill(&secret, &account, &cx).await,
            None => delete(&secret, namespace, &cx).await,
        }
    }
}

/// Returns the service account of a Secret. A live read decides that there is none.
async fn find_account(
    secret: &Secret,
    namespace: &str,
    cx: &Context<Secret>,
) -> Result<Option<ServiceAccount>> {
    let Some(name) = account_of(secret) else { return Ok(None) };
    let accounts: Api<ServiceAccount> = Api::namespaced(cx.client().clone(), namespace);
    let found = match cx.lister::<ServiceAccount>()?.get(&ObjectKey::namespaced(namespace, name))? {
        Some(cached) => Some((*cached).clone()),
        None => accounts.get_opt(name).await.map_err(Error::from)?,
    };
    let uid = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    Ok(found.filter(|account| uid.is_none_or(|uid| account.uid().as_ref() == Some(uid))))
}

async fn delete(secret: &Secret, namespace: &str, cx: &Context<Secret>) -> Result<Action> {
    let secrets: Api<Secret> = Api::namespaced(cx.client().clone(), namespace);
    let preconditions = Preconditions { uid: secret.uid(), resource_version: None };
    let same = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match secrets.delete(&secret.name_any(), &same).await.map_err(Error::from) {
        Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
        _ => Ok(Action::done()),
    }
}

/// Removes the references to a deleted Secret from the service accounts of the namespace.
async fn forget(key: &ObjectKey, namespace: &str, cx: &Context<Secret>) -> Result<Action> {
    let names = |account: &ServiceAccount| {
        let mut names = account.secrets.iter().flatten().filter_map(|reference| reference.name.as_deref());
        names.any(|name| name == key.name())
    };
    let secrets: Api<Secret> = Api::namespaced(cx.client().clone(), namespace);
    for account in cx.lister::<ServiceAccount>()?.namespace(namespace).all()?.iter() {
        // The cache holds only tokens: a Secret of another type may exist.
        if !names(account) || secrets.get_metadata_opt(key.name()).await.map_err(Error::from)?.is_some() {
            continue;
        }
        let mut account: ServiceAccount = (*account).clone();
        account.secrets.iter_mut().for_each(|all| all.retain(|one| one.name.as_deref() != Some(key.name())));
        let accounts: Api<ServiceAccount> = Api::namespaced(cx.client().clone(), namespace);
        let replaced =
            accounts.replace(&account.name_any(), &component::post(KUBE_CONTROLLER_MANAGER), &account).await;
        match replaced.map_err(Error::from) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(Action::done())
}

impl Tokens {
    /// Adds the missing parts of a Secret: the token, the namespace, the certificate of the authority.
    async fn fill(&self, secret: &Secret, account: &ServiceAccount, cx: &Context<Secret>) -> Result<Action> {
        let namespace = secret.namespace().unwrap_or_default();
        let mut filled = secret.clone();
        let data = filled.data.get_or_insert_default();
        let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
        if let Some(authority) = &self.root_ca {
            data.insert("ca.crt".to_owned(), bytes(authority));
        }
        let lacks = |present: Option<&ByteString>| present.is_none_or(|bytes| bytes.0.is_empty());
        if lacks(data.get("namespace")) {
            data.insert("namespace".to_owned(), bytes(&namespace));
        }
        if lacks(data.get("token"))
            && let Some(token) = (self.sign)(account, &secret.name_any())
        {
            data.insert("token".to_owned(), bytes(&token));
        }
        if filled.data == secret.data {
            return Ok(Action::done());
        }
        let annotations = filled.annotations_mut();
        annotations.insert(ACCOUNT_NAME.to_owned(), account.name_any());
        annotations.insert(ACCOUNT_UID.to_owned(), account.uid().unwrap_or_default());
        let secrets: Api<Secret> = Api::namespaced(cx.client().clone(), &namespace);
        match secrets
            .replace(&secret.name_any(), &component::post(KUBE_CONTROLLER_MANAGER), &filled)
            .await
            .map_err(Error::from)
        {
            // The next event of the object triggers a reconcile.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Action::done()),
            other => other.map(|_| Action::done()),
        }
    }
}
