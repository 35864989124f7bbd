//! Rewrites the objects of a CustomResourceDefinition in the version that is stored now.
//!
//! After a change of a CRD's storage version, existing objects stay stored in the old version, and
//! `status.storedVersions` names both versions. The old version cannot be removed before all objects are
//! rewritten and the version's name is taken from the list. [`StorageMigration`] does both.

mod rewrite;

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kube_core::{ApiResource, ResourceExt};
use serde_json::json;

use self::rewrite::Rewrite;
use crate::{
    error::{Error, Result},
    manager::{Group, RunContext, Runnable},
    permission::{Permission, Verb},
};

/// The pause before a retry of a page or an object; doubles with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The largest number of tries of a request.
const TRIES: u32 = 6;

/// How often the removal of the old versions is tried.
const PRUNE_TRIES: u32 = 5;

/// A migration of the objects of a CustomResourceDefinition to the storage version.
///
/// The migration lists the objects in pages and writes each object back unchanged, which stores the object in
/// the current version. An object that was changed or deleted meanwhile needs no rewrite, because the change
/// stored the object. When every object is done, `status.storedVersions` is set to the storage version,
/// unless the storage version has changed since the start.
///
/// The migration can be repeated and interrupted at any time: rewritten objects stay rewritten.
/// [`resume`](Self::resume) continues at a page.
///
/// The migration needs the rights `get` on the definition, `patch` on `customresourcedefinitions/status`, and
/// `list` and `update` on the objects.
///
/// ```no_run
/// # async fn example(client: kube_client::Client) -> windlass_runtime::Result<()> {
/// use windlass_runtime::storage_migration::StorageMigration;
///
/// let report = StorageMigration::of("bars.example.com").run(&client).await?;
/// println!("{} objects rewritten, now stored as {}", report.rewritten, report.storage_version);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct StorageMigration {
    crd: String,
    page: u32,
    resume: Option<String>,
}

/// The result of a migration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The version that all objects are stored in.
    pub storage_version: String,
    /// The number of objects that were written back.
    pub rewritten: usize,
    /// The number of objects that other clients changed or deleted meanwhile.
    pub changed_meanwhile: usize,
    /// The versions that were removed from `status.storedVersions`.
    pub removed_versions: Vec<String>,
}

impl StorageMigration {
    /// Migrates the objects of a definition, such as `bars.example.com`.
    pub fn of(crd: impl Into<String>) -> Self {
        Self { crd: crd.into(), page: 500, resume: None }
    }

    /// Sets how many objects are listed at a time. Default: 500.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page = objects.max(1);
        self
    }

    /// Continues at a page. An interrupted migration logs the page's `continue` token. An expired token
    /// starts from the beginning.
    pub fn resume(mut self, token: impl Into<String>) -> Self {
        self.resume = Some(token.into());
        self
    }

    /// Makes a runnable that migrates on the leader, once for each term. A failure is logged and ends no other part.
    pub fn runnable(self) -> Runnable {
        let needed = self.permissions();
        let run = move |cx: RunContext| {
            let migration = self.clone();
            async move { migration.run_until_shutdown(&cx).await }
        };
        let runnable =
            needed.into_iter().fold(Runnable::repeatable("storage version migration", run), Runnable::needs);
        runnable.group(Group::LeaderElected)
    }

    async fn run_until_shutdown(self, cx: &RunContext) -> Result<()> {
        let migrated = tokio::select! {
            biased;
            () = cx.shutdown().requested() => return Ok(()),
            migrated = self.run(cx.client()) => migrated,
        };
        if let Err(error) = migrated {
            tracing::error!(crd = self.crd, %error, "storage version migration failed; it is repeated at the next start, or in the next term of this replica");
        }
        Ok(())
    }

    /// Returns the rights that a migration needs.
    fn permissions(&self) -> Vec<Permission> {
        let (plural, group) = self.crd.split_once('.').unwrap_or((&self.crd, ""));
        let objects = ApiResource {
            group: group.to_owned(),
            plural: plural.to_owned(),
            // Rights have no version and no kind.
            ..ApiResource::erase::<CustomResourceDefinition>(&())
        };
        let definition = |verb: Verb| Permission::to::<CustomResourceDefinition>([verb]).named(&self.crd);
        vec![
            Permission::to_resource(&objects, [Verb::List, Verb::Update]),
            definition(Verb::Get),
            definition(Verb::Patch).subresource("status"),
        ]
    }

    /// Migrates.
    ///
    /// # Errors
    ///
    /// The API server failed repeatedly, an object is refused (by validation, for example), or the storage
    /// version changed meanwhile. `status.storedVersions` then stays unchanged.
    pub async fn run(&self, client: &Client) -> Result<MigrationReport> {
        let doing = |error: Error| error.while_doing(format_args!("migrating {}", self.crd));
        self.migrate(client).await.map_err(doing)
    }

    async fn migrate(&self, client: &Client) -> Result<MigrationReport> {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = definitions.get(&self.crd).await?;
        let version = storage_version(&definition)?;
        let mut report = MigrationReport { storage_version: version.clone(), ..MigrationReport::default() };
        if stored_versions(&definition) == [version.clone()] {
            tracing::info!(crd = self.crd, version, "all objects are stored in this version already");
            return Ok(report);
        }
        let spec = &definition.spec;
        let path = format!("/apis/{}/{version}", spec.group);
        let rewrite = Rewrite { client, path, plural: &spec.names.plural, crd: &self.crd };
        rewrite.all(self.page, self.resume.clone(), &mut report).await?;
        report.removed_versions = prune(&definitions, &self.crd, &version).await?;
        tracing::info!(
            crd = self.crd,
            version,
            rewritten = report.rewritten,
            removed = report.removed_versions.join(","),
            "storage version migration is complete"
        );
        Ok(report)
    }
}

fn storage_version(definition: &CustomResourceDefinition) -> Result<String> {
    let stored = definition.spec.versions.iter().find(|version| version.storage);
    let Some(version) = stored else {
        return Err(Error::setup("the definition has no storage version"));
    };
    if !version.served {
        return Err(Error::setup(format!(
            "the storage version {} is not served, so no object can be written",
            version.name
        )));
    }
    Ok(version.name.clone())
}

fn stored_versions(definition: &CustomResourceDefinition) -> Vec<String> {
    definition.status.as_ref().and_then(|status| status.stored_versions.clone()).unwrap_or_default()
}

/// Leaves only the storage version in `status.storedVersions`, if the storage version is still the same, and
/// returns the removed versions.
async fn prune(
    definitions: &Api<CustomResourceDefinition>,
    name: &str,
    version: &str,
) -> Result<Vec<String>> {
    let mut tries = 0;
    loop {
        let definition = definitions.get(name).await?;
        let now = storage_version(&definition)?;
        if now != version {
            return Err(Error::setup(format!(
                "the storage version changed from {version} to {now} meanwhile; run it again"
            )));
        }
        let removed = stored_versions(&definition).into_iter().filter(|stored| stored != version).collect();
        let patch = json!({
            "metadata": {"resourceVersion": definition.resource_version()},
            "status": {"storedVersions": [version]},
        });
        match definitions.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => return Ok(removed),
            Err(error) => {
                let error = Error::from(error);
                tries += 1;
                if !error.is_conflict() || tries == PRUNE_TRIES {
                    return Err(error);
                }
            }
        }
    }
}
