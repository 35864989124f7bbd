//! Indexes of several platforms, and SBOMs that refer to images.

use serde_json::{Value, json};
use windlass_image::build::{Compression, Files, Recipe, attach, image, index};
use windlass_image::{Config, Descriptor, Digest, Error, NoProgress, Platform, Pushed, Reference, Store};

use crate::front::{Act, Front, Head};
use crate::registry::client;
use crate::sample::Sandbox;

const SBOM: &str = "application/vnd.cyclonedx+json";

fn build(store: &Store, architecture: &str) -> Descriptor {
    let mut files = Files::new();
    files.bytes("manager", 0o755, architecture);
    let recipe = Recipe {
        files,
        config: Config::default(),
        platform: Platform::linux(architecture),
        time: 0,
        created: "1970-01-01T00:00:00Z".to_owned(),
        created_by: "test".to_owned(),
        compression: Compression::Gzip,
    };
    image(store, &recipe).unwrap()
}

/// Names an index of two platforms, each with an SBOM, as `windlass image build` does. Returns the images and the SBOMs.
fn two_platforms(store: &Store, name: &str) -> [(Descriptor, Descriptor); 2] {
    let images = ["x86_64", "aarch64"].map(|architecture| {
        let built = build(store, architecture);
        let document = json!({ "bomFormat": "CycloneDX", "components": [architecture] }).to_string();
        let sbom = attach(store, &built, SBOM, document.as_bytes()).unwrap();
        (built, sbom)
    });
    let top = index(store, images.iter().map(|(image, _)| image.clone()).collect()).unwrap();
    let name: Reference = name.parse().unwrap();
    store.tag(&name, &top).unwrap();
    for (_, sbom) in &images {
        store.tag(&name.with_digest(sbom.digest.clone()), sbom).unwrap();
    }
    images
}

async fn push(sandbox: &Sandbox, target: &Reference) -> Pushed {
    client().push(&sandbox.store, &"op:v1".parse().unwrap(), target, &NoProgress).await.unwrap()
}

fn target(front: &Front) -> Reference {
    format!("{}/op:v1", front.address).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_gives_each_platform_its_image() {
    let sandbox = Sandbox::new();
    let images = two_platforms(&sandbox.store, "op:v1");
    let front = Front::plain(&sandbox, |_| Act::Pass).await;
    let pushed = push(&sandbox, &target(&front)).await;
    for (built, _) in &images {
        let platform = built.platform.clone().unwrap();
        let folder = sandbox.folder.path().join(&platform.architecture);
        let store = Store::open(folder).unwrap();
        let pulled = client().pull(&store, &target(&front), &platform, &NoProgress).await.unwrap();
        assert_eq!(pulled.digest(), &pushed.digest);
        assert_eq!(pulled.image_config().platform, platform);
        // The other platform is not in this store.
        let again = client().push(&store, &target(&front), &target(&front), &NoProgress).await;
        assert!(matches!(again, Err(Error::NotFound(_))), "{again:?}");
    }
    let store = Store::open(sandbox.folder.path().join("other")).unwrap();
    let pulled = client().pull(&store, &target(&front), &Platform::linux("s390x"), &NoProgress).await;
    let Err(Error::NotFound(message)) = pulled else { panic!("{pulled:?}") };
    assert!(message.contains("no matching manifest for linux/s390x"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_copied_with_the_sboms_of_its_images() {
    let sandbox = Sandbox::new();
    let images = two_platforms(&sandbox.store, "op:v1");
    let layout = Store::open(sandbox.folder.path().join("layout")).unwrap();
    windlass_image::build::copy(&sandbox.store, &"op:v1".parse().unwrap(), &layout).unwrap();
    for (built, sbom) in &images {
        let found = layout.referrers(&built.digest).unwrap();
        assert_eq!(found.iter().map(|it| &it.digest).collect::<Vec<_>>(), [&sbom.digest]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_with_the_referrers_api_lists_the_sbom_of_each_platform() {
    let sandbox = Sandbox::new();
    let images = two_platforms(&sandbox.store, "op:v1");
    let front = Front::plain(&sandbox, |_| Act::Pass).await;
    push(&sandbox, &target(&front)).await;
    for (built, sbom) in &images {
        let found = front.store.referrers(&built.digest).unwrap();
        assert_eq!(found.iter().map(|it| &it.digest).collect::<Vec<_>>(), [&sbom.digest]);
        assert!(fallback(&front, &built.digest).is_none(), "no tag is needed");
    }
}

/// Answers as a registry without the referrers API does: docker-registry 2.8, for example.
fn old(head: &Head) -> Act {
    if head.line.contains("/referrers/") {
        return Act::Answer(404, vec![], "404 page not found".into());
    }
    if head.line.starts_with("PUT ") { Act::Without("oci-subject") } else { Act::Pass }
}

/// Returns the index with the tag that stands for the referrers of a manifest.
fn fallback(front: &Front, subject: &Digest) -> Option<Value> {
    let tag = target(front).with_tag(&format!("sha256-{}", subject.hex())).unwrap();
    let index = front.store.resolve(&tag).unwrap()?;
    Some(serde_json::from_slice(&front.store.read(&index.digest).unwrap()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_without_the_referrers_api_gets_a_tag_that_lists_the_sbom_once() {
    let sandbox = Sandbox::new();
    let images = two_platforms(&sandbox.store, "op:v1");
    let front = Front::plain(&sandbox, old).await;
    push(&sandbox, &target(&front)).await;
    push(&sandbox, &target(&front)).await;
    for (built, sbom) in &images {
        let index = fallback(&front, &built.digest).expect("a tag");
        let listed = &index["manifests"];
        assert_eq!(listed.as_array().map(Vec::len), Some(1), "{index}");
        assert_eq!(listed[0]["digest"], sbom.digest.to_string());
        assert_eq!(listed[0]["artifactType"], SBOM);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_of_referrers_keeps_those_of_other_tools() {
    let sandbox = Sandbox::new();
    let images = two_platforms(&sandbox.store, "op:v1");
    let front = Front::plain(&sandbox, old).await;
    let signature = attach(&sandbox.store, &images[0].0, "application/x-signature", b"signed").unwrap();
    let by_digest: Reference = format!("op@{}", signature.digest).parse().unwrap();
    sandbox.store.tag(&by_digest, &signature).unwrap();
    push(&sandbox, &target(&front)).await;
    let first = fallback(&front, &images[0].0.digest).unwrap();
    assert_eq!(first["manifests"].as_array().map(Vec::len), Some(2), "{first}");
    sandbox.store.remove(&by_digest).unwrap();
    push(&sandbox, &target(&front)).await;
    assert_eq!(fallback(&front, &images[0].0.digest).unwrap(), first);
}
