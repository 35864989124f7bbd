//! `MutatingAdmissionPolicy`: expressions compute patches of the object of a request.

use std::borrow::Cow;

use serde_json::Value;
use windlass_cel::admission::{Declarations, Evaluation, Expression, Output, POLICY_BUDGET};

use super::definition::{Binding, Definition, Draft};
use super::params::{self, Params};
use super::patch::{self, PatchError};
use super::validating::name_of;
use super::{Decisions, Policies, UNMATCHED};
use crate::admission::matching::{self, Shown};
use crate::admission::reinvocation::PolicyKey;
use crate::admission::scene::{Deadline, Scene};
use crate::admission::trace::{PolicyObserver, PolicyPart, Trace};
use crate::admission::{Attributes, Objects, Reinvocation, Surroundings, versions};
use crate::meta;
use crate::resource::Resource;
use crate::wire::{ApiError, Cause, Details};
use windlass_kinds::kind_names::MUTATING_ADMISSION_POLICY as KIND;

/// A compiled policy.
pub(super) struct MutatingPolicy {
    definition: Definition,
    mutations: Vec<Mutation>,
    /// True if the policy runs again after a later change of the object.
    is_reinvoked: bool,
}

/// An expression that computes a patch.
enum Mutation {
    /// A list of operations on JSON.
    Operations(Expression),
    /// An apply configuration.
    Configuration(Expression),
}

/// A policy that runs for a request, with a binding and parameters.
struct Invocation<'p> {
    policy: &'p MutatingPolicy,
    binding: &'p Binding,
    shown: Shown,
    params: Params,
}

/// The values that the expressions of an invocation see, besides the object.
struct Inputs<'i> {
    invocation: &'i Invocation<'i>,
    scene: &'i Scene,
    old: Option<&'i Value>,
    params: &'i Value,
    trace: Trace<'i>,
}

/// The size of the texts of all failures that a reply shows, in bytes.
const MAX_TEXTS: usize = 1 << 20;

/// A policy that failed.
struct Failure {
    message: String,
    /// True if the policy was evaluated.
    is_invalid: bool,
}

/// A mutation of a request by all policies.
struct Run<'a> {
    request: &'a Attributes<'a>,
    old: Option<&'a Value>,
    around: Surroundings<'a>,
    deadline: Deadline,
    failures: Vec<Failure>,
    /// The size of the texts of the failures, in bytes.
    texts: usize,
    decisions: &'a Decisions,
    observer: Option<&'a PolicyObserver>,
}

impl MutatingPolicy {
    pub(super) fn compile(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let draft = Draft::new(policy);
        let with = Declarations { patches: true, ..draft.with };
        let mutation = |mutation: &Value| {
            let source = |field: &str| mutation[field]["expression"].as_str().unwrap_or_default();
            if mutation["patchType"] == "JSONPatch" {
                let source = source("jsonPatch");
                Mutation::Operations(draft.compiler.compile(source, Output::Operations, with))
            } else {
                let source = source("applyConfiguration");
                Mutation::Configuration(draft.compiler.compile(source, Output::Configuration, with))
            }
        };
        Self {
            mutations: spec["mutations"].as_array().into_iter().flatten().map(mutation).collect(),
            is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded",
            definition: draft.finish(),
        }
    }
}

impl Policies {
    /// Lets the mutating policies that match a request change the object.
    ///
    /// # Errors
    /// A policy with the failure policy `Fail` fails.
    pub(crate) async fn mutate(
        &self,
        request: &Attributes<'_>,
        object: &mut Value,
        old: Option<&Value>,
        around: Surroundings<'_>,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let policies = self.mutating.get(around.view);
        let (deadline, failures) = (Deadline::start(), Vec::new());
        let (decisions, observer) = (&self.decisions, self.observer.as_ref());
        let mut run = Run { request, old, around, deadline, failures, texts: 0, decisions, observer };
        let mut invocations = Vec::new();
        for bound in policies.iter() {
            run.select(&bound.policy, &bound.bindings, object, &mut invocations).await;
        }
        if !invocations.is_empty() {
            run.mutate(&invocations, object, rounds).await?;
        }
        if run.failures.is_empty() { Ok(()) } else { Err(refusal(request, object, &run.failures)) }
    }
}

