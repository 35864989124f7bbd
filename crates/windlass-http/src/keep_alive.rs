//! Pings that find out whether a connection is alive.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

/// The time between two pings, as from client-go.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// A connection whose ping is not answered in this time is broken, as in client-go.
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The pings of one connection.
pub(crate) struct KeepAlive {
    pings: PingPong,
    timer: Pin<Box<Sleep>>,
    /// A ping was sent and is not answered yet.
    is_awaiting: bool,
}

impl KeepAlive {
    pub(crate) fn new(pings: PingPong) -> Self {
        Self { pings, timer: Box::pin(sleep(PING_INTERVAL)), is_awaiting: false }
    }

    /// Sends a ping when a ping is due. Ready when the server has not answered a ping in time, or the connection has ended.
    pub(crate) fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.is_awaiting
                && let Poll::Ready(answer) = self.pings.poll_pong(cx)
            {
                if answer.is_err() {
                    return Poll::Ready(());
                }
                self.is_awaiting = false;
                self.timer.as_mut().reset(Instant::now() + PING_INTERVAL);
            }
            ready!(self.timer.as_mut().poll(cx));
            if self.is_awaiting || self.pings.send_ping(Ping::opaque()).is_err() {
                return Poll::Ready(());
            }
            self.is_awaiting = true;
            self.timer.as_mut().reset(Instant::now() + PING_TIMEOUT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{io::DuplexStream, time::timeout};

    use super::*;

    /// Returns how long a connection to a peer lives, at most an hour.
    async fn lifetime(own: DuplexStream) -> Duration {
        let (_sender, mut connection) = h2::client::handshake(own).await.expect("a connection");
        let mut keep_alive = KeepAlive::new(connection.ping_pong().expect("unused pings"));
        let begun = Instant::now();
        let driven = async {
            tokio::select! {
                biased;
                ended = &mut connection => ended.expect("the connection stays open"),
                () = poll_fn(|cx| keep_alive.poll_broken(cx)) => {}
            }
        };
        let _ = timeout(Duration::from_secs(3600), driven).await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_no_ping_is_given_up() {
        let (own, _silent) = tokio::io::duplex(1 << 16);
        assert_eq!(lifetime(own).await, PING_INTERVAL + PING_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_is_kept() {
        let (own, peer) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move {
            let mut server = h2::server::handshake(peer).await.expect("a connection");
            while server.accept().await.is_some() {}
        });
        assert_eq!(lifetime(own).await, Duration::from_secs(3600));
    }
}
