//! A link between two nodes that a test can cut. It is a proxy, so nodes know nothing of it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What passes a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Everything.
    Open,
    /// Nothing: both sides wait, as behind a broken cable. What was sent arrives later.
    Cut,
    /// Only requests: the one who asks does not hear what came of it.
    NoReplies,
}

/// A link to a node.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: String,
    mode: watch::Sender<Mode>,
}

impl Link {
    /// Makes a link to the node at `target`.
    pub(crate) async fn to(target: &str) -> Link {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (mode, seen) = watch::channel(Mode::Open);
        let target = target.to_string();
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let Ok(to) = TcpStream::connect(&target).await else { continue };
                let (requests, replies) = (from.into_split(), to.into_split());
                let pass = |mode: &Mode| *mode != Mode::Cut;
                tokio::spawn(pump(requests.0, replies.1, seen.clone(), pass));
                let pass = |mode: &Mode| *mode == Mode::Open;
                tokio::spawn(pump(replies.0, requests.1, seen.clone(), pass));
            }
        });
        Link { address, mode }
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

/// Passes bytes on while the link lets them, until either side has closed.
async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
    pass: impl Fn(&Mode) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes).await {
        if mode.wait_for(&pass).await.is_err() || count == 0 {
            break;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}
