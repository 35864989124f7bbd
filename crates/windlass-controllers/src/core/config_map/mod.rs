//! The ConfigMap with the certificate of the API server's authority.

mod root_ca;

pub(crate) use self::root_ca::controller as root_ca;
