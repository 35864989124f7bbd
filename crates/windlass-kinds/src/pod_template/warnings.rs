//! Warnings about pods and pod templates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_wire::names;

use super::app_armor;
use crate::addresses::address_warning;
use crate::checks::fraction_warning;
use crate::field::{self, Field, Warnings};

const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Labels of nodes that have new names.
const NODE_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
];
/// Annotations that have no effect.
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
/// Sources of volumes: the field, its name in the warning, the text.
const VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Returns the warnings about a new pod.
pub(crate) fn pod_warnings(pod: &Value) -> Vec<String> {
    field::validate("", pod, |pod, warnings| about(pod, false, warnings))
}

/// Returns the warnings about a pod template. `path` ends with a dot.
pub(crate) fn pod_template_warnings(path: &str, template: &Value) -> Vec<String> {
    field::validate(path.trim_end_matches('.'), template, |template, warnings| {
        about(template, true, warnings);
    })
}

fn about(pod: &Field<'_>, is_template: bool, warnings: &mut Warnings) {
    let (spec, annotations) = (pod.at("spec"), pod.at_path("metadata/annotations"));
    about_nodes(&spec, warnings);
    for (key, text) in ANNOTATIONS {
        if annotations.key(key).is_set() {
            warnings.push(annotations.key(key).warning(text));
        }
    }
    about_volumes(&spec.at("volumes"), warnings);
    about_doubles(&spec, warnings);
    fractions(&spec.at("overhead"), warnings);
    about_profiles(pod, is_template, warnings);
    for container in LISTS.iter().flat_map(|list| spec.at(list).items()) {
        for list in ["limits", "requests"] {
            fractions(&container.at("resources").at(list), warnings);
        }
        about_variables(&container.at("env"), warnings);
    }
    about_ports(&spec, warnings);
    let period = spec.at("terminationGracePeriodSeconds");
    if period.int() < 0 {
        warnings.push(period.warning("must be >= 0; negative values are invalid and will be treated as 1"));
    }
    about_selectors(&spec.at("affinity"), warnings);
    let servers = spec.at_path("dnsConfig/nameservers");
    let aliases = spec.at("hostAliases");
    for address in servers.items().chain(aliases.items().map(|alias| alias.at("ip"))) {
        warnings.extend(address_warning(address.path(), address.text()));
    }
}

/// Says that a label of nodes is deprecated.
pub(crate) fn node_label(key: &str) -> Option<&'static str> {
    NODE_LABELS.iter().find(|(label, _)| *label == key).map(|(_, text)| *text)
}

fn about_nodes(spec: &Field<'_>, warnings: &mut Warnings) {
    for (key, value) in spec.at("nodeSelector").entries() {
        warnings.extend(node_label(key).map(|text| value.warning(text)));
    }
    let affinity = spec.at_path("affinity/nodeAffinity");
    for term in affinity.at(REQUIRED).at("nodeSelectorTerms").items() {
        about_term(&term, false, warnings);
    }
    for term in affinity.at(PREFERRED).items() {
        about_term(&term.at("preference"), true, warnings);
    }
    for constraint in spec.at("topologySpreadConstraints").items() {
        let (key, selector) = (constraint.at("topologyKey"), constraint.at("labelSelector"));
        warnings.extend(node_label(key.text()).map(|text| key.warning(format!("{} is {text}", key.text()))));
        if !selector.is_set() {
            warnings.push(selector.warning("a null labelSelector results in matching no pod"));
        }
    }
}

/// Warns of what a term of a node selector has.
pub(crate) fn about_term(term: &Field<'_>, checks_values: bool, warnings: &mut Warnings) {
    for expression in term.at("matchExpressions").items() {
        let key = expression.at("key");
        warnings.extend(node_label(key.text()).map(|text| key.warning(format!("{} is {text}", key.text()))));
        for value in expression.at("values").items().filter(|_| checks_values) {
            let problems = names::label_value(value.text()).into_iter();
            warnings.extend(problems.map(|why| value.warning(format!("{} is invalid, {why}", value.text()))));
        }
    }
}

fn about_volumes(volumes: &Field<'_>, warnings: &mut Warnings) {
    for volume in volumes.items() {
        for (field, name, text) in VOLUMES {
            if volume.at(field).is_set() {
                warnings.push(volume.at(name).warning(text));
            }
        }
        let resources = volume.at_path("ephemeral/volumeClaimTemplate/spec/resources");
        for list in ["requests", "limits"] {
            fraction_warning(&resources.at(list).key("storage"), warnings);
        }
    }
    for volume in volumes.items() {
        about_files(&volume, warnings);
    }
}

