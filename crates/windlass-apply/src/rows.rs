//! The macros of the generated modules. A generated module has a row for each field of a type of Kubernetes:
//!
//! ```text
//! part! { deployment_spec() -> DeploymentSpecApplyConfiguration of api::DeploymentSpec, spec of [DeploymentApplyConfiguration] {
//!     replicas(i32) "replicas": "`i32`";
//! } }
//! ```
//!
//! A row names the Rust field with its type, the field in JSON, and a description. The row expands to the
//! field, the setter, and the serialized member. Each macro is a flat repetition over the rows of a type,
//! because recursion makes a macro slow.
#![allow(unused_macros, reason = "a feature without kinds or templates uses some of the macros")]

/// Defines the configuration of a kind and the function that makes the configuration.
macro_rules! kind {
    ($function:ident $arguments:tt -> $name:ident of $api:ident::$object:ident $rows:tt) => {
        crate::__configuration!($name of $api::$object);
        crate::__kind!($name of $api::$object);
        fields! { $name by $function of $api::$object [metadata] $rows }
        kind_function! { $function $arguments -> $name of $object }
        setters! { $name [] $rows }
    };
}

/// Defines the configuration of a part of a kind and the function that makes the configuration. The owners of a spec get the setters
/// of the spec, too, except for rows that end with `own`.
macro_rules! part {
    ($function:ident $keys:tt -> $name:ident of $api:ident::$object:ident $rows:tt) => {
        crate::__configuration!($name of $api::$object);
        fields! { $name by $function of $api::$object [] $rows }
        part_function! { $function $keys -> $name of $object }
        setters! { $name [] $rows }
    };
    (
        $function:ident $keys:tt -> $name:ident of $api:ident::$object:ident,
        spec of [$($owner:ident),+] $rows:tt
    ) => {
        part! { $function $keys -> $name of $api::$object $rows }
        $(setters! { $owner [spec] $rows })+
    };
}

/// Defines the struct of a configuration and the members that are sent.
macro_rules! fields {
    (
        $name:ident by $function:ident of $api:ident::$object:ident [$($metadata:ident)?]
        { $($field:ident($($type:tt)+) $json:literal: $about:literal $(, $own:ident)?;)* }
    ) => {
        #[doc = concat!("The fields to apply of a `", stringify!($object), "`. [`", stringify!($function), "`] makes an empty configuration.")]
        #[derive(Clone, Default)]
        #[must_use]
        pub struct $name {
            $(
                /// Name, namespace, labels and other metadata.
                pub $metadata: ::kube_core::ObjectMeta,
            )?
            $(
                #[doc = concat!("`", $json, "`: ", $about, ".")]
                pub $field: Option<$($type)+>,
            )*
        }

        impl crate::members::Configuration for $name {
            #[allow(unused_variables)]
            fn members(&self, to: &mut crate::members::Members) {
                $(to.set_object(
                    <$api::$object as ::k8s_openapi::Resource>::API_VERSION,
                    <$api::$object as ::k8s_openapi::Resource>::KIND,
                    &self.$metadata,
                );)?
                $(to.set($json, &self.$field);)*
            }
        }
    };
}

/// Defines the function that makes the configuration of a kind.
macro_rules! kind_function {
    ($function:ident(name, namespace) -> $name:ident of $object:ident) => {
        #[doc = concat!("Makes a configuration of the `", stringify!($object), "` with this name and namespace.")]
        pub fn $function(name: impl Into<String>, namespace: impl Into<String>) -> $name {
            let metadata = ::kube_core::ObjectMeta {
                name: Some(name.into()),
                namespace: Some(namespace.into()),
                ..Default::default()
            };
            $name { metadata, ..Default::default() }
        }
    };
    ($function:ident(name) -> $name:ident of $object:ident) => {
        #[doc = concat!("Makes a configuration of the `", stringify!($object), "` with this name.")]
        pub fn $function(name: impl Into<String>) -> $name {
            let metadata = ::kube_core::ObjectMeta { name: Some(name.into()), ..Default::default() };
            $name { metadata, ..Default::default() }
        }
    };
}

/// Defines the function that makes the configuration of a part of a kind.
macro_rules! part_function {
    ($function:ident() -> $name:ident of $object:ident) => {
        #[doc = concat!("Makes an empty configuration of a `", stringify!($object), "`.")]
        #[inline]
        pub fn $function() -> $name {
            Default::default()
        }
    };
    ($function:ident($($key:ident: $argument:ty),+) -> $name:ident of $object:ident) => {
        #[doc = concat!("Makes a configuration with this key of a `", stringify!($object), "`.")]
        pub fn $function($($key: $argument),+) -> $name {
            <$name as Default>::default()$(.$key($key))+
        }
    };
}

/// Defines the setters of a configuration: for the configuration's fields, or for the fields of the spec.
macro_rules! setters {
    (
        $name:ident $place:tt
        { $($field:ident $type:tt $json:literal: $about:literal $(, $own:ident)?;)* }
    ) => {
        impl $name {
            $(setter! { $place $field $type $json $about $($own)? })*
        }
    };
}

