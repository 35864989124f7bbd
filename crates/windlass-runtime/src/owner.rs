//! Owner references: who is behind an object, and who goes when it goes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{Resource, ResourceExt};

use crate::error::{Error, Result};

/// Says who owns an object.
pub trait Owned: Resource + Sized {
    /// Makes `owner` the one controller of this object: it is found by [`owned_by`](crate::Context::owned_by), a change of it
    /// concerns its owner, and it is deleted with its owner.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use windlass_runtime::owner::Owned;
    ///
    /// # fn example(config: &ConfigMap) -> windlass_runtime::Result<Pod> {
    /// let pod = Pod::default().controlled_by(config)?;
    /// # Ok(pod) }
    /// ```
    ///
    /// Fails when another owner controls it already, when `owner` was not read from the server and so has no uid, and when the
    /// two lie in different namespaces: the garbage collector would delete the object.
    fn controlled_by<O>(self, owner: &O) -> Result<Self>
    where
        O: Resource<DynamicType = ()>;

    /// Makes `owner` one of the owners of this object; it is deleted when all of them are gone.
    fn also_owned_by<O>(self, owner: &O) -> Result<Self>
    where
        O: Resource<DynamicType = ()>;

    /// Whether the object with this uid owns this one.
    fn is_owned_by(&self, uid: &str) -> bool;

    /// The reference to the one owner that controls this object.
    fn controller(&self) -> Option<&OwnerReference>;
}

impl<K: Resource> Owned for K {
    fn controlled_by<O>(mut self, owner: &O) -> Result<Self>
    where
        O: Resource<DynamicType = ()>,
    {
        let mut reference = reference_to(owner, &self)?;
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
        put(&mut self, reference);
        Ok(self)
    }

    fn also_owned_by<O>(mut self, owner: &O) -> Result<Self>
    where
        O: Resource<DynamicType = ()>,
    {
        let reference = reference_to(owner, &self)?;
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

fn reference_to<O: Resource<DynamicType = ()>>(owner: &O, owned: &impl Resource) -> Result<OwnerReference> {
    let named = || format!("{} {}", O::kind(&()), owner.name_any());
    match (owner.namespace(), owned.namespace()) {
        (Some(of_owner), of_owned) if of_owned.as_ref() != Some(&of_owner) => {
            return Err(Error::setup(format!(
                "{} lies in namespace {of_owner} and can only own what lies there, not {:?}",
                named(),
                of_owned.unwrap_or_default()
            )));
        }
        _ => {}
    }
    owner.owner_ref(&()).ok_or_else(|| {
        Error::setup(format!("{} has no uid and so cannot own anything; use what was read", named()))
    })
}

/// Adds a reference, or replaces the one to the same object.
fn put(object: &mut impl Resource, reference: OwnerReference) {
    let references = object.owner_references_mut();
    match references.iter_mut().find(|known| known.uid == reference.uid) {
        Some(known) => *known = reference,
        None => references.push(reference),
    }
}
