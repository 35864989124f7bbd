//! `ValidatingAdmissionPolicy`: expressions decide whether a request may go on.

mod evaluate;

use serde_json::Value;
use windlass_cel::admission::{Declarations, Expression, Output};

use super::definition::{Action, Binding, Definition, Draft};
use super::{Decisions, Policies, UNMATCHED, params};
use crate::admission::scene::{Deadline, Scene};
use crate::admission::trace::PolicyObserver;
use crate::admission::{Attributes, Objects, Surroundings, matching, versions};
use crate::meta;
use crate::resource::Resource;
use crate::wire::{ApiError, Cause, Details, fills_a_reply, is_printable};
use windlass_kinds::kind_names::VALIDATING_ADMISSION_POLICY as KIND;

/// A compiled policy.
pub(super) struct ValidatingPolicy {
    definition: Definition,
    validations: Vec<Validation>,
    annotations: Vec<Annotation>,
}

/// An expression for the audit event of a request.
struct Annotation {
    key: String,
    expression: Expression,
}

/// An expression that must be true.
struct Validation {
    expression: Expression,
    /// The message for a violation. Empty for the text of the expression.
    message: String,
    message_expression: Option<Expression>,
    /// The reason of the error for a violation.
    reason: String,
}

/// A reason to refuse a request.
struct Denial {
    message: String,
    reason: String,
}

impl ValidatingPolicy {
    pub(super) fn compile(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let draft = Draft::new(policy);
        let list = |field: &str| spec[field].as_array().into_iter().flatten();
        let validations = list("validations").map(|validation| validate_by(validation, &draft)).collect();
        let annotation = |annotation: &Value| {
            let text = |field: &str| annotation[field].as_str().unwrap_or_default();
            let expression = draft.compiler.compile(text("valueExpression"), Output::TextOrNull, draft.with);
            Annotation { key: text("key").to_owned(), expression }
        };
        let annotations = list("auditAnnotations").map(annotation).collect();
        Self { validations, annotations, definition: draft.finish() }
    }
}

fn validate_by(validation: &Value, draft: &Draft) -> Validation {
    let text = |field: &str| validation[field].as_str().unwrap_or_default();
    let reason = text("reason");
    let message_expression = text("messageExpression");
    // Messages cannot ask the authorizer.
    let of_messages = Declarations { authorizer: false, ..draft.with };
    Validation {
        expression: draft.compiler.compile(text("expression"), Output::Bool, draft.with),
        message: text("message").trim().to_owned(),
        message_expression: (!message_expression.is_empty())
            .then(|| draft.compiler.compile(message_expression, Output::Text, of_messages)),
        reason: if reason.is_empty() { "Invalid".to_owned() } else { reason.to_owned() },
    }
}

/// A validation of a request by all policies.
struct Run<'a> {
    request: &'a Attributes<'a>,
    objects: Objects<'a>,
    around: Surroundings<'a>,
    deadline: Deadline,
    /// The first denial.
    denial: Option<Denial>,
    warnings: &'a mut Vec<String>,
    /// The number of warnings before this validation.
    warned: usize,
    decisions: &'a Decisions,
    observer: Option<&'a PolicyObserver>,
}

impl Policies {
    /// Evaluates the validating policies that match a request. Adds the warnings of bindings that only warn.
    ///
    /// # Errors
    /// The first violation of a binding that denies.
    pub(crate) async fn validate(
        &self,
        request: &Attributes<'_>,
        objects: Objects<'_>,
        around: Surroundings<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let policies = self.validating.get(around.view);
        let deadline = Deadline::start();
        let (denial, warned, decisions) = (None, warnings.len(), &self.decisions);
        let observer = self.observer.as_ref();
        let mut run =
            Run { request, objects, around, deadline, denial, warnings, warned, decisions, observer };
        for bound in policies.iter() {
            run.policy(&bound.policy, &bound.bindings).await?;
        }
        match run.denial {
            Some(denial) => Err(refusal(request, objects, denial)),
            None => Ok(()),
        }
    }
}

