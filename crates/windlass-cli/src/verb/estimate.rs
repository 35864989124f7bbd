//! `windlass estimate`

use std::fmt::{self, Write};

use clap::Args;
use http::Request;
use kube::Client;
use kube::discovery::Discovery;
use windlass_runtime::client::{ClientBuilder, ConfigSource, InvalidName, path_segment};
use windlass_runtime::informer::MemoryEstimate;

use crate::error::{Advice, Result};
use crate::manifests::{self, Choices, ProjectManifests};
use crate::output::Output;
use crate::project::{ClusterArgs, Workspace};

/// Estimate the memory that an operator's caches will take on a cluster.
///
/// Lists the objects of each kind, 500 at a time, and stores the first 10000 of a kind as the caches of an operator store objects. Nothing in the
/// cluster is changed. Add 10 to 20 MB for the program itself.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass estimate                                # the kinds that the operator of this project watches
  windlass estimate pods deployments.apps          # these kinds, also outside of a project
  windlass estimate pods -l app=web                # all pods, and beside them the pods with a label")]
pub(crate) struct Estimate {
    /// The kinds: plural names, with the group if it is not the core group. Default: the kinds that the operator of this project watches.
    #[arg(value_name = "KIND")]
    kinds: Vec<String>,

    /// Show the memory for only the objects with these labels, too.
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,

    /// Show the memory for only the objects with these fields, too.
    #[arg(long, value_name = "SELECTOR")]
    field_selector: Option<String>,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// A kind of the cluster.
struct WatchedKind {
    group: String,
    version: String,
    kind: String,
    plural: String,
}

impl Estimate {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let client = self.connect(out).await?;
        let kinds = if self.kinds.is_empty() {
            watched_kinds(out).await?
        } else {
            find_kinds(&client, &self.kinds).await?
        };
        let mut rows = Vec::new();
        for kind in &kinds {
            let all = self.estimate(&client, kind, "").await?;
            rows.push(Row::new(kind.to_string(), &all));
            let selectors = self.selectors();
            if !selectors.is_empty() {
                let selected = self.estimate(&client, kind, &selectors).await?;
                rows.push(Row::new(format!("  selected: {kind}"), &selected));
            }
        }
        table(&rows).iter().for_each(|line| out.line(line));
        Ok(())
    }

    async fn connect(&self, out: &mut Output) -> Result<Client> {
        if let Ok(workspace) = Workspace::current() {
            return Ok(self.cluster.connect(&workspace, out).await?.client);
        }
        let (kubeconfig, context) = (self.cluster.kubeconfig.clone(), self.cluster.context.clone());
        let config = ConfigSource { kubeconfig, context, master: None }.load().await?;
        Ok(ClientBuilder::new(config).build()?)
    }

    /// Returns the selectors as parameters of a list.
    fn selectors(&self) -> String {
        let parameter = |name: &str, selector: &Option<String>| {
            selector.as_ref().map_or_else(String::new, |selector| format!("&{name}={}", encoded(selector)))
        };
        parameter("labelSelector", &self.selector) + &parameter("fieldSelector", &self.field_selector)
    }

    /// Lists all objects of a kind, a page at a time.
    async fn estimate(&self, client: &Client, kind: &WatchedKind, selectors: &str) -> Result<MemoryEstimate> {
        let path = kind.path(self.cluster.namespace.as_deref())?;
        let mut estimate = MemoryEstimate::new(&kind.api_version(), &kind.kind);
        let mut page = String::new();
        loop {
            let url = format!("{path}?limit=500{selectors}{page}");
            let list = client.request_text(Request::get(url).body(Vec::new())?).await?;
            let meta =
                estimate.add_page(list.into()).map_err(|error| format!("the list of {kind}: {error}"))?;
            if meta.continue_token.is_empty() {
                return Ok(estimate);
            }
            page = format!("&continue={}", encoded(&meta.continue_token));
        }
    }
}

/// Returns the kinds that the operator of the project watches.
async fn watched_kinds(out: &mut Output) -> Result<Vec<WatchedKind>> {
    let workspace = Workspace::current().map_err(|error| {
        Advice::new(error.to_string(), "name the kinds, such as `windlass estimate pods`")
    })?;
    let (request, choices) = (manifests::Request::default(), Choices::default());
    let project = ProjectManifests::load(&workspace, &request, &choices, out).await?;
    let watches = project.inventory.controllers.into_iter().flat_map(|controller| controller.watches);
    let mut kinds: Vec<WatchedKind> = watches
        .map(|watch| WatchedKind {
            group: watch.group,
            version: watch.version,
            kind: watch.kind,
            plural: watch.plural,
        })
        .collect();
    kinds.sort_by_key(ToString::to_string);
    kinds.dedup_by_key(|kind| kind.to_string());
    Ok(kinds)
}

