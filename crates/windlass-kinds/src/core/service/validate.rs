//! Validation of services.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_schema::FieldError;
use windlass_wire::names;

use super::{Services, is_external, needs_health_check, warnings};
use crate::addresses::{address_range, address_unless_known, endpoint_address};
use crate::field::{self, Errors, Field};
use crate::kind::{Validate, WriteContext};
use crate::networking::ingress::validate::validate_point;
use crate::pod_template::probe::port_number_or_name;
use crate::subresource::Subresource;

impl Validate for Services {
    fn validate_create(&self, _cx: &WriteContext<'_>, object: &Value) -> Vec<FieldError> {
        validate(object, None)
    }

    fn validate_update(&self, cx: &WriteContext<'_>, object: &Value, old: &Value) -> Vec<FieldError> {
        if *cx.subresource == Subresource::Status {
            return validate_status(object, old);
        }
        let mut errors = validate_change(object, old);
        errors.extend(validate(object, Some(old)));
        errors
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, _old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !cx.subresource.is_empty() {
            return warnings;
        }
        warnings.extend(warnings::about(object));
        warnings
    }
}

const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const ONLY_BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";

/// Returns whether a service has no cluster address by choice.
pub(super) fn is_headless(spec: &Field<'_>) -> bool {
    let addresses = spec.at("clusterIPs");
    addresses.len() == 1 && addresses.index(0).text() == "None"
}

/// Validates a service, in the order of kube-apiserver. `old` is the stored service.
pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    field::validate("", object, |service, errors| {
        let old = service.with(old.unwrap_or(&Value::Null));
        let (spec, before) = (service.at("spec"), old.at("spec"));
        validate_topology(&service.at_path("metadata/annotations"), errors);
        validate_kind(&spec, errors);
        validate_ports(&spec.at("ports"), errors);
        if let Some(labels) = spec.at("selector").map() {
            errors.extend(spec.at("selector").moved(names::validate_labels(labels, "")));
        }
        validate_affinity(&spec, errors);
        check_addresses(&spec, &before, errors);
        let known: BTreeSet<&str> = before.at("externalIPs").items().map(|ip| ip.text()).collect();
        for address in spec.at("externalIPs").items() {
            let count = errors.len();
            address_unless_known(&address, &known, errors);
            if errors.len() == count {
                endpoint_address(&address, errors);
            }
        }
        let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        spec.at("type").require_one_of(&kinds, errors);
        validate_unique_ports(&spec.at("ports"), spec.at("type").text(), errors);
        validate_source_ranges(service, &old, errors);
        validate_balancer(&spec, errors);
        validate_policies(&spec, errors);
    })
}

fn validate_topology(annotations: &Field<'_>, errors: &mut Errors) {
    let (mode, hints) = (annotations.key(TOPOLOGY_MODE), annotations.key(TOPOLOGY_HINTS));
    if mode.is_set() && hints.is_set() && mode.text() != hints.text() {
        errors
            .push(mode.invalid(format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified")));
    }
}

/// Validates what each type of service has and does not have.
fn validate_kind(spec: &Field<'_>, errors: &mut Errors) {
    let kind = spec.at("type").text();
    let headless = is_headless(spec);
    if spec.at("ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(spec.at("ports").required(""));
    }
    if headless && ["LoadBalancer", "NodePort"].contains(&kind) {
        let first = spec.at("clusterIPs").index(0);
        errors.push(first.invalid(format!("may not be set to 'None' for {kind} services")));
    }
    if kind != "ExternalName" {
        return;
    }
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"].map(|field| spec.at(field)) {
        if !field.is_empty() {
            errors.push(field.forbidden("may not be set for ExternalName services"));
        }
    }
    let name = spec.at("externalName");
    let plain = name.text().strip_suffix('.').unwrap_or(name.text());
    if plain.is_empty() {
        errors.push(name.required(""));
    } else {
        let problems = names::dns_1123_subdomain(plain).into_iter();
        errors.extend(problems.map(|problem| name.invalid_as(plain, problem)));
    }
}

fn validate_ports(ports: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        validate_port(&port, ports.len() > 1, &mut seen, errors);
    }
}

