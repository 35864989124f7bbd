//! Who a request is from.

use expect_test::expect;
use serde_json::json;

use crate::harness::Api;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_service_account_may_look_around_and_nothing_else() {
    let api = Api::start_over_tls();
    let ns = api.namespace().await;
    let bot = api.service_account(&ns, "bot").await;
    let review = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
    let myself = bot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review).await.is(201);
    assert_eq!(
        myself.text_at("/status/userInfo/username"),
        format!("system:serviceaccount:ns-{}:bot", api.id)
    );
    bot.get("/apis").await.is(200);
    bot.get(MAPS).await.shows(expect![[r#"
        403 Forbidden: configmaps is forbidden: User "system:serviceaccount:ns-ID:bot" cannot list resource "configmaps" in API group "" in the namespace "default"
        kind="configmaps""#]]);
    bot.delete(&format!("/api/v1/namespaces/{ns}")).await.is(403);
}
