//! Tokens of Keystone: obtained once, and renewed before expiry and after a refusal.

use network::neutron::{Credentials, Error, stand_in::Account};

use super::*;

async fn stand_in(lifetime: Duration) -> (StandIn, Credentials) {
    let account = Account {
        username: "operator".to_owned(),
        password: "secret".to_owned(),
        project: "team".to_owned(),
        lifetime,
    };
    let stand_in = StandIn::with_keystone(account.clone()).await.expect("a port");
    let credentials = stand_in.credentials(&account);
    (stand_in, credentials)
}

fn client(stand_in: &StandIn, credentials: &Credentials) -> Neutron {
    Neutron::new(NeutronConfig::keystone(stand_in.url(), credentials.clone())).expect("a client")
}

#[tokio::test]
async fn a_token_is_obtained_once_and_again_when_it_is_refused() {
    let (stand_in, credentials) = stand_in(Duration::from_secs(3600)).await;
    let neutron = client(&stand_in, &credentials);
    futures::future::join_all((0..8).map(|_| neutron.networks(&[]))).await;
    assert_eq!(stand_in.tokens_issued(), 1);
    stand_in.revoke_tokens();
    neutron.networks(&[]).await.expect("with another token");
    assert_eq!(stand_in.tokens_issued(), 2);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    // Less than the margin is left from the start.
    let (stand_in, credentials) = stand_in(Duration::from_secs(30)).await;
    let neutron = client(&stand_in, &credentials);
    neutron.networks(&[]).await.expect("listed");
    neutron.networks(&[]).await.expect("listed");
    assert_eq!(stand_in.tokens_issued(), 2);
}

#[tokio::test]
async fn a_wrong_password_is_unauthorized_and_appears_in_no_message() {
    let (stand_in, mut credentials) = stand_in(Duration::from_secs(3600)).await;
    credentials.password = "hunter2".to_owned();
    let error = client(&stand_in, &credentials).networks(&[]).await.expect_err("refused");
    assert!(matches!(error, Error::Unauthorized { server: "Keystone", .. }), "{error}");
    assert!(!format!("{error} {error:?} {credentials:?}").contains("hunter2"));
}
