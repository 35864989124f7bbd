//! Owner references: the controller of an object, and the owners that an object is deleted with.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{Resource, ResourceExt};

use crate::{
    error::{Error, Result},
    kind::{AsObject, Object, owner_reference},
};

/// Sets and reads the owners of an object.
pub trait Owned: Resource + Sized {
    /// Makes `owner` the controller of this object: [`owned_by`](crate::Context::owned_by) finds the object,
    /// a change of the object enqueues the owner, and the garbage collector deletes the object with the
    /// owner.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use windlass_runtime::owner::Owned;
    ///
    /// # fn example(config: &ConfigMap) -> windlass_runtime::Result<Pod> {
    /// let mut pod = Pod::default();
    /// pod.metadata.namespace = config.metadata.namespace.clone();
    /// let pod = pod.controlled_by(config)?;
    /// # Ok(pod) }
    /// ```
    ///
    /// # Errors
    /// Another owner controls the object already; `owner` was not read from the server and has no uid; or the
    /// two are in different namespaces, and the garbage collector would delete the object.
    fn controlled_by<O, Form>(mut self, owner: &O) -> Result<Self>
    where
        O: AsObject<Form, Object: Object>,
    {
        self.set_controller(owner)?;
        Ok(self)
    }

    /// Works like [`controlled_by`](Self::controlled_by), in place.
    ///
    /// # Errors
    /// As [`controlled_by`](Self::controlled_by).
    fn set_controller<O, Form>(&mut self, owner: &O) -> Result<()>
    where
        O: AsObject<Form, Object: Object>;

    /// Makes `owner` a further owner of this object. The garbage collector deletes the object when all owners
    /// are gone.
    ///
    /// # Errors
    /// `owner` has no uid, or the two are in different namespaces.
    fn also_owned_by<O, Form>(self, owner: &O) -> Result<Self>
    where
        O: AsObject<Form, Object: Object>;

    /// Returns whether the object with this uid is an owner of this object.
    fn is_owned_by(&self, uid: &str) -> bool;

    /// Returns the reference to the owner that controls this object.
    fn controller(&self) -> Option<&OwnerReference>;
}

impl<K: Resource> Owned for K {
    fn set_controller<O, Form>(&mut self, owner: &O) -> Result<()>
    where
        O: AsObject<Form, Object: Object>,
    {
        let mut reference = reference_to(owner.as_object(), self)?;
        if let Some(other) = self.controller().filter(|other| other.uid != reference.uid) {
            let message = format!(
                "{} is controlled by {} {} already; an object has one controller",
                self.name_any(),
                other.kind,
                other.name
            );
            return Err(Error::setup(message));
        }
        reference.controller = Some(true);
        reference.block_owner_deletion = Some(true);
        put(self, reference);
        Ok(())
    }

    fn also_owned_by<O, Form>(mut self, owner: &O) -> Result<Self>
    where
        O: AsObject<Form, Object: Object>,
    {
        let reference = reference_to(owner.as_object(), &self)?;
        if !self.is_owned_by(&reference.uid) {
            put(&mut self, reference);
        }
        Ok(self)
    }

    fn is_owned_by(&self, uid: &str) -> bool {
        self.owner_references().iter().any(|reference| reference.uid == uid)
    }

    fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references().iter().find(|reference| reference.controller == Some(true))
    }
}

fn reference_to<O: Object>(owner: &O, owned: &impl Resource) -> Result<OwnerReference> {
    let named = || {
        let kind = owner.type_meta().map_or_else(|| "object".to_owned(), |types| types.kind);
        format!("{kind} {}", owner.name_any())
    };
    match (owner.namespace(), owned.namespace()) {
        (Some(of_owner), of_owned) if of_owned.as_ref() != Some(&of_owner) => {
            return Err(Error::setup(format!(
                "{} is in namespace {of_owner} and can own only objects there, not in {:?}",
                named(),
                of_owned.unwrap_or_default()
            )));
        }
        _ => {}
    }
    owner_reference(owner).ok_or_else(|| {
        Error::setup(format!(
            "{} has no uid or kind and so cannot own anything; use the object that was read",
            named()
        ))
    })
}

/// Adds a reference, or replaces the reference to the same object.
fn put(object: &mut impl Resource, reference: OwnerReference) {
    let references = object.owner_references_mut();
    match references.iter_mut().find(|known| known.uid == reference.uid) {
        Some(known) => *known = reference,
        None => references.push(reference),
    }
}
