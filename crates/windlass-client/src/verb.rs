//! The verbs that a kind has, as traits.
//!
//! A [`TypedClient`](crate::TypedClient) has a method for each verb of its verb set, and no other: a call of
//! a missing method is a compile error with the name of the verb. The sets correspond to Go's `+genclient`
//! and the options of `+genclient`:
//!
//! | Go | here |
//! |---|---|
//! | `+genclient` | [`AllVerbs`] |
//! | `+genclient:noStatus` | [`NoStatus`] |
//! | `+genclient:readonly` | [`ReadOnly`] |
//! | `+genclient:noVerbs` | [`NoVerbs`] |
//! | `+genclient:onlyVerbs=`, `skipVerbs=` | a set made with [`verbs!`](crate::verbs) |

macro_rules! traits {
    ($($(#[$doc:meta])* $name:ident: $message:literal;)*) => {$(
        $(#[$doc])*
        #[diagnostic::on_unimplemented(
            message = $message,
            note = "the verbs of a kind are those that its resource serves and that its client was generated with"
        )]
        pub trait $name {}
    )*};
}

traits! {
    /// The verb `create`.
    Create: "this kind has no verb `create`";
    /// The verb `update`.
    Update: "this kind has no verb `update`";
    /// The verb `update` of the subresource `status`.
    UpdateStatus: "this kind has no verb `updateStatus`";
    /// The verb `delete`.
    Delete: "this kind has no verb `delete`";
    /// The verb `deletecollection`.
    DeleteCollection: "this kind has no verb `deleteCollection`";
    /// The verb `get`.
    Get: "this kind has no verb `get`";
    /// The verb `list`.
    List: "this kind has no verb `list`";
    /// The verb `watch`.
    Watch: "this kind has no verb `watch`";
    /// The verb `patch`.
    Patch: "this kind has no verb `patch`";
    /// Server-side apply, a kind of `patch`.
    Apply: "this kind has no verb `apply`";
    /// Server-side apply of the subresource `status`.
    ApplyStatus: "this kind has no verb `applyStatus`";
    /// The verb `get` of the subresource `scale`.
    GetScale: "this kind has no verb `getScale`";
    /// The verb `update` of the subresource `scale`.
    UpdateScale: "this kind has no verb `updateScale`";
}

/// Makes a verb set: a type that implements the traits of the verbs.
///
/// ```
/// windlass_client::verbs! {
///     /// The verbs of a kind that is created and read, and never changed.
///     pub CreateAndRead: Create, Get, List, Watch
/// }
/// ```
#[macro_export]
macro_rules! verbs {
    ($(#[$meta:meta])* $visibility:vis $name:ident: $($verb:ident),* $(,)?) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        $visibility enum $name {}
        $(impl $crate::verb::$verb for $name {})*
    };
}

verbs! {
    /// Every verb of a kind with a status.
    pub AllVerbs: Create, Update, UpdateStatus, Delete, DeleteCollection, Get, List, Watch, Patch, Apply, ApplyStatus
}

verbs! {
    /// Every verb of a kind without the subresource `status`.
    pub NoStatus: Create, Update, Delete, DeleteCollection, Get, List, Watch, Patch, Apply
}

verbs! {
    /// The verbs that read.
    pub ReadOnly: Get, List, Watch
}

verbs! {
    /// No verb.
    pub NoVerbs:
}
