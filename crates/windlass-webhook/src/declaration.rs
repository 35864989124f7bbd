//! The declarations of webhooks: typed data for the generators of configurations.

use http::Extensions;
use k8s_openapi::{
    api::admissionregistration::v1::MatchCondition, apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube_core::{Resource, admission::Operation};
use serde::{Serialize, de::DeserializeOwned};

use crate::admission::{AdmissionHandler, Admit, Defaulter, Validator, defaulting, handling, validating};

/// The right of a webhook to change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AdmissionKind {
    /// The webhook may change objects: a `MutatingWebhookConfiguration`.
    Mutating,
    /// The webhook only allows or denies: a `ValidatingWebhookConfiguration`.
    Validating,
}

/// The API server's reaction if a webhook does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The API server refuses the request.
    Fail,
    /// The API server allows the request.
    Ignore,
}

/// The rule for requests with another version or group of the webhook's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchPolicy {
    /// The webhook is called; the object is converted to the version of the webhook's rule.
    Equivalent,
    /// The webhook is called only for the groups and versions in the rules.
    Exact,
}

/// The effects of a webhook beside the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// The webhook has no side effects.
    None,
    /// The webhook has no side effects in dry runs.
    NoneOnDryRun,
}

/// The rule for a mutating webhook whose object a later webhook changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReinvocationPolicy {
    /// The webhook is called once.
    Never,
    /// The webhook is called again if another webhook changed the object afterwards.
    IfNeeded,
}

/// The resources and operations for which a webhook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// API groups; `*` stands for all.
    pub groups: Vec<String>,
    /// API versions; `*` stands for all.
    pub versions: Vec<String>,
    /// Plural names, such as `pods`, `pods/status`, `*/*`.
    pub resources: Vec<String>,
    /// The operations. [`operations`](AdmissionWebhook::operations) of the webhook sets the operations of all
    /// rules.
    pub operations: Vec<Operation>,
}

impl Rule {
    /// Selects creations and updates of a resource. The core group is `""`.
    pub fn new(group: impl Into<String>, version: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            groups: vec![group.into()],
            versions: vec![version.into()],
            resources: vec![resource.into()],
            operations: vec![Operation::Create, Operation::Update],
        }
    }

    /// Sets the operations.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.operations = operations.into_iter().collect();
        self
    }

    /// Selects creations and updates of a kind.
    pub fn of<K: Resource<DynamicType = ()>>() -> Self {
        Self::new(K::group(&()), K::version(&()), K::plural(&()))
    }
}

/// The declaration of an admission webhook: everything except code.
///
/// The defaults are the API server's defaults. For `sideEffects`, which has no default there, the default is
/// [`SideEffects::None`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AdmissionDeclaration {
    /// The right of the webhook to change objects.
    pub kind: AdmissionKind,
    /// The name in the configuration: a DNS name with at least three parts. Users see the name in denials.
    pub name: String,
    /// The path of the webhook.
    pub path: String,
    /// The resources and operations for which the webhook is called.
    pub rules: Vec<Rule>,
    /// Default: [`FailurePolicy::Fail`].
    pub failure_policy: FailurePolicy,
    /// Default: [`MatchPolicy::Equivalent`].
    pub match_policy: MatchPolicy,
    /// Default: [`SideEffects::None`].
    pub side_effects: SideEffects,
    /// How long the API server waits, in seconds, 1 to 30. Default: 10.
    pub timeout_seconds: i32,
    /// Default: [`ReinvocationPolicy::Never`]. Validating webhooks have none.
    pub reinvocation_policy: ReinvocationPolicy,
    /// The labels of the namespaces for which the webhook is called. Default: all.
    pub namespace_selector: Option<LabelSelector>,
    /// The labels of the objects for which the webhook is called. Default: all.
    pub object_selector: Option<LabelSelector>,
    /// CEL conditions for the call. Default: none.
    pub match_conditions: Vec<MatchCondition>,
}

/// An admission webhook: the code and the declaration.
///
/// ```
/// use std::convert::Infallible;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_core::admission::Operation;
/// use windlass_webhook::{AdmissionContext, AdmissionWebhook, AdmissionChange, AdmissionDenial, FailurePolicy, Webhooks};
///
/// async fn keep(change: AdmissionChange<ConfigMap>, _: AdmissionContext) -> Result<(), AdmissionDenial> {
///     match change {
///         AdmissionChange::Delete(config) if config.data.is_some() => Err(AdmissionDenial::new("it has data")),
///         _ => Ok(()),
///     }
/// }
///
/// let webhook = AdmissionWebhook::validator::<ConfigMap>(keep)
///     .operations([Operation::Delete])
///     .failure_policy(FailurePolicy::Ignore);
/// assert_eq!(webhook.declaration().path, "/validate--v1-configmap");
/// let webhooks = Webhooks::new().admission(webhook);
/// # drop(webhooks);
/// ```
pub struct AdmissionWebhook {
    declaration: AdmissionDeclaration,
    extensions: Extensions,
    pub(crate) admit: Admit,
}

impl AdmissionWebhook {
    /// Wraps a defaulter of `K`, for creations and updates, at `/mutate-<group>-<version>-<kind>`.
    pub fn defaulter<K>(defaulter: impl Defaulter<K>) -> Self
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
    {
        Self::of::<K>(AdmissionKind::Mutating, defaulting::<K, _>(defaulter, false))
    }

    /// Works like [`defaulter`](Self::defaulter), but fields that `K` does not have are removed from the
    /// objects.
    pub fn defaulter_that_prunes<K>(defaulter: impl Defaulter<K>) -> Self
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Serialize + Send + 'static,
    {
        Self::of::<K>(AdmissionKind::Mutating, defaulting::<K, _>(defaulter, true))
    }