impl<'a> Run<'a> {
    /// Adds the invocations of a policy that matches.
    async fn select<'p>(
        &mut self,
        policy: &'p MutatingPolicy,
        bindings: &'p [Binding],
        object: &Value,
        invocations: &mut Vec<Invocation<'p>>,
    ) {
        let objects = Objects { new: Some(object), old: self.old };
        let definition = &policy.definition;
        let shown = match matching::matches(&definition.criteria, self.request, objects, self.around) {
            Ok(None) => return definition.trace(self.observer, KIND, None, "").unmatched(Ok(UNMATCHED)),
            Ok(Some(shown)) => definition.check_params(self.around).map(|()| shown),
            Err(error) => Err(error.status().message.clone()),
        };
        let shown = match shown {
            Ok(shown) => shown,
            Err(why) => return self.misconfigured(definition, None, &why),
        };
        for binding in bindings {
            let covered = binding.criteria.as_ref().map_or(Ok(true), |criteria| {
                let found = matching::matches(criteria, self.request, objects, self.around);
                found.map(|found| found.is_some()).map_err(|error| error.status().message.clone())
            });
            let params = match covered {
                Ok(false) => {
                    definition.trace(self.observer, KIND, Some(binding), "").unmatched(Ok(UNMATCHED));
                    continue;
                }
                Ok(true) => params::collect(definition, binding, self.request, self.around).await,
                Err(why) => Err(why),
            };
            match params {
                Ok(params) => invocations.extend(params.into_iter().map(|params| {
                    let shown = shown.clone();
                    Invocation { policy, binding, shown, params }
                })),
                Err(why) => self.misconfigured(definition, Some(binding), &why),
            }
        }
    }

    fn misconfigured(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str) {
        definition.trace(self.observer, KIND, binding, "").unmatched(Err(why));
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.fail(definition, binding, &format!("failed to configure {what}: {why}"), false);
    }

    fn fail(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str, is_invalid: bool) {
        if definition.ignores_failure || self.texts > MAX_TEXTS {
            return;
        }
        let message = if let Some(binding) = binding {
            format!("policy '{}' with binding '{}' denied request: {why}", definition.name, binding.name)
        } else {
            let name = windlass_schema::go_quote(&definition.name);
            format!("policy {name} denied request: {why}")
        };
        self.texts += message.len();
        self.failures.push(Failure { message, is_invalid });
    }

    /// Evaluates the invocations in sequence.
    async fn mutate(
        &mut self,
        invocations: &[Invocation<'_>],
        object: &mut Value,
        rounds: &mut Reinvocation,
    ) -> Result<(), ApiError> {
        let request = self.request;
        rounds.policies.begin(Some(object));
        // The object stays in the version of the last policy until a policy needs another version.
        let mut last = Shown::AsRequested;
        let mut is_patched = false;
        // The last binding with objects that could not be converted.
        let mut unconverted: Option<&Binding> = None;
        for invocation in invocations {
            let definition = &invocation.policy.definition;
            // After the deadline, an invocation can only add a failure.
            let is_moot = definition.ignores_failure || !self.failures.is_empty();
            if self.deadline.is_over() && is_moot
                || unconverted.is_some_and(|binding| std::ptr::eq(binding, invocation.binding))
            {
                continue;
            }
            tokio::task::yield_now().await;
            let (from, to) = (last.resource(request), invocation.shown.resource(request));
            let old = match self.convert(object, from, to).await {
                Ok(old) => old,
                Err(error) => {
                    // As in kube-apiserver, the error is that of the policy.
                    self.misconfigured(definition, None, versions::reason(&error));
                    unconverted = Some(invocation.binding);
                    continue;
                }
            };
            last = invocation.shown.clone();
            let scene = Scene::of_policy(request, to, self.around)?;
            let params = params::value(&invocation.params);
            let name = params::name(&params);
            let trace = definition.trace(self.observer, KIND, Some(invocation.binding), &name);
            let inputs = Inputs { invocation, scene: &scene, old: old.as_deref(), params: &params, trace };
            let key = invocation.key(&params);
            if !self.is_wanted(&inputs, object) || rounds.policies.skips(&key) {
                continue;
            }
            let before = object.clone();
            for (index, mutation) in invocation.policy.mutations.iter().enumerate() {
                match self.apply(&inputs, index, mutation, object) {
                    Ok(changed) => {
                        self.decisions.count_mutation(definition, invocation.binding, None);
                        is_patched = true;
                        if let Some(changed) = changed {
                            *object = changed;
                        }
                    }
                    Err(PatchError::Refused(error)) => {
                        let why = &error.status().message;
                        self.decisions.count_mutation(definition, invocation.binding, Some(why));
                        return Err(error);
                    }
                    Err(PatchError::Failed(why)) => {
                        self.decisions.count_mutation(definition, invocation.binding, Some(&why));
                        self.fail(definition, Some(invocation.binding), &why, true);
                    }
                }
            }
            if before != *object {
                rounds.policies.outdate();
                rounds.require();
            }
            if invocation.policy.is_reinvoked {
                rounds.policies.add(key);
            }
        }
        versions::convert_in_place(request, object, last.resource(request), request.resource).await?;
        if is_patched {
            if request.resource.is_custom() && request.is_of_resource() {
                windlass_schema::prune(request.resource.schema.get(), object);
            }
            // As in kube-apiserver, a patch counts as a change even if the object stays the same.
            rounds.policies.outdate();
            rounds.require();
        }
        rounds.policies.end(Some(object));
        Ok(())
    }

    /// Converts the object to the version `to`, and returns the old object in this version.
    async fn convert(
        &self,
        object: &mut Value,
        from: &Resource,
        to: &Resource,
    ) -> Result<Option<Cow<'a, Value>>, ApiError> {
        let old = match self.old {
            Some(old) => Some(versions::convert(self.request, old, self.request.resource, to).await?),
            None => None,
        };
        versions::convert_in_place(self.request, object, from, to).await?;
        Ok(old)
    }

    /// Returns whether the match conditions of a policy hold.
    fn is_wanted(&mut self, inputs: &Inputs<'_>, object: &Value) -> bool {
        let Inputs { invocation, scene, old, params, trace } = *inputs;
        let definition = &invocation.policy.definition;
        let Some(conditions) = &definition.conditions else { return true };
        let input = scene.conditions(Objects { new: Some(object), old }, params);
        match conditions.hold(&input, &definition.variables, self.deadline, trace) {
            Ok(holds) => holds,
            Err(why) => {
                self.fail(definition, Some(invocation.binding), &why, true);
                false
            }
        }
    }

    /// Evaluates a mutation. Returns the patched object; `None` for a patch that changes nothing.
    fn apply(
        &self,
        inputs: &Inputs<'_>,
        index: usize,
        mutation: &Mutation,
        object: &Value,
    ) -> Result<Option<Value>, PatchError> {
        let Inputs { invocation, scene, old, params, trace } = *inputs;
        let shown = invocation.shown.resource(self.request);
        let target = patch::Target::of(self.request, shown);
        let input = scene.input(Objects { new: Some(object), old }, params);
        let is_over = || self.deadline.is_over();
        let variables = &invocation.policy.definition.variables;
        let mut evaluation = Evaluation::new(&input, variables, POLICY_BUDGET, Some(&is_over));
        let (Mutation::Operations(expression) | Mutation::Configuration(expression)) = mutation;
        if let Some(error) = expression.error() {
            trace.tell(PolicyPart::Mutation(index), Err(error.to_owned()), 0);
            return Err(PatchError::Failed(error.to_owned()));
        }
        let result = trace
            .evaluate(&mut evaluation, expression, || PolicyPart::Mutation(index))
            .map_err(|error| PatchError::Failed(error.to_string()))?;
        let value = result.map_err(PatchError::Failed)?;
        match mutation {
            Mutation::Operations(_) => target.apply_operations(object, &value),
            Mutation::Configuration(_) => target.apply_configuration(object, &value).map(Some),
        }
    }
}

impl Invocation<'_> {
    fn key(&self, params: &Value) -> PolicyKey {
        PolicyKey {
            policy: self.policy.definition.name.clone(),
            binding: self.binding.name.clone(),
            params: (meta::namespace(params).to_owned(), meta::name(params).to_owned()),
        }
    }
}

/// Returns the error of policies that failed.
fn refusal(request: &Attributes<'_>, object: &Value, failures: &[Failure]) -> ApiError {
    let name = name_of(request, Some(object));
    let forbidden =
        ApiError::forbidden(&request.resource.group_resource(), name, "admission request denied by policy");
    let cause = |failure: &Failure| Cause { message: failure.message.clone(), ..Cause::default() };
    let causes = failures.iter().map(cause).collect();
    let details = Details { causes, ..forbidden.status().details.clone().unwrap_or_default() };
    let first = failures.first();
    let reason = if first.is_some_and(|first| first.is_invalid) { "Invalid" } else { "Forbidden" };
    let message = first.map_or("", |first| &first.message);
    ApiError::rejected(403, reason, message, Some(details))
}
