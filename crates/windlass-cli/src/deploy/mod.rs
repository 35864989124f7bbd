//! Deploys the objects of a project to a cluster, and removes deployed objects.

mod apply;
mod diagnosis;
mod kinds;
mod pin;
mod prune;
mod removal;
mod rollout;
mod settings;
mod target;

pub(crate) use self::apply::{Applier, Mode};
pub(crate) use self::pin::pin;
pub(crate) use self::prune::{Found, deployed_kinds, prune};
pub(crate) use self::removal::{Removal, count_objects};
pub(crate) use self::rollout::wait;
pub(crate) use self::settings::Setting;
pub(crate) use self::target::Target;

/// The field manager of deployed objects. CRDs have the field manager of `windlass install` and of `kubectl apply --server-side`.
const FIELD_MANAGER: &str = "windlass";

/// The label of deployed objects, with the name of the project.
const PROJECT: &str = "windlass.dev/project";

/// The label of deployed objects with the namespace of the operator: a project may be deployed to several namespaces.
const NAMESPACE: &str = "windlass.dev/namespace";

/// The annotation of the operator's Deployment with the kinds of the objects that were deployed.
const KINDS: &str = "windlass.dev/deployed-kinds";