/// Checks that all node ports, and all ports of the service, are different.
fn validate_unique_ports(ports: &Field<'_>, kind: &str, errors: &mut Errors) {
    let (mut on_nodes, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for on_node in ports.items().map(|port| port.at("nodePort")) {
        if on_node.int() != 0 && kind == "ClusterIP" {
            errors.push(on_node.forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    for port in ports.items() {
        let on_node = port.at("nodePort");
        if on_node.int() != 0 && !on_nodes.insert((port.at("protocol").text(), on_node.int())) {
            errors.push(on_node.duplicate());
        }
    }
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol").text(), port.at("port").int());
        if !numbers.insert((protocol, number)) {
            let protocol = windlass_schema::go_quote(protocol);
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{protocol},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(port.duplicate_as(number).showing(shown));
        }
    }
}

fn validate_port<'a>(
    port: &Field<'a>,
    is_one_of_many: bool,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    let (name, number) = (port.at("name"), port.at("port"));
    if !name.text().is_empty() {
        name.check(names::dns_1123_label, errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    } else if is_one_of_many {
        errors.push(name.required(""));
    }
    let problems = names::port_number(number.int()).into_iter();
    errors.extend(problems.map(|problem| number.invalid_as(number.int(), problem)));
    port.at("protocol").require_one_of(&["SCTP", "TCP", "UDP"], errors);
    port_number_or_name(&port.at("targetPort"), errors);
    let application = port.at("appProtocol");
    if application.is_set() {
        application.check(names::label_key, errors);
    }
}

fn validate_affinity(spec: &Field<'_>, errors: &mut Errors) {
    let (affinity, config) = (spec.at("sessionAffinity"), spec.at("sessionAffinityConfig"));
    affinity.require_one_of(&["ClientIP", "None"], errors);
    if affinity.text() == "None" && config.is_set() {
        errors.push(config.forbidden("must not be set when session affinity is None"));
    }
    if affinity.text() != "ClientIP" {
        return;
    }
    let timeout = config.at_path("clientIP/timeoutSeconds");
    let parts = [config.clone(), config.at("clientIP"), timeout.clone()];
    if let Some(missing) = parts.iter().find(|part| !part.is_set()) {
        errors.push(missing.required("when session affinity type is ClientIP"));
    } else if !(1..=86_400).contains(&timeout.int()) {
        errors.push(timeout.invalid("must be greater than 0 and less than 86400"));
    }
}

/// Validates the cluster addresses and their families. Runs before allocation, too.
pub(super) fn validate_addresses(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    field::validate("spec", spec, |spec, errors| {
        check_addresses(spec, &spec.with(old.unwrap_or(&Value::Null)), errors);
    })
}

fn check_addresses(spec: &Field<'_>, before: &Field<'_>, errors: &mut Errors) {
    if spec.at("type").text() == "ExternalName" {
        return;
    }
    let (addresses, families) = (spec.at("clusterIPs"), spec.at("ipFamilies"));
    check_first(spec.at("clusterIP").text(), &addresses, errors);
    let mut seen = BTreeSet::new();
    for family in families.items() {
        family.one_of(&["IPv4", "IPv6"], errors);
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
    spec.at("ipFamilyPolicy").one_of(&policies, errors);
    let known: BTreeSet<&str> = before.at("clusterIPs").items().map(|ip| ip.text()).collect();
    let mut is_broken = false;
    for (index, address) in addresses.items().enumerate() {
        let count = errors.len();
        if index > 0 || address.text() != "None" {
            address_unless_known(&address, &known, errors);
        } else if addresses.len() > 1 {
            errors.push(addresses.invalid("'None' must be the first and only value"));
        }
        is_broken |= errors.len() > count;
    }
    if addresses.len() > 2 {
        errors.push(addresses.invalid("may only hold up to 2 values"));
    }
    if is_broken {
        return;
    }
    let is_six = |text: &str| text.contains(':');
    let sixes = addresses.items().filter(|address| is_six(address.text())).count();
    if addresses.len() > 1 && (sixes == 0 || sixes == addresses.len()) {
        errors.push(addresses.invalid("may specify no more than one IP for each IP family"));
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in addresses.items().zip(families.items()).enumerate() {
        let expected = family.text();
        if (expected == "IPv4" && is_six(address.text())) || (expected == "IPv6" && !is_six(address.text())) {
            let detail = format!("expected an {expected} value as indicated by `ipFamilies[{index}]`");
            errors.push(address.invalid(detail));
        }
    }
}

/// Checks that `clusterIP` is the first of `clusterIPs`.
fn check_first(address: &str, addresses: &Field<'_>, errors: &mut Errors) {
    if address.is_empty() {
        if !addresses.is_empty() {
            errors.push(addresses.invalid("must be empty when `clusterIP` is not specified"));
        }
    } else if addresses.is_empty() {
        errors.push(addresses.required(""));
    } else if addresses.index(0).text() != address {
        errors.push(addresses.invalid("first value must match `clusterIP`"));
    }
}

fn validate_source_ranges(service: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let spec = service.at("spec");
    let is_balanced = spec.at("type").text() == "LoadBalancer";
    let ranges = spec.at("loadBalancerSourceRanges").at_path_of(&spec.at("LoadBalancerSourceRanges"));
    if !ranges.is_empty() {
        if !is_balanced {
            errors.push(ranges.forbidden(ONLY_BALANCED));
        }
        let known: BTreeSet<&str> =
            old.at_path("spec/loadBalancerSourceRanges").items().map(|range| range.text().trim()).collect();
        for range in ranges.items() {
            // Space around a range was once allowed.
            let trimmed = Value::from(range.text().trim());
            errors.extend(place_errors(&range, &trimmed, &known));
        }
        return;
    }
    let annotation = service.at_path("metadata/annotations").key(SOURCE_RANGES);
    if !annotation.is_set() {
        return;
    }
    if !is_balanced {
        errors.push(annotation.forbidden(ONLY_BALANCED));
    }
    let is_same = old.at_path("metadata/annotations").key(SOURCE_RANGES).value() == annotation.value();
    if !is_same && !annotation.text().trim().is_empty() {
        for range in annotation.text().trim().split(',') {
            errors.extend(place_errors(&annotation, &Value::from(range.trim()), &BTreeSet::new()));
        }
    }
}

fn place_errors(place: &Field<'_>, range: &Value, known: &BTreeSet<&str>) -> Vec<FieldError> {
    let found = field::validate("", range, |range, errors| address_range(range, known, errors));
    place.moved(found).collect()
}

fn validate_balancer(spec: &Field<'_>, errors: &mut Errors) {
    let is_balanced = spec.at("type").text() == "LoadBalancer";
    let (allocates, class) = (spec.at("allocateLoadBalancerNodePorts"), spec.at("loadBalancerClass"));
    if allocates.is_set() && !is_balanced {
        errors.push(allocates.forbidden(ONLY_BALANCED));
    }
    if class.is_set() {
        if is_balanced {
            class.check(names::label_key, errors);
        } else {
            errors.push(class.forbidden(ONLY_BALANCED));
        }
    }
}

fn validate_policies(spec: &Field<'_>, errors: &mut Errors) {
    let Some(fields) = spec.map() else { return };
    let policy = spec.at("externalTrafficPolicy");
    if is_external(fields) {
        policy.require_one_of(&["Cluster", "Local"], errors);
    } else if !policy.text().is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    let port = spec.at("healthCheckNodePort");
    if needs_health_check(fields) {
        if port.int() == 0 {
            errors.push(port.required(""));
        } else {
            port.within(1, 65535, errors);
        }
    } else if port.int() != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(port.invalid(detail));
    }
    spec.at("internalTrafficPolicy").one_of(&["Cluster", "Local"], errors);
    let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let distribution = spec.at("trafficDistribution");
    if distribution.is_set() && !known.contains(&distribution.text()) {
        errors.push(distribution.unsupported_text(distribution.text(), &known));
    }
}

/// Validates the status of a service.
pub(super) fn validate_status(object: &Value, old: &Value) -> Vec<FieldError> {
    field::validate("", object, |service, errors| {
        let points = service.at_path("status/loadBalancer/ingress");
        if !points.is_empty() && service.at_path("spec/type").text() != "LoadBalancer" {
            errors.push(points.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
            return;
        }
        let old = service.with(old).at_path("status/loadBalancer/ingress");
        let known: BTreeSet<&str> = old.items().map(|point| point.at("ip").text()).collect();
        for point in points.items() {
            validate_point(&point, &known, errors);
            let mode = point.at("ipMode");
            match (mode.is_set(), point.at("ip").text().is_empty()) {
                (true, true) => errors.push(mode.forbidden("may not be specified when `ip` is not set")),
                (false, false) => errors.push(mode.required("must be specified when `ip` is set")),
                _ => mode.one_of(&["Proxy", "VIP"], errors),
            }
        }
    })
}

/// Validates that an update keeps the cluster address, the address family, and the fields that load balancers
/// depend on.
pub(super) fn validate_change(object: &Value, old: &Value) -> Vec<FieldError> {
    field::validate("spec", &object["spec"], |spec, errors| {
        let before = spec.with(&old["spec"]);
        let kinds = [spec.at("type").text(), before.at("type").text()];
        if !kinds.contains(&"ExternalName") {
            let headless = [is_headless(spec), is_headless(&before)];
            if headless != [true, true] {
                check_kept(&spec.at("clusterIPs"), &before.at("clusterIPs"), "clusterIP", errors);
            }
            if headless == [false, false] {
                check_kept(&spec.at("ipFamilies"), &before.at("ipFamilies"), "ipFamily", errors);
            }
        }
        let class = spec.at("loadBalancerClass");
        if kinds == ["LoadBalancer", "LoadBalancer"] {
            if class.value() != before.at("loadBalancerClass").value() {
                errors.push(class.invalid("may not change once set"));
            }
            if class.is_set() {
                class.check(names::label_key, errors);
            }
        } else if class.is_set() && kinds[0] != "LoadBalancer" {
            errors.push(class.forbidden(ONLY_BALANCED));
        }
        let checks = [spec.map(), before.map()].iter().all(|spec| spec.is_some_and(needs_health_check));
        let port = spec.at("healthCheckNodePort");
        if checks && port.int() != before.at("healthCheckNodePort").int() {
            errors.push(port.forbidden("field is immutable"));
        }
    })
}

/// Checks that the first value of a list stays, and that values are removed only on demand.
fn check_kept(list: &Field<'_>, old: &Field<'_>, what: &str, errors: &mut Errors) {
    if list.len() == old.len() {
        for (index, before) in old.items().enumerate() {
            if list.index(index).text() != before.text() {
                let place = list.index(if what == "clusterIP" { index } else { 0 });
                errors.push(place.invalid_as(list.value().clone(), "may not change once set"));
            }
        }
        return;
    }
    let first = list.index(0);
    if !old.is_empty() && list.is_empty() {
        errors.push(first.invalid_as(list.value().clone(), format!("primary {what} can not be unset")));
    } else if !old.is_empty() && first.text() != old.index(0).text() {
        errors.push(first.invalid_as(list.value().clone(), "may not change once set"));
    }
}
