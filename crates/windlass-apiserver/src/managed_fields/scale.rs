//! The managers of a scale: the managers of the object's replicas.

use serde_json::Value;
use windlass_schema::fields::{FieldPath, FieldSet, Managed, Managers, PathElement};

use super::entries::Entries;

/// The version of a scale.
const SCALE: &str = "autoscaling/v1";

/// The path of the replicas in each version of a resource; empty for a version without the scale subresource.
pub(crate) type ReplicasPaths = Vec<(String, FieldPath)>;

fn path<'a>(paths: &'a ReplicasPaths, api_version: &str) -> Option<&'a [PathElement]> {
    paths.iter().find(|(version, _)| version == api_version).map(|(_, path)| &**path)
}

fn replicas_of_scale() -> FieldPath {
    FieldPath::of_fields(["spec", "replicas"])
}

fn only(path: &[PathElement]) -> FieldSet {
    let mut fields = FieldSet::default();
    fields.insert(path);
    fields
}

/// Writes the managers of the replicas of `object` into the scale.
pub(crate) fn to_scale(object: &Value, scale: &mut Value, paths: &ReplicasPaths) {
    let Some(of_object) = Entries::of(object) else { return };
    let owns = |managed: &Managed| {
        path(paths, &managed.api_version)
            .is_some_and(|path| !path.is_empty() && managed.fields.contains(path))
    };
    let of_scale =
        of_object.managers.0.into_iter().filter(|(_, managed)| owns(managed)).map(|(id, managed)| {
            let fields = only(&replicas_of_scale());
            (id, Managed { fields, api_version: SCALE.to_owned(), applied: managed.applied })
        });
    Entries { managers: Managers(of_scale.collect()), times: of_object.times }.write(scale);
}

/// Writes the managers of `scale` into the object. The version of the object is `api_version`.
pub(crate) fn to_parent(scale: &Value, object: &mut Value, api_version: &str, paths: &ReplicasPaths) {
    let (Some(mut of_object), Some(of_scale)) = (Entries::of(object), Entries::of(scale)) else { return };
    let mut of_scale = of_scale.managers.0;
    of_object.managers.0.retain(|id, managed| match path(paths, &managed.api_version) {
        None => false,
        Some(path) if path.is_empty() || !managed.fields.contains(path) => true,
        Some(path) => {
            if of_scale.remove(id).is_none() {
                managed.fields = managed.fields.difference(&only(path));
            }
            !managed.fields.is_empty()
        }
    });
    for (id, managed) in of_scale {
        let Some(path) = path(paths, api_version) else { continue };
        if managed.fields.contains(&replicas_of_scale()) {
            let fields = only(path);
            let managed = Managed { fields, api_version: api_version.to_owned(), applied: managed.applied };
            // As in the real server, a manager that is new to the object has no time.
            of_object.managers.0.insert(id, managed);
        }
    }
    of_object.write(object);
}
