//! Admission of a request: the built-in plugins, policies and webhooks.

use serde_json::{Map, Value};

use super::delete_options::DeleteOptions;
use super::{Call, write};
use crate::admission::{Attributes, Objects, Operation, Reinvocation, Surroundings, plugins};
use crate::managed_fields;
use crate::meta;
use crate::resource::{ServedResources, api_version};
use crate::store::View;
use crate::wire::ApiError;
use windlass_kinds::resources::NAMESPACES;

/// The operation of a request on an object, for admission.
struct Seen {
    operation: Operation,
    namespace: String,
    name: String,
    dry_run: bool,
    options: Value,
}

impl Call<'_> {
    /// Lets mutating policies and webhooks change the object of a write. `old` is `None` for a new object.
    pub(super) async fn mutate(
        &mut self,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        if !self.may_be_mutated() {
            return Ok(());
        }
        rounds.begin();
        // Boxed, because almost no request gets here: this future must not enlarge the futures of all
        // requests.
        Box::pin(self.mutate_by_others(object, old, rounds)).await
    }

    /// Returns whether a policy or a webhook may want to change the object of the request.
    fn may_be_mutated(&self) -> bool {
        let (state, store) = (self.state, &self.state.store);
        state.webhooks.may_mutate(store, &self.resource) || state.policies.may_mutate(store, &self.resource)
    }

    /// Returns whether a policy or a webhook may want to check the object of the request.
    fn may_be_validated(&self) -> bool {
        let (state, store) = (self.state, &self.state.store);
        state.webhooks.may_validate(store, &self.resource)
            || state.policies.may_validate(store, &self.resource)
    }

    async fn mutate_by_others(
        &mut self,
        object: &mut Value,
        old: Option<&Value>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let seen = self.seen(object, old);
        let managed = object.pointer("/metadata/managedFields").cloned();
        self.call_mutating(&seen, Some(object), old, rounds).await?;
        if object.pointer("/metadata/managedFields") != managed.as_ref()
            && let Some(why) = managed_fields::invalid(object)
        {
            meta::set(object, "managedFields", managed);
            self.warnings.push(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {why}"
            ));
        }
        Ok(())
    }

    /// Returns the write in the form of the built-in plugins.
    pub(super) fn plugin_write(&self) -> plugins::Write<'_> {
        plugins::Write {
            plugins: self.state.plugins,
            store: &self.state.store,
            env: &self.state.env,
            resource: &self.resource.storage,
            subresource: &self.route.subresource,
            namespace: &self.route.namespace,
        }
    }

    /// Returns whether the object of the request has another kind than the resource, for example an
    /// `Eviction`.
    fn is_of_other_kind(&self) -> bool {
        self.kind().1 != self.resource.kind
    }

    /// Asks the built-in plugins, the validating policies and the validating webhooks whether a write may happen. `old` is `None` for a new object.
    pub(super) async fn validate(&mut self, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        if plugins::Write::concerns(&self.resource) && !self.is_of_other_kind() {
            self.plugin_write().validate(object, old)?;
        }
        if !self.may_be_validated() {
            return Ok(());
        }
        let seen = self.seen(object, old);
        Box::pin(self.call_validating(seen, Objects { new: Some(object), old })).await
    }

    /// Admits an object that is not stored, such as an `Eviction`.
    pub(super) async fn admit_request(&mut self, object: &mut Value) -> Result<(), ApiError> {
        self.mutate_request(object).await?;
        self.validate(object, None).await
    }

    /// Returns the first half of [`Call::admit_request`]: mutating admission.
    pub(super) async fn mutate_request(&mut self, object: &mut Value) -> Result<(), ApiError> {
        if self.resource.namespaced && self.resource.strategy.config.needs_namespace {
            let view = self.state.store.view();
            let names = [self.route.name.as_str(), meta::name(object)];
            write::may_create_in(&view, &self.resource, &self.route.namespace, names)?;
        }
        if let Some(shown) = self.resource.subresource(&self.route.subresource) {
            let fields = meta::fields_mut(object);
            fields.entry("kind").or_insert_with(|| shown.kind.clone().into());
            fields.entry("apiVersion").or_insert_with(|| api_version(&shown.group, &shown.version).into());
        }
        let mut rounds = Reinvocation::default();
        self.mutate(object, None, &mut rounds).await?;
        if rounds.is_needed() {
            self.mutate(object, None, &mut rounds).await?;
        }
        Ok(())
    }

    /// Returns whether some policy or webhook may want to see the request.
    pub(super) fn is_admitted(&self) -> bool {
        self.may_be_mutated() || self.may_be_validated()
    }

    /// Lets policies and webhooks see, and refuse, the deletion of an object.
    pub(super) async fn admit_deletion(
        &mut self,
        old: &Value,
        options: &DeleteOptions,
        grace_period_seconds: Option<i64>,
    ) -> Result<(), ApiError> {
        let seen = Seen {
            operation: Operation::Delete,
            namespace: self.admission_namespace(&self.route.name).to_owned(),
            name: self.route.name.clone(),
            dry_run: options.dry_run,
            options: options.to_json(grace_period_seconds),
        };
        self.call_mutating(&seen, None, Some(old), &mut Reinvocation::default()).await?;
        self.call_validating(seen, Objects { new: None, old: Some(old) }).await
    }

    /// Lets policies and webhooks change or refuse `options`, the options of a connection to a pod, a service or a node.
    pub(super) async fn admit_connection(&mut self, options: &mut Value) -> Result<(), ApiError> {
        if !self.is_admitted() {
            return Ok(());
        }
        let seen = Seen {
            operation: Operation::Connect,
            namespace: self.route.namespace.clone(),
            name: self.route.name.clone(),
            dry_run: false,
            options: Value::Null,
        };
        let mut rounds = Reinvocation::default();
        rounds.begin();
        self.call_mutating(&seen, Some(options), None, &mut rounds).await?;
        if rounds.is_needed() {
            rounds.begin();
            self.call_mutating(&seen, Some(options), None, &mut rounds).await?;
        }
        self.call_validating(seen, Objects { new: Some(options), old: None }).await
    }

    async fn call_mutating(
        &mut self,
        seen: &Seen,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let (view, served) = (self.state.store.view(), self.state.served.load_full());
        let around = self.surroundings(&view, &served);
        let request = self.attributes(seen);
        let state = self.state;
        let mut done = Ok(());
        // Policies change no deletion.
        if let Some(object) = object.as_deref_mut()
            && state.policies.may_mutate(&state.store, &self.resource)
        {
            done = state.policies.mutate(&request, object, old, around, rounds).await;
        }
        if done.is_ok() && state.webhooks.may_mutate(&state.store, &self.resource) {
            done = state.webhooks.mutate(&request, object, old, around, (rounds, &mut warnings)).await;
        }
        self.warnings = warnings;
        done
    }

    async fn call_validating(&mut self, seen: Seen, objects: Objects<'_>) -> Result<(), ApiError> {
        let mut warnings = std::mem::take(&mut self.warnings);
        let (view, served) = (self.state.store.view(), self.state.served.load_full());
        let around = self.surroundings(&view, &served);
        let request = self.attributes(&seen);
        let state = self.state;
        let mut done = Ok(());
        if state.policies.may_validate(&state.store, &self.resource) {
            done = state.policies.validate(&request, objects, around, &mut warnings).await;
        }
        if done.is_ok() && state.webhooks.may_validate(&state.store, &self.resource) {
            done = state.webhooks.validate(&request, objects, around, &mut warnings).await;
        }
        self.warnings = warnings;
        done
    }

    fn surroundings<'a>(&'a self, view: &'a View, served: &'a ServedResources) -> Surroundings<'a> {
        let state = self.state;
        Surroundings { env: &state.env, view, served, store: &state.store, authorizer: &state.authorizer }
    }

    /// Returns the group and kind of the object in the request: of the resource, or of the subresource.
    fn kind(&self) -> (&str, &str) {
        match self.resource.subresource(&self.route.subresource) {
            Some(subresource) => (&subresource.group, &subresource.kind),
            None => (&self.resource.group, &self.resource.kind),
        }
    }

    fn attributes<'a>(&'a self, seen: &'a Seen) -> Attributes<'a> {
        Attributes {
            operation: seen.operation,
            resource: &self.resource,
            subresource: &self.route.subresource,
            namespace: &seen.namespace,
            name: &seen.name,
            user: self.identity,
            dry_run: seen.dry_run,
            options: &seen.options,
        }
    }

    fn seen(&self, object: &Value, old: Option<&Value>) -> Seen {
        let name = if self.route.name.is_empty() { meta::name(object) } else { &self.route.name };
        let (operation, options) = match old {
            None => (Operation::Create, "CreateOptions"),
            Some(_) => (Operation::Update, "UpdateOptions"),
        };
        Seen {
            operation,
            namespace: self.admission_namespace(name).to_owned(),
            name: name.to_owned(),
            dry_run: self.query.get("dryRun").is_some(),
            options: self.write_options(options),
        }
    }

    /// Returns the namespace of a request for the object `name`: a Namespace object is in the namespace of
    /// the same name.
    fn admission_namespace<'a>(&'a self, name: &'a str) -> &'a str {
        if self.resource.storage == *NAMESPACES { name } else { &self.route.namespace }
    }

    fn write_options(&self, kind: &str) -> Value {
        let mut options = Map::new();
        options.insert("kind".to_owned(), kind.into());
        options.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
        if self.query.get("dryRun").is_some() {
            options.insert("dryRun".to_owned(), self.query.all("dryRun").collect::<Vec<_>>().into());
        }
        for field in ["fieldManager", "fieldValidation"] {
            let text = self.query.text(field);
            if !text.is_empty() {
                options.insert(field.to_owned(), text.into());
            }
        }
        Value::Object(options)
    }
}
