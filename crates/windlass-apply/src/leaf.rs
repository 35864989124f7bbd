//! Values that a configuration sends unchanged, and the conversions into such values.

use k8s_openapi::{
    ByteString,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, Time},
        util::intstr::IntOrString,
    },
    jiff::Timestamp,
};

/// A conversion into a value of an API type that has no `From`: a quantity is given as text, a port as a number or a name.
pub trait IntoLeaf<T> {
    /// Converts the value.
    fn into_leaf(self) -> T;
}

impl<T> IntoLeaf<T> for T {
    fn into_leaf(self) -> T {
        self
    }
}

macro_rules! into_leaf {
    ($($from:ty => $to:ty, $value:ident => $leaf:expr;)*) => {$(
        impl IntoLeaf<$to> for $from {
            fn into_leaf(self) -> $to {
                let $value = self;
                $leaf
            }
        }
    )*};
}

into_leaf! {
    &str => Quantity, text => Quantity(text.to_owned());
    String => Quantity, text => Quantity(text);
    i32 => IntOrString, number => IntOrString::Int(number);
    &str => IntOrString, text => IntOrString::String(text.to_owned());
    String => IntOrString, text => IntOrString::String(text);
    &str => ByteString, text => ByteString(text.as_bytes().to_vec());
    String => ByteString, text => ByteString(text.into_bytes());
    Vec<u8> => ByteString, bytes => ByteString(bytes);
    &[u8] => ByteString, bytes => ByteString(bytes.to_vec());
    Timestamp => Time, time => Time(time);
    Timestamp => MicroTime, time => MicroTime(time);
}
