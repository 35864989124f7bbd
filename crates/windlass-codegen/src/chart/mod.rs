//! Chart: a Helm chart of an operator, rendered from the model of the manifests.
//!
//! The templates contain the objects of [`Manifests`], with names, namespace and optional parts as expressions. The names of
//! values are the names of kubebuilder's Helm plugin.
//!
//! ```
//! use windlass_codegen::{Inventory, chart::{self, Details}, manifests::Options};
//!
//! let inventory = Inventory { name: "web-operator".to_owned(), ..Inventory::default() };
//! let details = Details { version: "1.2.0".to_owned(), ..Details::default() };
//! let files = chart::files(&inventory, &Options::new("web-operator"), &details).unwrap();
//! assert!(files["Chart.yaml"].contains("1.2.0"));
//! assert!(files["templates/manager/manager.yaml"].contains("replicas: {{ .Values.manager.replicas }}"));
//! ```

mod helpers;
mod manager;
mod marks;
mod own;
mod schema;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::{helpers::Helpers, marks::Marks};
use crate::{
    CertificateOrigin, Inventory,
    manifests::{Component, GENERATED, ManifestError, Manifests, Options, yaml::to_text},
};

/// The project name in rendered objects. An expression replaces the name.
const PROJECT: &str = "windlass-chart-project";

/// The namespace in rendered objects. An expression replaces the namespace.
const NAMESPACE: &str = "windlass-chart-namespace";

/// The facts of a chart that the manifests do not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The version of the chart and of the operator: a semantic version.
    pub version: String,
    /// A sentence about the operator. Default: names the project.
    pub description: String,
}

/// The certificate of the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Certificate {
    /// Where the operator's code takes the certificate from.
    origin: CertificateOrigin,
    /// The namespace that a self-issued certificate is valid for.
    namespace: Option<String>,
}

/// The input of all templates.
struct Model<'a> {
    inventory: &'a Inventory,
    options: &'a Options,
    helpers: Helpers,
    certificate: Option<Certificate>,
}

/// Returns the files of a chart, by path below the folder of the chart.
///
/// `options.image` is the default image: a digest and a tag are taken apart. `options.components` are the parts that are on by default.
///
/// # Errors
///
/// Versions of a kind contradict each other, as for [`Manifests::new`].
pub fn files(
    inventory: &Inventory,
    options: &Options,
    details: &Details,
) -> Result<BTreeMap<String, String>, ManifestError> {
    let webhooks = inventory.webhooks.as_ref();
    let certificate = webhooks.map(|webhooks| Certificate {
        origin: webhooks.certificates,
        namespace: webhooks.service.as_ref().map(|service| service.namespace.clone()),
    });
    let model = Model { inventory, options, helpers: Helpers::new(&options.project), certificate };
    let manifests = neutral_manifests(inventory, options)?;
    let deployment = deployment(&manifests);
    let mut files = BTreeMap::from([
        ("Chart.yaml".to_owned(), chart(options, details)),
        (".helmignore".to_owned(), format!("# {GENERATED}\n.git/\n*.swp\n*.bak\n*.orig\n*~\n")),
        ("values.yaml".to_owned(), values::text(&model, &deployment)),
        ("values.schema.json".to_owned(), schema::text(&model)),
        ("templates/_helpers.tpl".to_owned(), model.helpers.text(&options.project)),
        ("templates/NOTES.txt".to_owned(), model.helpers.notes(inventory)),
    ]);
    for (folder, file, objects) in manifests.parts() {
        let texts: Vec<String> = objects.iter().filter_map(|object| model.template(folder, object)).collect();
        if !texts.is_empty() {
            let path = format!("templates/{}/{}", template_folder(folder), file.trim_start_matches("bases/"));
            files.insert(path, model.file(folder, file, &texts));
        }
    }
    Ok(files)
}

/// Makes the manifests with all components, and with placeholders for the name of the project and for the namespace.
fn neutral_manifests(inventory: &Inventory, options: &Options) -> Result<Manifests, ManifestError> {
    let mut inventory = inventory.clone();
    let election = inventory.election.as_mut().map(|election| &mut election.rights);
    let metrics = inventory.metrics.as_mut().map(|metrics| &mut metrics.rights);
    for rights in [Some(&mut inventory.rights), election, metrics].into_iter().flatten() {
        if let Some(rules) = rights.namespaces.remove(&options.namespace) {
            rights.namespaces.insert(NAMESPACE.to_owned(), rules);
        }
    }
    if let Some(webhooks) = &mut inventory.webhooks {
        // The chart always has the objects of cert-manager: a value turns the objects on.
        webhooks.certificates = CertificateOrigin::Files;
        if let Some(service) = &mut webhooks.service {
            NAMESPACE.clone_into(&mut service.namespace);
        }
    }
    let mut neutral = options.clone();
    PROJECT.clone_into(&mut neutral.project);
    NAMESPACE.clone_into(&mut neutral.namespace);
    neutral.components = Component::ALL.into();
    neutral.own_files = own::neutral(options);
    Manifests::new(&inventory, neutral)
}

/// Returns the Deployment of the operator. The user may have replaced the Deployment by an object of another
/// kind.
fn deployment(manifests: &Manifests) -> Value {
    let mut objects = manifests.parts().filter(|(folder, ..)| *folder == "manager");
    objects
        .find_map(|(_, _, objects)| objects.iter().find(|object| manager::is_it(object)))
        .cloned()
        .unwrap_or_default()
}

