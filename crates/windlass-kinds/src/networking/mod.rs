//! Ingresses, network policies, and the addresses of services.

pub(crate) mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("ingressclasses", &ingress_class::KIND),
    ("ingresses", &ingress::KIND),
    ("ipaddresses", &ip_address::KIND),
    ("networkpolicies", &network_policy::KIND),
    ("servicecidrs", &service_cidr::KIND),
];
