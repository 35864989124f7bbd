//! The macros of generated clients. A generated module has a row for each kind; `windlass generate` and
//! `cargo xtask codegen` write the rows.
//!
//! The methods are inline, so that only a crate that calls them compiles the code for the kind.

/// Defines the clients of a group and version, with the verbs of each kind.
#[doc(hidden)]
#[macro_export]
macro_rules! clients {
    (
        $clients:ident of $api_version:literal:
        $($method:ident $scope:tt -> $interface:ident of $kind:ident, $verbs:ident: $($verb:ident),*;)*
    ) => {
        #[doc = concat!("The clients of `", $api_version, "`. Cheap to clone.")]
        #[derive(Clone)]
        pub struct $clients {
            client: $crate::Client,
        }

        impl $clients {
            /// Makes the clients of this group and version.
            pub fn new(client: $crate::Client) -> Self {
                Self { client }
            }

            $($crate::client! { $method $scope -> $interface of $kind })*
        }

        impl ::std::fmt::Debug for $clients {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($clients)).finish_non_exhaustive()
            }
        }

        $(
            #[doc = concat!("The client of `", stringify!($kind), "` objects. It has the verbs of [`", stringify!($verbs), "`].")]
            pub type $interface = $crate::TypedClient<$kind, $verbs>;

            $crate::verbs! {
                #[doc = concat!("The verbs of `", stringify!($kind), "`.")]
                pub $verbs: $($verb),*
            }
        )*
    };
}

/// Defines the method that returns the client of a kind.
#[doc(hidden)]
#[macro_export]
macro_rules! client {
    ($method:ident(namespace) -> $interface:ident of $kind:ident) => {
        #[doc = concat!("Returns the client of the `", stringify!($kind), "` objects in a namespace. An empty namespace means all.")]
        #[inline]
        pub fn $method(&self, namespace: &str) -> $interface {
            $crate::TypedClient::namespaced(self.client.clone(), namespace)
        }
    };
    ($method:ident() -> $interface:ident of $kind:ident) => {
        #[doc = concat!("Returns the client of the `", stringify!($kind), "` objects, which have no namespace.")]
        #[inline]
        pub fn $method(&self) -> $interface {
            $crate::TypedClient::cluster(self.client.clone())
        }
    };
}

/// Defines the informers of a group and version.
#[doc(hidden)]
#[macro_export]
macro_rules! informers {
    (
        $api_version:literal:
        $($method:ident() -> $a:ident $informer:ident of $kind:ident, $lister:ident, $objects:literal;)*
    ) => {
        #[doc = concat!("The informers of `", $api_version, "`.")]
        #[derive(Clone, Debug)]
        pub struct Interface {
            factory: $crate::SharedInformerFactory,
        }

        impl Interface {
            pub(crate) fn new(factory: $crate::SharedInformerFactory) -> Self {
                Self { factory }
            }

            $(
                #[doc = concat!(
                    "Returns the informer and the lister of `", stringify!($kind), "` objects: ", stringify!($a), " `",
                    stringify!($informer), "`.",
                )]
                #[inline]
                pub fn $method(&self) -> $informer {
                    $informer { factory: self.factory.clone() }
                }
            )*
        }

        $(
            #[doc = concat!(
                "The informer and the lister of ", $objects, ". Nothing is watched before one of them is asked for.",
            )]
            #[derive(Clone, Debug)]
            pub struct $informer {
                factory: $crate::SharedInformerFactory,
            }

            impl $informer {
                /// Returns the informer. All users of the factory share the informer.
                ///
                /// # Errors
                /// The factory has been shut down, or the watch is shared with options that conflict.
                #[inline]
                pub fn informer(&self) -> $crate::Result<$crate::SharedInformer<$kind>> {
                    Ok(self.factory.informer_for($crate::kind::<$kind>())?)
                }

                /// Returns a lister of the informer's cache.
                ///
                /// # Errors
                /// As [`informer`](Self::informer).
                #[inline]
                pub fn lister(&self) -> $crate::Result<$lister> {
                    Ok($lister::new(self.informer()?.lister()))
                }
            }
        )*
    };
}

/// Defines the listers of a group and version.
#[doc(hidden)]
#[macro_export]
macro_rules! listers {
    ($($a:ident $lister:ident of $kind:ident: $method:ident $scope:tt;)*) => {$(
        #[doc = concat!("Reads `", stringify!($kind), "` objects from the cache of an informer. Cheap to clone.")]
        #[derive(Clone, Debug)]
        pub struct $lister {
            lister: $crate::Lister<$kind>,
        }

        impl $lister {
            #[doc = concat!("Makes ", stringify!($a), " `", stringify!($kind), "` lister of a cache.")]
            #[inline]
            pub fn new(lister: $crate::Lister<$kind>) -> Self {
                Self { lister }
            }

            $crate::lister! { $method $scope of $kind }
        }
    )*};
}

/// Defines the methods of a lister that depend on the scope of the kind.
#[doc(hidden)]
#[macro_export]
macro_rules! lister {
    ($method:ident(namespace) of $kind:ident) => {
        /// Returns the objects with matching labels, of all namespaces.
        #[inline]
        pub fn list(&self, selector: &$crate::Selector) -> $crate::Result<$crate::Objects<$kind>> {
            self.lister.list(selector)
        }

        /// Returns a lister of a namespace, with `list` and `get`.
        #[inline]
        pub fn $method(&self, namespace: &str) -> $crate::NamespacedLister<$kind> {
            $crate::NamespacedLister::new(&self.lister, namespace)
        }
    };
    (get(name) of $kind:ident) => {
        /// Returns the objects with matching labels.
        #[inline]
        pub fn list(&self, selector: &$crate::Selector) -> $crate::Result<$crate::Objects<$kind>> {
            self.lister.list(selector)
        }

        /// Returns an object, or `None` where Go returns a "not found" error.
        #[inline]
        pub fn get(&self, name: &str) -> $crate::Result<::std::option::Option<::std::sync::Arc<$kind>>> {
            self.lister.get(&$crate::ObjectKey::cluster(name))
        }
    };
}

/// Defines the kinds and resources of a group and version.
#[doc(hidden)]
#[macro_export]
macro_rules! known_types {
    (
        $group:literal $version:literal:
        $($constant:ident $kind:literal: $resource:literal $singular:literal namespaced $namespaced:literal;)*
    ) => {
        $(
            #[doc = concat!("The kind `", $kind, "`, which the resource `", $resource, "` serves.")]
            pub const $constant: $crate::scheme::KnownType = $crate::scheme::KnownType {
                group: $group,
                version: $version,
                kind: $kind,
                resource: $resource,
                singular: $singular,
                namespaced: $namespaced,
            };
        )*

        /// Returns the group and the version: `SchemeGroupVersion` in Go.
        pub fn scheme_group_version() -> $crate::scheme::GroupVersion {
            $crate::scheme::GroupVersion::gv($group, $version)
        }
    };
}
