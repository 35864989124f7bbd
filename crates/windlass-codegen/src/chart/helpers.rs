//! Helpers: the named templates of a chart, and the notes that Helm prints.

use super::{NAMESPACE, PROJECT};
use crate::{Inventory, manifests::GENERATED};

/// The longest suffix of the name of a Service, and the longest name of a Service.
const SUFFIX: usize = "-controller-manager-metrics-service".len();
const SERVICE_NAME: usize = 63;

/// The expressions of a chart. Named templates are global to a release with subcharts: each name begins with
/// the name of the chart.
pub(super) struct Helpers {
    chart: String,
}

impl Helpers {
    pub(super) fn new(chart: &str) -> Self {
        Self { chart: chart.to_owned() }
    }

    /// Returns the condition that a part is on: the value `enable`, or `enabled` if the person sets `enabled`.
    pub(super) fn on(&self, part: &str) -> String {
        format!("include \"{}.on\" .Values.{part}", self.chart)
    }

    /// Returns the condition that cert-manager issues the certificate of the webhook server.
    pub(super) fn certified(&self) -> String {
        format!("and ({}) ({})", self.on("webhook"), self.on("certManager"))
    }

    /// Returns the expression of the image.
    pub(super) fn image(&self) -> String {
        format!("{{{{ include \"{}.image\" . | quote }}}}", self.chart)
    }

    /// Replaces the placeholders by expressions.
    pub(super) fn insert(&self, text: &str) -> String {
        let namespace = "{{ .Release.Namespace }}";
        let quoted = format!("namespace: {NAMESPACE}\n");
        let project = format!("{{{{ include \"{}.fullname\" . }}}}", self.chart);
        text.replace(&quoted, "namespace: {{ .Release.Namespace | quote }}\n")
            .replace(NAMESPACE, namespace)
            .replace(PROJECT, &project)
    }

    /// Returns `_helpers.tpl`.
    pub(super) fn text(&self, project: &str) -> String {
        let limit = SERVICE_NAME.saturating_sub(SUFFIX).max(project.len());
        TEXT.replace("GENERATED", GENERATED)
            .replace("CHART", &self.chart)
            .replace("LIMIT", &limit.to_string())
    }

    /// Returns `NOTES.txt`.
    pub(super) fn notes(&self, inventory: &Inventory) -> String {
        let mut text = NOTES.replace("GENERATED", GENERATED).replace("CHART", &self.chart);
        let names: std::collections::BTreeSet<String> = inventory
            .crds
            .iter()
            .map(|crd| format!("{}.{}", crd.spec.names.plural, crd.spec.group))
            .collect();
        if !names.is_empty() {
            let names: Vec<String> = names.into_iter().collect();
            text.push_str(&NOTES_OF_CRDS.replace("NAMES", &names.join(" ")));
        }
        text
    }
}

const TEXT: &str = r#"{{/* GENERATED */}}

{{/* The beginning of all names: the release, and the chart unless the release has its name. */}}
{{- define "CHART.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc LIMIT | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc LIMIT | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc LIMIT | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* A part is on: the value `enabled` if there is one, else `enable`. */}}
{{- define "CHART.on" -}}
{{- if hasKey . "enabled" }}{{ if .enabled }}true{{ end }}{{ else if .enable }}true{{ end }}
{{- end }}

{{/* The image of the operator: a digest wins over a tag. */}}
{{- define "CHART.image" -}}
{{- $image := .Values.manager.image }}
{{- if $image.digest }}
{{- printf "%s@%s" $image.repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag | toString) }}
{{- end }}
{{- end }}
"#;

const NOTES: &str = r#"{{- /* GENERATED */ -}}
{{ .Chart.Name }} {{ .Chart.AppVersion }} runs in the namespace {{ .Release.Namespace }}:

  kubectl --namespace {{ .Release.Namespace }} rollout status deployment {{ include "CHART.fullname" . }}-controller-manager
  kubectl --namespace {{ .Release.Namespace }} logs deployment/{{ include "CHART.fullname" . }}-controller-manager
"#;

const NOTES_OF_CRDS: &str = r"{{- if .Values.crd.keep }}

`helm uninstall` keeps the CRDs and all objects of the kinds. To delete them, while the operator still runs:

  kubectl delete crd NAMES
{{- end }}
";
