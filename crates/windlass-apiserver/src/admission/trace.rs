//! The steps of admission policies, for an observer: a person who tries a policy sees the result and the cost of each expression.

use std::sync::Arc;

use windlass_cel::admission::{Evaluation, Expression, OutOfBudget};

/// A step of an admission policy on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStep {
    /// The kind of the policy: `ValidatingAdmissionPolicy` or `MutatingAdmissionPolicy`.
    pub kind: &'static str,
    /// The name of the policy.
    pub policy: String,
    /// The name of the binding. Empty for a step before the bindings.
    pub binding: String,
    /// The parameters as `namespace/name`, or as `name` for a cluster-scoped object. Empty without parameters.
    pub params: String,
    /// The part of the policy.
    pub part: PolicyPart,
    /// The value of the expression as text, or the error.
    pub result: Result<String, String>,
    /// The cost of the expression, with the variables of the policy that the expression is the first to use.
    pub cost: u64,
}

/// A part of an admission policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPart {
    /// The resources that the policy or the binding matches. There is no expression.
    Match,
    /// The match condition with this name.
    Condition(String),
    /// The validation at this index.
    Validation(usize),
    /// The expression for the message of the validation at this index.
    Message(usize),
    /// The audit annotation with this key.
    Annotation(String),
    /// The mutation at this index.
    Mutation(usize),
}

/// Sees the steps of the admission policies of a server.
pub(crate) type PolicyObserver = Arc<dyn Fn(&PolicyStep) + Send + Sync>;

/// The place of the steps of a policy. Without an observer, a step is the evaluation alone.
#[derive(Clone, Copy, Default)]
pub(super) struct Trace<'a> {
    pub(super) observer: Option<&'a PolicyObserver>,
    pub(super) kind: &'static str,
    pub(super) policy: &'a str,
    pub(super) binding: &'a str,
    pub(super) params: &'a str,
}

impl Trace<'_> {
    /// Evaluates an expression, and tells the observer the result.
    pub(super) fn evaluate<'v>(
        self,
        evaluation: &mut Evaluation<'_, 'v>,
        expression: &Expression,
        part: impl FnOnce() -> PolicyPart,
    ) -> Result<Result<windlass_cel::Value<'v>, String>, OutOfBudget> {
        let before = evaluation.budget();
        let result = evaluation.evaluate(expression);
        if self.observer.is_some() {
            let shown = match &result {
                Ok(Ok(value)) => Ok(show(value)),
                Ok(Err(error)) => Err(error.clone()),
                Err(error) => Err(error.to_string()),
            };
            let cost = u64::try_from(before - evaluation.budget()).unwrap_or_default();
            self.tell(part(), shown, cost);
        }
        result
    }

    /// Tells the observer that the policy or the binding does not match, or cannot be used.
    pub(super) fn unmatched(self, result: Result<&str, &str>) {
        self.tell(PolicyPart::Match, result.map(str::to_owned).map_err(str::to_owned), 0);
    }

    /// Tells the observer a step.
    pub(super) fn tell(self, part: PolicyPart, result: Result<String, String>, cost: u64) {
        let Some(observer) = self.observer else { return };
        observer(&PolicyStep {
            kind: self.kind,
            policy: self.policy.to_owned(),
            binding: self.binding.to_owned(),
            params: self.params.to_owned(),
            part,
            result,
            cost,
        });
    }
}

/// Returns a value as text. A value that a person sees in the result of the request has its type alone.
fn show(value: &windlass_cel::Value<'_>) -> String {
    if let Some(value) = value.as_bool() {
        value.to_string()
    } else {
        value.as_str().map_or_else(|| value.type_name().to_owned(), str::to_owned)
    }
}