    /// Wraps a validator of `K`, for creations and updates, at `/validate-<group>-<version>-<kind>`.
    /// [`operations`](Self::operations) can add deletions.
    pub fn validator<K>(validator: impl Validator<K>) -> Self
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + 'static,
    {
        Self::of::<K>(AdmissionKind::Validating, validating::<K, _>(validator))
    }

    /// Wraps a handler of raw requests that may change objects. Add [`rule`](Self::rule)s.
    pub fn mutating(path: impl Into<String>, handler: impl AdmissionHandler) -> Self {
        Self::raw(AdmissionKind::Mutating, path.into(), handling(handler))
    }

    /// Wraps a handler of raw requests that allows or denies. Add [`rule`](Self::rule)s.
    pub fn validating(path: impl Into<String>, handler: impl AdmissionHandler) -> Self {
        Self::raw(AdmissionKind::Validating, path.into(), handling(handler))
    }

    fn of<K: Resource<DynamicType = ()>>(kind: AdmissionKind, admit: Admit) -> Self {
        let (verb, letter) = match kind {
            AdmissionKind::Mutating => ("mutate", 'm'),
            AdmissionKind::Validating => ("validate", 'v'),
        };
        let (group, version) = (K::group(&()).replace('.', "-"), K::version(&()));
        let lower = K::kind(&()).to_lowercase();
        let mut webhook = Self::raw(kind, format!("/{verb}-{group}-{version}-{lower}"), admit);
        webhook.declaration.name = format!("{letter}{lower}-{version}.kb.io");
        webhook.rule(Rule::of::<K>())
    }

    fn raw(kind: AdmissionKind, path: String, admit: Admit) -> Self {
        let name: Vec<&str> =
            path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
        let declaration = AdmissionDeclaration {
            kind,
            name: format!("{}.kb.io", name.join("-").to_lowercase()),
            path,
            rules: Vec::new(),
            failure_policy: FailurePolicy::Fail,
            match_policy: MatchPolicy::Equivalent,
            side_effects: SideEffects::None,
            timeout_seconds: 10,
            reinvocation_policy: ReinvocationPolicy::Never,
            namespace_selector: None,
            object_selector: None,
            match_conditions: Vec::new(),
        };
        Self { declaration, extensions: Extensions::new(), admit }
    }

    /// Returns the declarations of other crates. The runtime keeps the caches and the rights of the webhook here.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// Works like [`extensions`](Self::extensions), to add a declaration.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.extensions
    }

    /// Returns the declaration of the webhook.
    pub fn declaration(&self) -> &AdmissionDeclaration {
        &self.declaration
    }

    /// Sets the name in the configuration, a DNS name with at least three parts. Default: as kubebuilder's,
    /// `m<kind>-<version>.kb.io` or `v<kind>-<version>.kb.io`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.declaration.name = name.into();
        self
    }

    /// Sets the path.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.declaration.path = path.into();
        self
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        self.declaration.rules.push(rule);
        self
    }

    /// Sets the operations of all rules.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        let operations: Vec<Operation> = operations.into_iter().collect();
        self.declaration.rules.iter_mut().for_each(|rule| rule.operations.clone_from(&operations));
        self
    }

    /// Adds a subresource, such as `status`, to the rules.
    pub fn subresource(mut self, name: &str) -> Self {
        for rule in &mut self.declaration.rules {
            let first = rule.resources.first().and_then(|resource| resource.split('/').next()).unwrap_or("*");
            let added = format!("{first}/{name}");
            rule.resources.push(added);
        }
        self
    }

    /// Sets the API server's reaction if the webhook does not answer. Default: [`FailurePolicy::Fail`].
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.declaration.failure_policy = policy;
        self
    }

    /// Sets whether requests in other versions are passed on. Default: [`MatchPolicy::Equivalent`].
    pub fn match_policy(mut self, policy: MatchPolicy) -> Self {
        self.declaration.match_policy = policy;
        self
    }

    /// Sets the effects of the webhook beside the response. Default: [`SideEffects::None`].
    pub fn side_effects(mut self, effects: SideEffects) -> Self {
        self.declaration.side_effects = effects;
        self
    }

    /// Sets how long the API server waits, 1 to 30 s. Default: 10 s.
    pub fn timeout_seconds(mut self, seconds: i32) -> Self {
        self.declaration.timeout_seconds = seconds.clamp(1, 30);
        self
    }

    /// Sets whether a mutating webhook is called again. Default: [`ReinvocationPolicy::Never`].
    pub fn reinvocation_policy(mut self, policy: ReinvocationPolicy) -> Self {
        self.declaration.reinvocation_policy = policy;
        self
    }

    /// Limits the namespaces by labels.
    pub fn namespace_selector(mut self, selector: LabelSelector) -> Self {
        self.declaration.namespace_selector = Some(selector);
        self
    }

    /// Limits the objects by labels.
    pub fn object_selector(mut self, selector: LabelSelector) -> Self {
        self.declaration.object_selector = Some(selector);
        self
    }

    /// Adds a CEL condition. The webhook is called only if all are true.
    pub fn match_condition(mut self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        let condition = MatchCondition { name: name.into(), expression: expression.into() };
        self.declaration.match_conditions.push(condition);
        self
    }
}

impl std::fmt::Debug for AdmissionWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AdmissionWebhook").field(&self.declaration).finish()
    }
}

/// The kind that a conversion webhook converts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionDeclaration {
    /// The API group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The plural name of the resource.
    pub plural: String,
    /// The versions, including the hub, in order.
    pub versions: Vec<String>,
    /// The version that all conversions go through.
    pub hub: String,
    /// The path of the webhook.
    pub path: String,
}

impl ConversionDeclaration {
    /// Returns the name of the CustomResourceDefinition.
    pub fn crd_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}
