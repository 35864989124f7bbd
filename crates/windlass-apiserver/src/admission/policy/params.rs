//! The parameters of a policy: the objects that a binding selects.

use std::sync::Arc;

use serde_json::Value;

use super::definition::{Binding, Definition, ParamKind, ParamRef};
use crate::admission::{Attributes, Surroundings};
use crate::meta;
use crate::resource::Resource;
use crate::store::Stored;

impl Definition {
    /// Checks that the kind of the parameters is served.
    ///
    /// # Errors
    /// The text that kube-apiserver has for a kind that does not exist.
    pub(super) fn check_params(&self, around: Surroundings<'_>) -> Result<(), String> {
        let Some(kind) = &self.param_kind else { return Ok(()) };
        match resource_of(kind, around) {
            Some(_) => Ok(()),
            None => Err(format!(
                "failed to find resource referenced by paramKind: '{}/{}, Kind={}'",
                kind.group, kind.version, kind.kind
            )),
        }
    }
}

fn resource_of<'a>(kind: &ParamKind, around: Surroundings<'a>) -> Option<&'a Arc<Resource>> {
    around.served.kind(&kind.group, &kind.version, &kind.kind)
}

/// The parameters of an evaluation. `None` for a policy without parameters.
pub(super) type Params = Option<Arc<Stored>>;

/// Returns the value of the variable `params`.
pub(super) fn value(params: &Params) -> Value {
    params.as_ref().map_or(Value::Null, |stored| stored.value())
}

/// Returns the name of the parameters for an observer; empty without parameters.
pub(super) fn name(params: &Value) -> String {
    match (meta::namespace(params), meta::name(params)) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Returns the parameters for which a policy is evaluated, one after the other. A policy without parameters is evaluated
/// once. The objects can be many, and are parsed one at a time.
///
/// # Errors
/// The reason why the binding cannot be used.
pub(super) async fn collect(
    definition: &Definition,
    binding: &Binding,
    request: &Attributes<'_>,
    around: Surroundings<'_>,
) -> Result<Vec<Params>, String> {
    let (Some(kind), Some(reference)) = (&definition.param_kind, &binding.params) else {
        return Ok(vec![None]);
    };
    let Some(resource) = resource_of(kind, around) else { return Ok(Vec::new()) };
    let found = find(reference, resource, request, around)?;
    if found.is_empty() && reference.denies_absence {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let presented = resource.present(&found).await.map_err(|error| error.status().message.clone())?;
    Ok(presented.into_iter().map(Some).collect())
}

fn find(
    reference: &ParamRef,
    resource: &Resource,
    request: &Attributes<'_>,
    around: Surroundings<'_>,
) -> Result<Vec<Arc<Stored>>, String> {
    let namespace = match (resource.namespaced, reference.namespace.as_str()) {
        (true, "") if request.namespace.is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                    .to_owned(),
            );
        }
        (true, "") => Some(request.namespace),
        (true, namespace) => Some(namespace),
        (false, "") => None,
        (false, _) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
    };
    if !reference.name.is_empty() {
        let key = resource.key(namespace.unwrap_or_default(), &reference.name);
        return Ok(around.view.get(&resource.storage, &key).cloned().into_iter().collect());
    }
    let Some(selector) = &reference.selector else {
        return Err("one of name or selector must be provided".to_owned());
    };
    let selected = |stored: &&Arc<Stored>| selector.matches_by(|label| stored.labels().get(label));
    let objects = around.view.range(&resource.storage, namespace).map(|(_, stored)| stored);
    Ok(objects.filter(selected).cloned().collect())
}
