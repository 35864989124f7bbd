//! The parts that validating and mutating policies, and their bindings, have in common.

use serde_json::Value;
use windlass_cel::admission::{Compiler, Declarations, Variables};

use crate::admission::conditions::Conditions;
use crate::admission::criteria::{Criteria, texts};
use crate::admission::trace::{PolicyObserver, Trace};
use crate::meta;
use crate::wire::LabelSelector;

/// The part of a policy that is not about results.
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) criteria: Criteria,
    /// `None` without match conditions.
    pub(super) conditions: Option<Conditions>,
    /// The kind of the parameters, if the policy has parameters.
    pub(super) param_kind: Option<ParamKind>,
    /// True if a request goes on if the policy fails.
    pub(super) ignores_failure: bool,
    pub(super) variables: Variables,
}

/// The kind of the parameters of a policy.
pub(super) struct ParamKind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

/// A binding of a policy.
pub(super) struct Binding {
    pub(super) name: String,
    /// The name of the policy.
    pub(super) policy: String,
    /// The requests that the policy is limited to. `None` for no limit.
    pub(super) criteria: Option<Criteria>,
    /// The parameters. `None` for a policy without parameters.
    pub(super) params: Option<ParamRef>,
    /// The effects of a violation, of a validating policy.
    pub(super) actions: Vec<Action>,
}

/// The parameters that a binding selects.
pub(super) struct ParamRef {
    /// The name of a single object. Empty for a selector.
    pub(super) name: String,
    /// Empty for the namespace of the request.
    pub(super) namespace: String,
    pub(super) selector: Option<LabelSelector>,
    /// True if the lack of parameters is a failure.
    pub(super) denies_absence: bool,
}

/// An effect of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Deny,
    Warn,
    /// An annotation of the audit event. The server has no audit log.
    Audit,
}

impl Action {
    /// Returns the name in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Warn => "warn",
            Self::Audit => "audit",
        }
    }
}

/// A policy that is being compiled.
pub(super) struct Draft {
    pub(super) definition: Definition,
    pub(super) compiler: Compiler,
    pub(super) with: Declarations,
}

impl Draft {
    /// Reads a policy, and compiles its variables and match conditions.
    pub(super) fn new(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let param_kind = ParamKind::read(&spec["paramKind"]);
        let with = Declarations { params: param_kind.is_some(), authorizer: true, patches: false };
        let mut compiler = Compiler::with_variables();
        for variable in spec["variables"].as_array().into_iter().flatten() {
            let text = |field: &str| variable[field].as_str().unwrap_or_default();
            // The uses of a variable that does not compile fail.
            let _ = compiler.add_variable(text("name"), text("expression"), with);
        }
        let definition = Definition {
            name: meta::name(policy).to_owned(),
            criteria: Criteria::of_resources(&spec["matchConstraints"]),
            conditions: Conditions::compile(&spec["matchConditions"], &compiler, with),
            param_kind,
            ignores_failure: spec["failurePolicy"] == "Ignore",
            variables: Variables::default(),
        };
        Self { definition, compiler, with }
    }

    /// Returns the definition, after all expressions were compiled.
    pub(super) fn finish(self) -> Definition {
        Definition { variables: self.compiler.into_variables(), ..self.definition }
    }
}

impl Definition {
    /// Returns the place of the steps of the policy with a binding. `params` is the name of the parameters.
    pub(super) fn trace<'a>(
        &'a self,
        observer: Option<&'a PolicyObserver>,
        kind: &'static str,
        binding: Option<&'a Binding>,
        params: &'a str,
    ) -> Trace<'a> {
        let binding = binding.map_or("", |binding| &binding.name);
        Trace { observer, kind, policy: &self.name, binding, params }
    }
}

impl ParamKind {
    fn read(kind: &Value) -> Option<Self> {
        let api_version = kind.get("apiVersion")?.as_str()?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = kind["kind"].as_str().unwrap_or_default();
        Some(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() })
    }
}

impl Binding {
    /// Reads a binding of a validating or a mutating policy.
    pub(super) fn read(binding: &Value) -> Self {
        let spec = &binding["spec"];
        let resources = &spec["matchResources"];
        let actions = texts(&spec["validationActions"]).into_iter().filter_map(|action| match &*action {
            "Deny" => Some(Action::Deny),
            "Warn" => Some(Action::Warn),
            "Audit" => Some(Action::Audit),
            _ => None,
        });
        Self {
            name: meta::name(binding).to_owned(),
            policy: spec["policyName"].as_str().unwrap_or_default().to_owned(),
            criteria: resources.is_object().then(|| Criteria::of_resources(resources)),
            params: spec["paramRef"].is_object().then(|| ParamRef::read(&spec["paramRef"])),
            actions: actions.collect(),
        }
    }
}

impl ParamRef {
    fn read(reference: &Value) -> Self {
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        let selector = &reference["selector"];
        Self {
            name: text("name"),
            namespace: text("namespace"),
            selector: selector.is_object().then(|| LabelSelector::from_object(selector)),
            denies_absence: text("parameterNotFoundAction") == "Deny",
        }
    }
}