/// Finds kinds by their plural names. A name without a group is looked up in the core group first.
async fn find_kinds(client: &Client, names: &[String]) -> Result<Vec<WatchedKind>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await?;
    let mut known: Vec<WatchedKind> = Vec::new();
    for group in discovery.groups() {
        known.extend(group.recommended_resources().into_iter().map(|(resource, _)| WatchedKind {
            group: resource.group,
            version: resource.version,
            kind: resource.kind,
            plural: resource.plural,
        }));
    }
    known.sort_by_key(|kind| !kind.group.is_empty());
    let find = |name: &String| {
        let is_named = |kind: &WatchedKind| *name == kind.to_string() || *name == kind.plural;
        let found = known.iter().find(|kind| is_named(kind));
        let hint = "name a kind by its plural and its group, such as `deployments.apps`";
        let found = found.ok_or_else(|| Advice::new(format!("the cluster has no kind `{name}`"), hint))?;
        let WatchedKind { group, version, kind, plural } = found;
        Ok(WatchedKind {
            group: group.clone(),
            version: version.clone(),
            kind: kind.clone(),
            plural: plural.clone(),
        })
    };
    names.iter().map(find).collect()
}

impl WatchedKind {
    fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn path(&self, namespace: Option<&str>) -> Result<String, InvalidName> {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let namespace = namespace.map(path_segment).transpose()?;
        let namespace = namespace.map_or_else(String::new, |name| format!("namespaces/{name}/"));
        Ok(format!("/{root}/{}/{namespace}{}", self.api_version(), self.plural))
    }
}

impl fmt::Display for WatchedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// The memory of the caches of a kind.
struct Row {
    name: String,
    objects: usize,
    /// JSON, and the caches: raw, compressed, metadata only.
    bytes: [usize; 4],
}

impl Row {
    fn new(name: String, estimate: &MemoryEstimate) -> Self {
        let caches = [estimate.raw(), estimate.compressed(), estimate.metadata_only()];
        let [raw, compressed, metadata] = caches;
        Self { name, objects: estimate.objects(), bytes: [estimate.json_bytes(), raw, compressed, metadata] }
    }
}

/// Returns the lines of a table, with a sum if there are several kinds without selectors.
fn table(rows: &[Row]) -> Vec<String> {
    let head = ["KIND", "OBJECTS", "JSON", "CACHE", "COMPRESSED", "METADATA ONLY"].map(str::to_owned);
    let cells = |row: &Row| {
        let [json, raw, compressed, metadata] = row.bytes.map(megabytes);
        [row.name.clone(), row.objects.to_string(), json, raw, compressed, metadata]
    };
    let mut lines: Vec<[String; 6]> = std::iter::once(head).chain(rows.iter().map(cells)).collect();
    let all = || rows.iter().filter(|row| !row.name.starts_with(' '));
    if all().count() > 1 {
        let sum = |number: usize| all().map(|row| row.bytes[number]).sum();
        let objects = all().map(|row| row.objects).sum();
        lines.push(cells(&Row { name: "all".to_owned(), objects, bytes: [0, 1, 2, 3].map(sum) }));
    }
    let width = |column: usize| lines.iter().map(|line| line[column].len()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3, 4, 5].map(width);
    let line = |cells: &[String; 6]| {
        let padded = cells.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        padded.collect::<Vec<_>>().join("  ")
    };
    lines.iter().map(line).collect()
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Encodes a parameter of a URL.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            // A write to a string does not fail.
            byte => drop(write!(encoded, "%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_without_selectors_are_summed() {
        let row = |name: &str, bytes| Row { name: name.to_owned(), objects: 10, bytes: [bytes; 4] };
        let lines =
            table(&[row("pods", 2_000_000), row("  selected: pods", 1_000_000), row("secrets", 500_000)]);
        assert_eq!(
            lines,
            [
                "KIND              OBJECTS    JSON   CACHE  COMPRESSED  METADATA ONLY",
                "pods                   10  2.0 MB  2.0 MB      2.0 MB         2.0 MB",
                "  selected: pods       10  1.0 MB  1.0 MB      1.0 MB         1.0 MB",
                "secrets                10  0.5 MB  0.5 MB      0.5 MB         0.5 MB",
                "all                    20  2.5 MB  2.5 MB      2.5 MB         2.5 MB",
            ]
        );
    }

    #[test]
    fn a_kind_has_a_path_in_all_namespaces_or_in_one() {
        let kind = |group: &str| WatchedKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
            plural: "things".to_owned(),
        };
        assert_eq!(kind("").path(None).as_deref(), Ok("/api/v1/things"));
        assert_eq!(kind("apps").path(Some("a")).as_deref(), Ok("/apis/apps/v1/namespaces/a/things"));
        assert_eq!(encoded("app in (a,b)"), "app%20in%20%28a%2Cb%29");
    }
}
