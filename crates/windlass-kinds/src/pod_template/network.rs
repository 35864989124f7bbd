//! Validation of the names and addresses of a pod.

use windlass_wire::names;

use crate::addresses::address;
use crate::field::{Errors, Field};

/// Validates the settings for the resolver of host names.
pub(crate) fn validate_dns(spec: &Field<'_>, errors: &mut Errors) {
    let (config, policy) = (spec.at("dnsConfig"), spec.at("dnsPolicy"));
    let servers = config.at("nameservers");
    if policy.text() == "None" {
        if !config.is_set() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(servers.required(detail));
            return;
        }
    }
    if servers.len() > 3 {
        errors.push(servers.invalid("must not have more than 3 nameservers"));
    }
    for server in servers.items() {
        address(&server, errors);
    }
    let searches = config.at("searches");
    if searches.len() > 32 {
        errors.push(searches.invalid("must not have more than 32 search paths"));
    }
    let total: usize = searches.items().map(|search| search.text().len() + 1).sum();
    if total.saturating_sub(1) > 2048 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(searches.invalid(detail));
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        let problems = names::subdomain_with_underscores(name).into_iter();
        errors.extend(problems.map(|problem| search.invalid_as(name, problem)));
    }
    for option in config.at("options").items() {
        if option.at("name").text().is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
}

/// Validates lines of the hosts file.
pub(crate) fn validate_host_aliases(aliases: &Field<'_>, errors: &mut Errors) {
    for alias in aliases.items() {
        address(&alias.at("ip"), errors);
        for name in alias.at("hostnames").items() {
            name.check(names::dns_1123_subdomain, errors);
        }
    }
}

/// Validates the ports of a pod in the network of its node. A template may leave out the ports of the node.
pub(crate) fn validate_host_ports(spec: &Field<'_>, is_pod: bool, errors: &mut Errors) {
    if !spec.at("hostNetwork").flag() {
        return;
    }
    for port in spec.at("containers").items().flat_map(|container| container.at("ports").items()) {
        let (on_host, own) = (port.at("hostPort"), port.at("containerPort").int());
        if (is_pod || on_host.int() != 0) && on_host.int() != own {
            let detail = "must match `containerPort` when `hostNetwork` is true";
            errors.push(on_host.invalid_as(on_host.int(), detail));
        }
    }
}

/// Validates a host name that is not that of the pod.
pub(crate) fn validate_host_name(spec: &Field<'_>, errors: &mut Errors) {
    let name = spec.at("hostnameOverride");
    if !name.is_set() {
        return;
    }
    if spec.at("setHostnameAsFQDN").flag() {
        errors.push(name.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.at("hostNetwork").flag() {
        errors.push(name.forbidden("may not be specified when hostNetwork is true"));
    }
    if name.text().len() > 64 {
        errors.push(name.too_long(64));
    }
    name.check(names::dns_1123_subdomain, errors);
}
