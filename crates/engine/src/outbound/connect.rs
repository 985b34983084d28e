//! Connections to addresses that were judged.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use taskbell_core::delivery::Failure;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::Trouble;

/// What is written to and read from.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, and who is at its other end.
pub struct Connected {
    pub stream: Box<dyn Stream>,
    pub peer: IpAddr,
}

/// Connects to one address, without a name and without a proxy.
pub trait Connect: Send + Sync {
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connected>>;
}

/// The system's sockets.
pub struct SystemConnector;

impl Connect for SystemConnector {
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connected>> {
        async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let peer = stream.peer_addr()?.ip();
            Ok(Connected { stream: Box::new(stream), peer })
        }
        .boxed()
    }
}

pub(super) fn trouble(error: &io::Error) -> Trouble {
    match error.kind() {
        // EMFILE and ENFILE on every Unix; Windows has no such low limit.
        _ if cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)) => Trouble::NoDescriptors,
        io::ErrorKind::ConnectionRefused => Failure::ConnectRefused.into(),
        io::ErrorKind::TimedOut => Failure::ConnectTimeout.into(),
        _ => Failure::ConnectFailed.into(),
    }
}