/// A file of a volume, and the origin of the file.
type File = (String, String);

fn show(file: &File) -> String {
    let quoted = windlass_schema::go_quote(&file.0);
    if file.1.is_empty() { quoted } else { format!("{quoted} ({})", file.1) }
}

/// Warns about files of a volume that hide each other.
fn about_files(volume: &Field<'_>, warnings: &mut Warnings) {
    let quote = windlass_schema::go_quote;
    let name = quote(volume.at("name").text());
    let paths = |items: &Field<'_>, source: &str| -> Vec<File> {
        items.items().map(|item| (item.at("path").text().to_owned(), source.to_owned())).collect()
    };
    let plain = [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")];
    let mut groups: Vec<(String, Vec<File>)> = Vec::new();
    for (field, kind, source) in plain {
        let source = quote(volume.at(field).at(source).text());
        groups.push((format!("{kind} {source}"), paths(&volume.at(field).at("items"), "")));
    }
    groups.push(("DownwardAPI".to_owned(), paths(&volume.at_path("downwardAPI/items"), "")));
    let mut projected = Vec::new();
    for source in volume.at_path("projected/sources").items() {
        if source.is_empty() {
            warnings.push(format!("volume {name} (Projected) has no sources provided"));
        } else if source.at_path("configMap/items").is_set() {
            let origin = format!("ConfigMap {}", quote(source.at_path("configMap/name").text()));
            projected.extend(paths(&source.at_path("configMap/items"), &origin));
        } else if source.at_path("secret/items").is_set() {
            let origin = format!("Secret {}", quote(source.at_path("secret/name").text()));
            projected.extend(paths(&source.at_path("secret/items"), &origin));
        } else if source.at_path("downwardAPI/items").is_set() {
            projected.extend(paths(&source.at_path("downwardAPI/items"), "DownwardAPI"));
        } else if source.at("serviceAccountToken").is_set() {
            let path = source.at_path("serviceAccountToken/path").text();
            projected.push((path.to_owned(), "ServiceAccountToken".to_owned()));
        }
    }
    groups.push(("Projected".to_owned(), projected));
    for (what, files) in groups {
        for text in overlaps(files) {
            warnings.push(format!("volume {name} ({what}): overlapping paths: {text}"));
        }
    }
}

/// The number of files that are checked for overlaps, because each file is compared with all earlier files.
const MOST_FILES: usize = 500;

fn overlaps(files: Vec<File>) -> Vec<String> {
    let (mut seen, mut found): (Vec<File>, Vec<String>) = (Vec::new(), Vec::new());
    for (path, source) in files.into_iter().take(MOST_FILES) {
        let file = (path.trim_end_matches('/').to_owned(), source);
        let within = |inner: &str, outer: &str| format!("{inner}/").starts_with(&format!("{outer}/"));
        for other in seen.iter().filter(|other| !file.0.is_empty() && !other.0.is_empty()) {
            if within(&other.0, &file.0) || within(&file.0, &other.0) {
                found.push(format!("{} with {}", show(&file), show(other)));
            }
        }
        seen.push(file);
    }
    found
}

fn about_doubles(spec: &Field<'_>, warnings: &mut Warnings) {
    for (list, field, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let mut seen = BTreeSet::new();
        for value in spec.at(list).items().map(|item| item.at(field)) {
            if !seen.insert(value.text()) {
                let quoted = windlass_schema::go_quote(value.text());
                warnings.push(value.warning(format!("duplicate {what} {quoted}")));
            }
        }
    }
    for name in spec.at("imagePullSecrets").items().map(|secret| secret.at("name")) {
        if name.text().is_empty() {
            warnings.push(name.warning("invalid empty name \"\""));
        }
    }
}

fn fractions(amounts: &Field<'_>, warnings: &mut Warnings) {
    for resource in ["memory", "ephemeral-storage"] {
        fraction_warning(&amounts.key(resource), warnings);
    }
}

