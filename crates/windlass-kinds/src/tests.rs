use windlass_schema::Catalog;

use crate::kind::Writes;
use crate::of;
use crate::subresource::Subresource;

/// The kinds with an effect. A new kind is listed here, or the `KindConfig` of the kind names the missing effect.
const ENFORCED: &[(&str, &[&str])] = &[
    // `bindings` and the reviews are answered, not stored. A secret for a token of a service account warns.
    (
        "",
        &[
            "bindings",
            "configmaps",
            "endpoints",
            "events",
            "limitranges",
            "namespaces",
            "nodes",
            "pods",
            "persistentvolumeclaims",
            "persistentvolumes",
            "podtemplates",
            "resourcequotas",
            "replicationcontrollers",
            "secrets",
            "serviceaccounts",
            "services",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "mutatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "validatingwebhookconfigurations",
        ],
    ),
    // A definition with validation rules warns.
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    // One with a service warns.
    ("apiregistration.k8s.io", &["apiservices"]),
    ("apps", &["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"]),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("batch", &["cronjobs", "jobs"]),
    // The controllers approve and sign them.
    ("certificates.k8s.io", &["certificatesigningrequests"]),
    ("coordination.k8s.io", &["leases"]),
    ("discovery.k8s.io", &["endpointslices"]),
    ("events.k8s.io", &["events"]),
    ("flowcontrol.apiserver.k8s.io", &["flowschemas", "prioritylevelconfigurations"]),
    ("node.k8s.io", &["runtimeclasses"]),
    ("policy", &["poddisruptionbudgets"]),
    ("rbac.authorization.k8s.io", &["clusterrolebindings", "clusterroles", "rolebindings", "roles"]),
    ("scheduling.k8s.io", &["priorityclasses"]),
    ("storage.k8s.io", &["storageclasses"]),
    ("storagemigration.k8s.io", &["storageversionmigrations"]),
];

#[test]
fn no_kind_is_stored_without_effect_in_silence() {
    let catalog = Catalog::builtin();
    for version in catalog.group_versions() {
        for resource in
            version.resources.iter().filter(|resource| resource.verbs.iter().any(|verb| &**verb == "create"))
        {
            let enforced = ENFORCED
                .iter()
                .any(|(group, resources)| *group == &*version.group && resources.contains(&&*resource.name));
            let warns = of(&version.group, &resource.name).config.unsupported.is_some();
            let name = format!("{}.{}", resource.name, version.group);
            assert!(enforced || warns, "{name} is neither enforced nor does it say what does not happen");
            assert!(!(enforced && warns), "{name} is enforced and warns that it is not");
        }
    }
}

#[test]
fn each_subresource_that_is_written_says_what_it_writes() {
    let catalog = Catalog::builtin();
    // `scale` shows another kind, and subresources like `exec` write no object.
    for version in catalog.group_versions() {
        for resource in &version.resources {
            let config = of(&version.group, &resource.name).config;
            for subresource in &resource.subresources {
                let name = format!("{}/{}", resource.name, subresource.name);
                let subresource = Subresource::named(&subresource.name);
                if subresource.is_part() {
                    assert!(config.writes(&subresource).is_some(), "{name}");
                    assert!(
                        config
                            .writes(&Subresource::None)
                            .is_some_and(|writes| matches!(writes, Writes::AllBut(_))),
                        "{name}"
                    );
                }
            }
        }
    }
}
