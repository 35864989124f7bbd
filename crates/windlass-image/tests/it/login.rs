//! Registries that ask for a password, for a token, and for trust in their own CA.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windlass_image::{Credentials, Error, Login, NoProgress, Platform, Pushed, Reference, Registry, Store};

use crate::front::{Act, Front, Head};
use crate::registry::options;
use crate::sample::{Layer, Sandbox};

const REFUSED: &str =
    r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required","detail":null}]}"#;

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Answers as a registry with `htpasswd` does.
fn with_password(head: &Head) -> Act {
    if head.authorization.as_deref() == Some(&basic("me", "right")) {
        return Act::Pass;
    }
    Act::Answer(401, vec![("www-authenticate", "Basic realm=\"registry\"".into())], REFUSED.into())
}

fn reference(front: &Front, repository: &str) -> Reference {
    format!("{}/{repository}:v1", front.address).parse().unwrap()
}

async fn push(
    sandbox: &Sandbox,
    front: &Front,
    repository: &str,
    password: Option<&str>,
    trust: bool,
) -> Result<Pushed, Error> {
    let mut options = options();
    options.credentials = Credentials::of(password.map(|password| Login::password("me", password)));
    options.ca_files = trust.then(|| front.ca_file.clone()).into_iter().collect();
    let target = reference(front, repository);
    Registry::new(options).unwrap().push(&sandbox.store, &"web".parse().unwrap(), &target, &NoProgress).await
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.image("web", &[Layer::new().file("a", "1"), Layer::new().file("b", "2")]);
    sandbox
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_and_the_ca_of_the_registry_are_enough() {
    let sandbox = sandbox();
    let front = Front::with_tls(&sandbox, with_password).await;
    let pushed = push(&sandbox, &front, "web", Some("right"), true).await.unwrap();
    assert_eq!(pushed.transferred, 3);
    let mut options = options();
    options.credentials = Credentials::of([Login::password("me", "right")]);
    options.ca_files = vec![front.ca_file.clone()];
    let other = Store::open(sandbox.folder.path().join("other")).unwrap();
    let pulled = Registry::new(options)
        .unwrap()
        .pull(&other, &reference(&front, "web"), &Platform::host(), &NoProgress)
        .await;
    assert_eq!(pulled.unwrap().digest(), &pushed.digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_refused_with_the_words_of_the_registry() {
    let sandbox = sandbox();
    let front = Front::with_tls(&sandbox, with_password).await;
    for password in [Some("hunter2"), None] {
        let pushed = push(&sandbox, &front, "web", password, true).await;
        let Err(Error::Unauthorized(message)) = pushed else { panic!("{pushed:?}") };
        assert!(message.contains("401 Unauthorized: unauthorized: authentication required"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    assert!(front.store.list().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_of_an_unknown_ca_is_not_trusted_and_gets_no_password() {
    let sandbox = sandbox();
    let front = Front::with_tls(&sandbox, |head| {
        assert!(head.authorization.is_none(), "the password went to a registry without trust");
        Act::Pass
    })
    .await;
    let pushed = push(&sandbox, &front, "web", Some("right"), false).await;
    let Err(Error::Unavailable(message)) = pushed else { panic!("{pushed:?}") };
    assert!(message.contains("certificate") && message.contains("--ca-file"), "{message}");
}

/// Answers as a registry with a token service does. The token of the service names the rights.
fn with_token(head: &Head) -> Act {
    if head.line == "GET /token" {
        if head.authorization.as_deref() != Some(&basic("me", "right")) {
            return Act::Answer(401, vec![], "incorrect username or password".into());
        }
        let scopes: Vec<String> = form_urlencoded::parse(head.query.as_bytes())
            .filter(|(key, _)| key == "scope")
            .map(|(_, scope)| scope.into_owned())
            .collect();
        return Act::Answer(200, vec![], format!(r#"{{"access_token":"{}"}}"#, scopes.join("+")));
    }
    if head.line == "GET /v2/" {
        return Act::Pass;
    }
    let repository = head.line.split("/v2/").nth(1).and_then(|path| path.split('/').next()).unwrap();
    let mut needed = vec![format!("repository:{repository}:pull,push")];
    let parameter = |name: &str| form_urlencoded::parse(head.query.as_bytes()).find(|(key, _)| key == name);
    needed.extend(parameter("from").map(|(_, from)| format!("repository:{from}:pull")));
    let has = head.authorization.as_deref().and_then(|it| it.strip_prefix("Bearer ")).unwrap_or_default();
    if needed.iter().all(|scope| has.split('+').any(|other| other == scope)) {
        return Act::Pass;
    }
    let challenge = format!(
        "Bearer realm=\"http://{}/token\",service=\"registry\",scope=\"{}\"",
        head.host,
        needed.join(" ")
    );
    Act::Answer(401, vec![("www-authenticate", challenge)], REFUSED.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_allows_a_push_and_a_mount_from_another_repository() {
    let sandbox = sandbox();
    // The registry behind the front has one place for the blobs of all repositories.
    let front = Front::plain(&sandbox, |head| match with_token(head) {
        Act::Pass if head.line.starts_with("HEAD /v2/two/blobs/") => Act::Answer(404, vec![], String::new()),
        act => act,
    })
    .await;
    let first = push(&sandbox, &front, "one", Some("right"), false).await.unwrap();
    assert_eq!((first.transferred, first.mounted), (3, 0));
    // A push from this name, or a pull, tells the store that the repository has the blobs.
    let image = sandbox.store.resolve(&"web".parse().unwrap()).unwrap().unwrap();
    sandbox.store.tag(&reference(&front, "one"), &image).unwrap();
    let second = push(&sandbox, &front, "two", Some("right"), false).await.unwrap();
    assert_eq!((second.digest, second.transferred, second.mounted), (first.digest, 0, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_service_that_refuses_the_password_ends_the_push() {
    let sandbox = sandbox();
    let front = Front::plain(&sandbox, with_token).await;
    let pushed = push(&sandbox, &front, "one", Some("wrong"), false).await;
    let Err(Error::Unauthorized(message)) = pushed else { panic!("{pushed:?}") };
    assert!(message.contains("unauthorized: authentication required"), "{message}");
    assert!(front.store.list().unwrap().is_empty());
}