impl Run<'_> {
    async fn policy(&mut self, policy: &ValidatingPolicy, bindings: &[Binding]) -> Result<(), ApiError> {
        let definition = &policy.definition;
        let shown = match matching::matches(&definition.criteria, self.request, self.objects, self.around) {
            Ok(None) => {
                definition.trace(self.observer, KIND, None, "").unmatched(Ok(UNMATCHED));
                return Ok(());
            }
            Ok(Some(shown)) => definition.check_params(self.around).map(|()| shown),
            Err(error) => Err(error.status().message.clone()),
        };
        let shown = match shown {
            Ok(shown) => shown,
            Err(why) => {
                self.misconfigured(definition, None, &why);
                return Ok(());
            }
        };
        let shown = shown.resource(self.request);
        let (mut scene, mut converted) = (None, None);
        for binding in bindings {
            if !self.is_bound(definition, binding) {
                continue;
            }
            let params = match params::collect(definition, binding, self.request, self.around).await {
                Ok(params) => params,
                Err(why) => {
                    self.misconfigured(definition, Some(binding), &why);
                    continue;
                }
            };
            if converted.is_none() && !params.is_empty() {
                match self.convert(shown).await {
                    Ok(objects) => converted = Some(objects),
                    Err(error) => {
                        let why = format!("failed to convert object version: {}", versions::reason(&error));
                        self.misconfigured(definition, Some(binding), &why);
                        continue;
                    }
                }
            }
            if scene.is_none() {
                scene = Some(Scene::of_policy(self.request, shown, self.around)?);
            }
            let (Some(scene), Some((new, old))) = (&scene, &converted) else { continue };
            let objects = Objects { new: new.as_ref(), old: old.as_ref() };
            for params in &params {
                let is_over = self.deadline.is_over();
                let params = params::value(params);
                let name = params::name(&params);
                let trace = definition.trace(self.observer, KIND, Some(binding), &name);
                let found = policy.evaluate(scene, objects, &params, self.deadline, trace);
                self.act(definition, binding, found);
                if is_over {
                    // The evaluations with other parameters would fail as well.
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }

    /// Returns whether the binding covers the request.
    fn is_bound(&mut self, definition: &Definition, binding: &Binding) -> bool {
        let Some(criteria) = &binding.criteria else { return true };
        match matching::matches(criteria, self.request, self.objects, self.around) {
            Ok(Some(_)) => true,
            Ok(None) => {
                definition.trace(self.observer, KIND, Some(binding), "").unmatched(Ok(UNMATCHED));
                false
            }
            Err(error) => {
                self.misconfigured(definition, Some(binding), &error.status().message);
                false
            }
        }
    }

    /// Returns the objects in the version of `shown`.
    async fn convert(&self, shown: &Resource) -> Result<(Option<Value>, Option<Value>), ApiError> {
        let mut converted = [None, None];
        for (object, converted) in [self.objects.new, self.objects.old].into_iter().zip(&mut converted) {
            if let Some(object) = object {
                let object = versions::convert(self.request, object, self.request.resource, shown).await?;
                *converted = Some(object.into_owned());
            }
        }
        let [new, old] = converted;
        Ok((new, old))
    }

    fn misconfigured(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str) {
        definition.trace(self.observer, KIND, binding, "").unmatched(Err(why));
        if definition.ignores_failure {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.deny(definition, binding, &format!("failed to configure {what}: {why}"), "Invalid");
    }

    fn deny(&mut self, definition: &Definition, binding: Option<&Binding>, why: &str, reason: &str) {
        if self.denial.is_some() {
            return;
        }
        let name = &definition.name;
        let message = match binding {
            Some(binding) => {
                let binding = &binding.name;
                format!("ValidatingAdmissionPolicy '{name}' with binding '{binding}' denied request: {why}")
            }
            None => format!("ValidatingAdmissionPolicy '{name}' denied request: {why}"),
        };
        self.denial = Some(Denial { message, reason: reason.to_owned() });
    }

    /// Adds a warning if the reply would show the warning.
    fn warn(&mut self, warning: String) {
        let own = self.warnings.get(self.warned..).unwrap_or_default();
        if is_printable(&warning) && !own.contains(&warning) && !fills_a_reply(own) {
            self.warnings.push(warning);
        }
    }

    /// Does what the binding says about violations.
    fn act(&mut self, definition: &Definition, binding: &Binding, found: evaluate::Found) {
        for violation in &found.violations {
            for action in &binding.actions {
                self.decisions.count_check(definition, binding, &violation.message, action.name());
                match action {
                    Action::Deny => {
                        self.deny(definition, Some(binding), &violation.message, &violation.reason);
                    }
                    Action::Warn => self.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        definition.name, binding.name, violation.message
                    )),
                    Action::Audit => {}
                }
            }
        }
        for error in &found.ignored {
            self.decisions.count_check(definition, binding, error, "allow");
        }
        for error in &found.annotation_errors {
            self.decisions.count_check(definition, binding, error, "deny");
            self.deny(definition, Some(binding), error, "Invalid");
        }
    }
}

/// Returns the error of a violation.
fn refusal(request: &Attributes<'_>, objects: Objects<'_>, denial: Denial) -> ApiError {
    let code = match denial.reason.as_str() {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    let forbidden = ApiError::forbidden(
        &request.resource.group_resource(),
        name_of(request, objects.new),
        &denial.message,
    );
    let status = forbidden.status();
    let cause = Cause { message: denial.message, ..Cause::default() };
    let details = Details { causes: vec![cause], ..status.details.clone().unwrap_or_default() };
    ApiError::rejected(code, denial.reason, status.message.clone(), Some(details))
}

/// Returns the name of the object for errors.
pub(super) fn name_of<'a>(request: &Attributes<'a>, object: Option<&'a Value>) -> &'a str {
    let given = [request.name, object.map_or("", meta::name)];
    let prefix = object.map_or("", |object| meta::text(object, "generateName"));
    given.into_iter().chain([prefix]).find(|name| !name.is_empty()).unwrap_or("Unknown")
}
