//! The macros of generated and derived configurations.

/// Implements the traits of a struct that is a [`Configuration`](crate::__private::Configuration).
#[doc(hidden)]
#[macro_export]
macro_rules! __configuration {
    ($name:ident) => {
        impl $crate::__private::serde::Serialize for $name {
            fn serialize<S: $crate::__private::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::__private::serialize($crate::__private::Member::to_json(self), serializer)
            }
        }

        impl ::core::fmt::Debug for $name {
            #[inline]
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                $crate::__private::debug($crate::__private::Member::to_json(self), f)
            }
        }

        impl ::core::cmp::PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                $crate::__private::equal(
                    $crate::__private::Member::to_json(self),
                    $crate::__private::Member::to_json(other),
                )
            }
        }

        impl $crate::__private::Member for $name {
            fn to_json(&self) -> $crate::__private::serde_json::Result<$crate::__private::serde_json::Value> {
                let mut members = $crate::__private::Members::default();
                $crate::__private::Configuration::members(self, &mut members);
                members.into_json()
            }
        }
    };
    ($name:ident of $type:ty) => {
        $crate::__configuration!($name);

        impl $crate::ApplyField for $type {
            type Configuration = $name;
        }
    };
}

/// Implements the traits of a configuration of a kind. The configuration has `metadata`.
#[doc(hidden)]
#[macro_export]
macro_rules! __kind {
    ($name:ident of $object:ty) => {
        impl $crate::__private::kube_core::Resource for $name {
            type DynamicType = ();
            type Scope = <$object as $crate::__private::kube_core::Resource>::Scope;

            #[inline]
            fn kind(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$object as $crate::__private::kube_core::Resource>::kind(&())
            }

            #[inline]
            fn group(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$object as $crate::__private::kube_core::Resource>::group(&())
            }

            #[inline]
            fn version(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$object as $crate::__private::kube_core::Resource>::version(&())
            }

            #[inline]
            fn plural(_: &()) -> ::std::borrow::Cow<'_, str> {
                <$object as $crate::__private::kube_core::Resource>::plural(&())
            }

            #[inline]
            fn meta(&self) -> &$crate::__private::kube_core::ObjectMeta {
                &self.metadata
            }

            #[inline]
            fn meta_mut(&mut self) -> &mut $crate::__private::kube_core::ObjectMeta {
                &mut self.metadata
            }
        }

        impl $crate::ApplyConfiguration for $name {
            type Object = $object;
        }
    };
}