/// Defines the setter of a field by the type of the field.
macro_rules! setter {
    ([spec] $field:ident $type:tt $json:literal $about:literal own) => {};
    ($place:tt $field:ident (String) $($doc:tt)+) => {
        set! { $place $field (impl Into<String>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (Value) $($doc:tt)+) => {
        set! { $place $field (impl Into<Value>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (ByteString) $($doc:tt)+) => {
        set! { $place $field (impl crate::IntoLeaf<ByteString>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (IntOrString) $($doc:tt)+) => {
        set! { $place $field (impl crate::IntoLeaf<IntOrString>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (MicroTime) $($doc:tt)+) => {
        set! { $place $field (impl crate::IntoLeaf<MicroTime>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (Quantity) $($doc:tt)+) => {
        set! { $place $field (impl crate::IntoLeaf<Quantity>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (Time) $($doc:tt)+) => {
        set! { $place $field (impl crate::IntoLeaf<Time>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (Box<$part:ty>) $($doc:tt)+) => {
        set! { $place $field ($part) (Box::new) $($doc)+ }
    };
    ($place:tt $field:ident (Vec<String>) $($doc:tt)+) => {
        add! { $place $field (impl Into<String>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (Vec<Value>) $($doc:tt)+) => {
        add! { $place $field (impl Into<Value>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (Vec<Quantity>) $($doc:tt)+) => {
        add! { $place $field (impl crate::IntoLeaf<Quantity>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (Vec<$item:ty>) $($doc:tt)+) => {
        add! { $place $field ($item) () $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, String>) $($doc:tt)+) => {
        put! { $place $field (impl Into<String>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, Value>) $($doc:tt)+) => {
        put! { $place $field (impl Into<Value>) (Into::into) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, ByteString>) $($doc:tt)+) => {
        put! { $place $field (impl crate::IntoLeaf<ByteString>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, Quantity>) $($doc:tt)+) => {
        put! { $place $field (impl crate::IntoLeaf<Quantity>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, Time>) $($doc:tt)+) => {
        put! { $place $field (impl crate::IntoLeaf<Time>) (crate::IntoLeaf::into_leaf) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, Vec<String>>) $($doc:tt)+) => {
        put! { $place $field (impl IntoIterator<Item = impl Into<String>>) (crate::members::texts) $($doc)+ }
    };
    ($place:tt $field:ident (BTreeMap<String, $item:ty>) $($doc:tt)+) => {
        put! { $place $field ($item) () $($doc)+ }
    };
    ($place:tt $field:ident ($type:ty) $($doc:tt)+) => {
        set! { $place $field ($type) () $($doc)+ }
    };
}

/// Defines a setter that replaces the value.
macro_rules! set {
    (
        [$($spec:ident)?] $field:ident ($($argument:tt)+) ($($convert:path)?)
        $json:literal $about:literal $(own)?
    ) => {
        #[doc = concat!("Sets `", $(stringify!($spec), ".",)? $json, "`: ", $about, ".")]
        #[inline]
        pub fn $field(mut self, value: $($argument)+) -> Self {
            self.$($spec.get_or_insert_default().)?$field = Some($($convert)?(value));
            self
        }
    };
}

/// Defines a setter that adds to a list.
macro_rules! add {
    (
        [$($spec:ident)?] $field:ident ($($argument:tt)+) ($($convert:path)?)
        $json:literal $about:literal $(own)?
    ) => {
        #[doc = concat!("Adds to `", $(stringify!($spec), ".",)? $json, "`: ", $about, ".")]
        #[inline]
        pub fn $field(mut self, value: impl IntoIterator<Item = $($argument)+>) -> Self {
            let list = self.$($spec.get_or_insert_default().)?$field.get_or_insert_default();
            list.extend(value$(.into_iter().map($convert))?);
            self
        }
    };
}

/// Defines a setter that adds to a map.
macro_rules! put {
    (
        [$($spec:ident)?] $field:ident ($($argument:tt)+) ($($convert:path)?)
        $json:literal $about:literal $(own)?
    ) => {
        #[doc = concat!("Adds to `", $(stringify!($spec), ".",)? $json, "`: ", $about, ".")]
        #[inline]
        pub fn $field(mut self, value: impl IntoIterator<Item = (impl Into<String>, $($argument)+)>) -> Self {
            let map = self.$($spec.get_or_insert_default().)?$field.get_or_insert_default();
            map.extend(value.into_iter().map(|(key, item)| (key.into(), $($convert)?(item))));
            self
        }
    };
}

/// Adds setters of metadata to the configuration of a template.
macro_rules! template_metadata {
    ($name:ident) => {
        impl $name {
            /// Adds a label to the template.
            pub fn label(self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.with_labels([(key, value)])
            }

            /// Adds labels to the template.
            pub fn with_labels(
                mut self,
                labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
            ) -> Self {
                let known = self.metadata.get_or_insert_default().labels.get_or_insert_default();
                known.extend(labels.into_iter().map(|(key, value)| (key.into(), value.into())));
                self
            }

            /// Adds an annotation to the template.
            pub fn annotation(self, key: impl Into<String>, value: impl Into<String>) -> Self {
                self.with_annotations([(key, value)])
            }

            /// Adds annotations to the template.
            pub fn with_annotations(
                mut self,
                annotations: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
            ) -> Self {
                let known = self.metadata.get_or_insert_default().annotations.get_or_insert_default();
                known.extend(annotations.into_iter().map(|(key, value)| (key.into(), value.into())));
                self
            }
        }
    };
}
