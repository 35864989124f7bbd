//! Hostile paths and queries. A URL has at most 64 KB.

use super::{Attack, MAPS, Sent, conversation, one, times};
use crate::Result;
use crate::client::{Call, Client};

pub(super) fn attacks() -> Vec<Attack> {
    let with = |query: &str, text: String| Call::get(format!("{MAPS}?{query}={text}"));
    let selecting = |text: String| with("labelSelector", text);
    let watch = "watch=true&timeoutSeconds=1&resourceVersion=0&labelSelector";
    vec![
        one("selector with 28,000 values", selecting(format!("number%20in%20({})", "b,".repeat(28_000)))),
        one("selector with 9,000 other values", selecting(format!("number%20notin%20({})", values(9_000)))),
        one("selector with 15,000 requirements", selecting("app,".repeat(15_000))),
        one("selector with 2,900 sets", selecting("app%20in%20(siege,a),".repeat(2_900))),
        one("selector of 60,000 brackets", selecting("(".repeat(60_000))),
        one("watch with 15,000 requirements", with(watch, "app,".repeat(15_000))),
        one("field selector with 3,000 parts", with("fieldSelector", "metadata.name!%3Da,".repeat(3_000))),
        one("continue token of 60,000 bytes", with("limit=1&continue", "e".repeat(60_000))),
        one("60,000 empty parameters", Call::get(format!("{MAPS}?{}", "&".repeat(60_000)))),
        one("7,500 equal parameters", Call::get(format!("{MAPS}?{}", "limit=1&".repeat(7_500)))),
        one("path with 30,000 parts", Call::get(format!("/api{}", "/a".repeat(30_000)))),
        one("path with 20,000 escapes", Call::get(format!("/api/v1/{}", "%61".repeat(20_000)))),
        one("document of all kinds", Call::get("/openapi/v2")),
        times("metrics, 8 times", 8, Call::get("/metrics")),
        one("log of no pod", Call::get("/api/v1/namespaces/siege/pods/x/log?tailLines=9223372036854775807")),
        conversation("300 pages with 100 selectors", |client| Box::pin(pages(client))),
        conversation("500 subresources with names of 60 KB", |client| Box::pin(subresources(client))),
    ]
}

/// Asks for subresources that do not exist: a server may count the requests by name.
async fn subresources(client: Client) -> Result<Sent> {
    let connection = client.connect().await?;
    let (mut bytes, mut outcome) = (0, String::new());
    for number in 0..500 {
        let path = format!("{MAPS}/one/{number}{}", "x".repeat(60_000));
        bytes += path.len();
        outcome = connection.send(Call::get(path)).await?.code.to_string();
    }
    Ok(Sent { outcome, bytes, requests: 2 })
}

fn values(count: usize) -> String {
    (0..count).map(|number| format!("{number},")).collect::<Vec<_>>().concat()
}

/// Lists by pages of one object, with other selectors: a server may keep an index or a snapshot for each.
async fn pages(client: Client) -> Result<Sent> {
    let connection = client.connect().await?;
    let (mut bytes, mut outcome) = (0, String::new());
    for number in 0..300 {
        let path = format!("{MAPS}?limit=1&labelSelector=key-{}!%3Dx", number % 100);
        bytes += path.len();
        let reply = connection.send(Call::get(path)).await?;
        outcome = reply.code.to_string();
    }
    Ok(Sent { outcome, bytes, requests: 3 })
}