fn about_profiles(pod: &Field<'_>, is_template: bool, warnings: &mut Warnings) {
    const SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    let (spec, annotations) = (pod.at("spec"), pod.at_path("metadata/annotations"));
    let of_pod = spec.at_path("securityContext/appArmorProfile");
    let key = "seccomp.security.alpha.kubernetes.io/pod";
    if annotations.key(key).is_set() && !spec.at_path("securityContext/seccompProfile").is_set() {
        warnings.push(annotations.key(key).warning(SECCOMP));
    }
    for container in LISTS.iter().flat_map(|list| spec.at(list).items()) {
        let (name, context) = (container.at("name").text(), container.at("securityContext"));
        let seccomp = annotations.key(&format!("container.seccomp.security.alpha.kubernetes.io/{name}"));
        if seccomp.is_set() && !context.at("seccompProfile").is_set() {
            warnings.push(seccomp.warning(SECCOMP));
        }
        let armor = annotations.key(&format!("{}{name}", app_armor::ANNOTATION));
        // The profile of the pod may be that of the annotation.
        let is_other = || app_armor::profile(armor.text()).is_none_or(|profile| profile != *of_pod.value());
        if is_template && armor.is_set() && !context.at("appArmorProfile").is_set() && is_other() {
            warnings.push(armor.warning(app_armor::WARNING));
        }
    }
}

fn about_variables(variables: &Field<'_>, warnings: &mut Warnings) {
    let mut seen = BTreeSet::new();
    for variable in variables.items() {
        let (name, value) = (variable.at("name").text(), variable.at("value").text());
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        let extends = value.contains(&reference) && value != reference;
        if variable.at("valueFrom").is_set() || !extends {
            let quoted = windlass_schema::go_quote(name);
            warnings.push(variable.warning(format!(
                "hides previous definition of {quoted}, which may be dropped when using apply"
            )));
        }
    }
}

/// The number of ports that a port is compared with, among ports of the same number.
const MOST_PORTS: usize = 100;
/// The warnings about pairs of ports after which no more are looked for: the headers of a reply hold fewer.
const MOST_PAIRS: usize = 1_000;

fn about_ports(spec: &Field<'_>, warnings: &mut Warnings) {
    let ports = || {
        LISTS
            .into_iter()
            .flat_map(|list| spec.at(list).items())
            .flat_map(|container| container.at("ports").items())
    };
    let mut all: BTreeMap<(i64, &str), Vec<Field<'_>>> = BTreeMap::new();
    let mut pairs = 0;
    for port in ports() {
        let host = |port: &Field<'_>| (port.at("hostPort").int(), !port.at("hostIP").text().is_empty());
        let (number, has_address) = host(&port);
        if has_address && number == 0 {
            let field = |name: &str| port.at(name).text();
            warnings.push(port.warning(format!(
                "hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}",
                field("name"),
                port.at("containerPort").int(),
                field("protocol"),
                field("hostIP")
            )));
        }
        let same = all.entry((port.at("containerPort").int(), port.at("protocol").text())).or_default();
        for other in same.iter().take(if pairs < MOST_PAIRS { MOST_PORTS } else { 0 }) {
            let (other_number, other_has_address) = host(other);
            let is_same_address = port.at("hostIP").text() == other.at("hostIP").text();
            let what = if is_same_address && number == other_number {
                "duplicate"
            } else if number == 0 || other_number == 0 {
                "overlapping"
            } else if number == other_number && has_address != other_has_address {
                "dangerously ambiguous"
            } else {
                continue;
            };
            pairs += 1;
            warnings.push(port.warning(format!("{what} port definition with {}", other.path())));
        }
        same.push(port);
    }
    let mut names: BTreeMap<&str, String> = BTreeMap::new();
    for port in ports() {
        let name = port.at("name").text();
        if name.is_empty() {
            continue;
        }
        if let Some(other) = names.get(name) {
            let quoted = windlass_schema::go_quote(name);
            warnings.push(port.warning(format!(
                "duplicate port name {quoted} with {other}, services and probes that select ports by name will use {other}"
            )));
        } else {
            names.insert(name, port.path().to_owned());
        }
    }
}

fn about_selectors(affinity: &Field<'_>, warnings: &mut Warnings) {
    const NULL: &str = "a null labelSelector results in matching no pod";
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = affinity.at(kind);
        let terms = affinity.at(REQUIRED).items();
        let terms = terms.chain(affinity.at(PREFERRED).items().map(|term| term.at("podAffinityTerm")));
        for selector in terms.map(|term| term.at("labelSelector")) {
            if !selector.is_set() {
                warnings.push(selector.warning(NULL));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::pod_warnings;

    #[test]
    fn many_equal_ports_have_few_warnings() {
        let ports = vec![json!({"containerPort": 80, "protocol": "TCP"}); 3_000];
        let pod = json!({"spec": {"containers": [{"name": "c", "image": "i", "ports": ports}]}});
        assert!(pod_warnings(&pod).len() <= 1_100);
    }
}
