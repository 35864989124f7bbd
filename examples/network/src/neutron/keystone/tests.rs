//! The client's assumptions about Keystone, tested on the stand-in and, with `KEYSTONE_TEST_URL`, on the
//! Keystone of `cargo xtask keystone start`.

use super::*;
use crate::neutron::stand_in::{Account, StandIn};

/// A Keystone and the credentials of a user.
struct Fixture {
    credentials: Credentials,
    _stand_in: Option<StandIn>,
}

impl Fixture {
    async fn start() -> Self {
        let account = Account {
            username: "admin".to_owned(),
            password: "secret".to_owned(),
            project: "admin".to_owned(),
            lifetime: Duration::from_hours(1),
        };
        let stand_in = StandIn::with_keystone(account.clone()).await.expect("a port");
        let credentials = stand_in.credentials(&account);
        match std::env::var("KEYSTONE_TEST_URL") {
            Ok(auth_url) => Self { credentials: Credentials { auth_url, ..credentials }, _stand_in: None },
            Err(_) => Self { credentials, _stand_in: Some(stand_in) },
        }
    }

    fn tokens(&self, change: impl FnOnce(&mut Credentials)) -> Tokens {
        let mut credentials = self.credentials.clone();
        change(&mut credentials);
        Tokens::new(credentials, Duration::from_secs(20)).expect("a client")
    }
}

#[tokio::test]
async fn a_token_has_a_time_and_is_kept_until_it_is_refused() {
    let fixture = Fixture::start().await;
    let tokens = fixture.tokens(|_| {});
    let now = Timestamp::now();
    let token = tokens.token(now).await.expect("a token");
    assert!(!token.id.is_empty());
    let left = token.expires.duration_since(now).as_secs();
    assert!((3500..=3700).contains(&left), "{left} s");
    assert_eq!(tokens.token(now).await.expect("a token"), token);
    tokens.forget(&token).await;
    // A Keystone may issue the same token again within a second.
    assert!(tokens.token(now).await.expect("a token").is_fresh(now));
    let almost_over = token.expires - MARGIN;
    assert!(!token.is_fresh(almost_over));
}

#[tokio::test]
async fn wrong_credentials_are_unauthorized() {
    let fixture = Fixture::start().await;
    type Change = fn(&mut Credentials);
    let changes: [(&str, Change); 3] = [
        ("password", |credentials| credentials.password = "wrong".to_owned()),
        ("user", |credentials| credentials.username = "nobody".to_owned()),
        ("project", |credentials| credentials.project = "none".to_owned()),
    ];
    for (what, change) in changes {
        let refused = fixture.tokens(change).token(Timestamp::now()).await;
        assert!(
            matches!(refused, Err(Error::Unauthorized { server: "Keystone", .. })),
            "{what}: {refused:?}"
        );
    }
}
