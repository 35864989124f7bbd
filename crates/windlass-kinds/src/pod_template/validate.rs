//! Validation of the spec of a pod or pod template.

use std::collections::BTreeSet;

use windlass_wire::names;

use super::container::{self, Pod};
use super::{
    annotations, environment, ephemeral, network, operating_system, resources, scheduling, security, volumes,
};
use crate::field::{Errors, Field};

/// Validates the spec of a pod named `name`, or of a template, which has no name.
pub(crate) fn validate_spec(spec: &Field<'_>, name: Option<&str>, errors: &mut Errors) {
    let period = spec.at("terminationGracePeriodSeconds");
    if !period.is_set() {
        errors.push(period.required(""));
    }
    let volumes = volumes::validate_volumes(spec, name.unwrap_or_default(), errors);
    let claims = spec.at("resourceClaims");
    validate_claims(&claims, errors);
    let claims = claims.items().map(|claim| claim.at("name").text()).filter(|name| !name.is_empty());
    let pod = Pod { spec: spec.clone(), volumes, claims: claims.collect() };
    container::validate_containers(&pod, errors);
    container::validate_init_containers(&pod, errors);
    ephemeral::validate_containers(&pod, errors);
    resources::validate_of_pod(spec, errors);
    network::validate_host_ports(spec, name.is_some(), errors);
    spec.at("restartPolicy").require_one_of(&["Always", "OnFailure", "Never"], errors);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    spec.at("dnsPolicy").require_one_of(&policies, errors);
    if let Some(labels) = spec.at("nodeSelector").map() {
        errors.extend(spec.at("nodeSelector").moved(names::validate_labels(labels, "")));
    }
    security::validate_of_pod(spec, errors);
    scheduling::validate_affinity(&spec.at("affinity"), errors);
    network::validate_dns(spec, errors);
    validate_gates(spec, errors);
    scheduling::validate_spread(&spec.at("topologySpreadConstraints"), errors);
    operating_system::validate_host_process(spec, errors);
    operating_system::validate_users(spec, errors);
    network::validate_host_name(spec, errors);
    validate_names(spec, errors);
    scheduling::validate_tolerations(&spec.at("tolerations"), errors);
    network::validate_host_aliases(&spec.at("hostAliases"), errors);
    let policy = spec.at("preemptionPolicy");
    if policy.is_set() {
        policy.require_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
    resources::validate_overhead(&spec.at("overhead"), errors);
    operating_system::validate(spec, errors);
    environment::validate_file_volumes(spec, errors);
}

/// Validates the names of other objects, the deadline, and the names that the pod has in its network.
fn validate_names(spec: &Field<'_>, errors: &mut Errors) {
    for name in ["serviceAccountName", "nodeName"] {
        spec.at(name).check_if_any(names::dns_1123_subdomain, errors);
    }
    spec.at("activeDeadlineSeconds").within(1, i64::from(i32::MAX), errors);
    for name in ["hostname", "subdomain"] {
        spec.at(name).check_if_any(names::dns_1123_label, errors);
    }
    spec.at("priorityClassName").check_if_any(names::dns_1123_subdomain, errors);
    let class = spec.at("runtimeClassName");
    if class.is_set() {
        class.check(names::dns_1123_subdomain, errors);
    }
}

fn validate_gates(spec: &Field<'_>, errors: &mut Errors) {
    for gate in spec.at("readinessGates").items() {
        gate.at("conditionType").check(names::label_key, errors);
    }
    let mut seen = BTreeSet::new();
    for gate in spec.at("schedulingGates").items() {
        let name = gate.at("name").text();
        errors.extend(names::label_key(name).into_iter().map(|problem| gate.invalid_as(name, problem)));
        if !seen.insert(name) {
            errors.push(gate.duplicate_as(name));
        }
    }
}

fn validate_claims(claims: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.at("name");
        if !name.require(errors) {
            if seen.insert(name.text()) {
                name.check(names::dns_1123_label, errors);
            } else {
                errors.push(name.duplicate());
            }
        }
        let (own, template) = (claim.at("resourceClaimName"), claim.at("resourceClaimTemplateName"));
        let json = |place: &Field<'_>| windlass_schema::go_json(place.value());
        let shown = format!(
            "{{\"Name\":{},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
            windlass_schema::go_quote(name.text()),
            json(&own),
            json(&template)
        );
        if own.is_set() && template.is_set() {
            let detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified";
            errors.push(claim.invalid(detail).showing(shown));
        } else if !own.is_set() && !template.is_set() {
            let detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
            errors.push(claim.invalid(detail).showing(shown));
        }
        for name in [own, template] {
            if name.is_set() {
                name.check(names::dns_1123_subdomain, errors);
            }
        }
    }
}

/// Validates metadata and spec of a pod.
pub(crate) fn validate_pod(pod: &Field<'_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    let listed = pod.at_path("metadata/annotations");
    annotations::validate(&listed, &spec, errors);
    validate_spec(&spec, Some(pod.at_path("metadata/name").text()), errors);
    if spec.at("serviceAccountName").text().is_empty() {
        let volumes = spec.at("volumes").items();
        for source in volumes.flat_map(|volume| volume.at_path("projected/sources").items()) {
            let token = source.at("serviceAccountToken");
            if token.is_set() {
                errors.push(token.forbidden("must not be specified when serviceAccountName is not set"));
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.at(list).items() {
            container::validate_image_of_pod(&container, errors);
        }
    }
}

/// Validates a new pod.
pub(crate) fn validate_new_pod(pod: &Field<'_>, errors: &mut Errors) {
    validate_pod(pod, errors);
    let spec = pod.at("spec");
    if !spec.at("ephemeralContainers").is_empty() {
        errors.push(spec.at("ephemeralContainers").forbidden("cannot be set on create"));
    }
    let node = spec.at("nodeName");
    if !node.text().is_empty() && !spec.at("schedulingGates").is_empty() {
        errors.push(node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    annotations::validate_profiles(&pod.at_path("metadata/annotations"), &spec, errors);
}

/// Validates a pod template.
pub(crate) fn validate_template(template: &Field<'_>, errors: &mut Errors) {
    let (metadata, spec) = (template.at("metadata"), template.at("spec"));
    // The errors leave out `metadata`.
    let labels = metadata.at("labels").at_path_of(&template.at("labels"));
    let listed = metadata.at("annotations").at_path_of(&template.at("annotations"));
    if let Some(map) = labels.map() {
        errors.extend(labels.moved(names::validate_labels(map, "")));
    }
    if let Some(map) = listed.map() {
        errors.extend(listed.moved(names::validate_annotations(map, "")));
    }
    annotations::validate(&listed, &spec, errors);
    validate_spec(&spec, None, errors);
    annotations::validate_profiles(&listed, &spec, errors);
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.is_empty() {
        errors.push(ephemeral.forbidden("ephemeral containers not allowed in pod template"));
    }
}