fn chart(options: &Options, details: &Details) -> String {
    let description = match details.description.as_str() {
        "" => format!("The operator {}", options.project),
        text => text.to_owned(),
    };
    to_text([&json!({
        "apiVersion": "v2",
        "appVersion": details.version,
        "description": description,
        "name": options.project,
        "type": "application",
        "version": details.version,
    })])
}

/// Returns the folder of templates for a folder of manifests, as in kubebuilder's charts.
fn template_folder(folder: &str) -> &str {
    match folder {
        "certmanager" => "cert-manager",
        other => other,
    }
}

/// Returns whether a role is for people. No part of the operator needs such a role.
fn is_helper_role(file: &str) -> bool {
    ["_admin_role.yaml", "_editor_role.yaml", "_viewer_role.yaml"].iter().any(|end| file.ends_with(end))
}

impl Model<'_> {
    /// Returns the template of one object; `None` for the namespace, because `helm install
    /// --create-namespace` makes the namespace.
    fn template(&self, folder: &str, object: &Value) -> Option<String> {
        if object["kind"] == "Namespace" {
            return None;
        }
        let mut object = object.clone();
        let mut marks = Marks::default();
        match object["kind"].as_str() {
            Some("Deployment") if manager::is_it(&object) => manager::mark(self, &mut object, &mut marks),
            Some("CustomResourceDefinition") => {
                let keep = ["{{- if .Values.crd.keep }}", "helm.sh/resource-policy: keep", "{{- end }}"];
                let mut lines: Vec<String> = keep.map(ToOwned::to_owned).into();
                let is_converted = object["spec"]["conversion"]["webhook"].is_object();
                lines.extend(self.inject(is_converted));
                marks.annotate(&mut object, lines);
                if is_converted {
                    let conversion = format!("conversion: {}", object["spec"]["conversion"]);
                    let condition = format!("{{{{- if {} }}}}", self.helpers.on("webhook"));
                    object["spec"]["conversion"] =
                        marks.add(vec![condition, conversion, "{{- end }}".to_owned()]);
                }
            }
            Some("MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
                marks.annotate(&mut object, self.inject(true));
            }
            Some("ServiceAccount") => {
                let path = ".Values.serviceAccount.annotations";
                object["metadata"]["annotations"] = marks.add(marks::with("annotations", path));
            }
            Some("Service" | "NetworkPolicy") if folder == "metrics" || folder == "network-policy" => {
                self.mark_metrics_port(&mut object, &mut marks);
            }
            _ => {}
        }
        object["metadata"]["labels"]["app.kubernetes.io/managed-by"] =
            marks.add(vec!["app.kubernetes.io/managed-by: {{ .Release.Service }}".to_owned()]);
        Some(self.helpers.insert(&marks.text(&object)))
    }

    /// Returns the lines of the annotation that makes cert-manager write the authority into an object.
    fn inject(&self, is_wanted: bool) -> Vec<String> {
        if !is_wanted || self.certificate.is_none() {
            return Vec::new();
        }
        vec![
            format!("{{{{- if {} }}}}", self.helpers.certified()),
            format!("cert-manager.io/inject-ca-from: {NAMESPACE}/{PROJECT}-serving-cert"),
            "{{- end }}".to_owned(),
        ]
    }

    /// Replaces the port of the metrics endpoint by a value.
    fn mark_metrics_port(&self, object: &mut Value, marks: &mut Marks) {
        let Some(metrics) = &self.inventory.metrics else { return };
        let pointers = ["/spec/ports/0", "/spec/ingress/0/ports/0"];
        for pointer in pointers {
            let Some(port) = object.pointer_mut(pointer) else { continue };
            for member in ["port", "targetPort"] {
                if port[member] == metrics.port {
                    port[member] = marks.add(vec![format!("{member}: {{{{ .Values.metrics.port }}}}")]);
                }
            }
        }
    }

    /// Returns a template file: the objects, behind the conditions of the folder.
    fn file(&self, folder: &str, file: &str, texts: &[String]) -> String {
        let on = |part: &str| self.helpers.on(part);
        let condition = match folder {
            "crd" => Some(on("crd")),
            "rbac" if is_helper_role(file) => Some(on("rbacHelpers")),
            "rbac" if file.starts_with("metrics_") => Some(on("metrics")),
            "metrics" => Some(on("metrics")),
            "webhook" => Some(on("webhook")),
            "certmanager" => Some(self.helpers.certified()),
            "prometheus" => Some(format!("and ({}) ({})", on("prometheus"), on("metrics"))),
            "network-policy" if file.contains("metrics") => {
                Some(format!("and ({}) ({})", on("networkPolicy"), on("metrics")))
            }
            "network-policy" => Some(format!("and ({}) ({})", on("networkPolicy"), on("webhook"))),
            _ => None,
        };
        let mut body = texts.join("---\n");
        if folder == "manager" {
            body.insert_str(0, &manager::namespace_check(self));
        }
        // A comment of the template: a part that is off renders an empty text.
        let first = format!("{{{{/* {GENERATED} */ -}}}}\n");
        match condition {
            Some(condition) => format!("{first}{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n"),
            None => format!("{first}{body}"),
        }
    }
}
