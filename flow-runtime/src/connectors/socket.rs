//! Lines of text over TCP.

use std::{fmt, io, marker::PhantomData, pin::Pin, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    time::{Instant, sleep_until},
};

use super::text::{BATCH_BYTES, MAX_LINE, NotUtf8, Origin, TextBatch};
use crate::{
    error::BoxError,
    source::{Bounded, Fetched, Progress, Source, SourceContext, SourceReader, Split},
};

/// The wait before the first attempt to connect again; doubled for each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Why a socket could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Nobody listens, and the retries are used up.
    #[error("cannot read from `{address}` after {attempts} attempts: {cause}; is its server running?")]
    Away {
        /// Where the server should be.
        address: String,
        /// How often it was tried without a byte received.
        attempts: u32,
        /// What the last attempt said.
        cause: io::Error,
    },
    /// The connection broke, and what is missing cannot be asked for again.
    #[error("the connection to `{address}` broke before its end: {cause}")]
    Broken {
        /// Where the server is.
        address: String,
        /// Why.
        cause: io::Error,
    },
    /// Something that looks like no line of text.
    #[error("a line from `{address}` is longer than {limit} bytes; does the server send text?")]
    LineTooLong {
        /// Where the server is.
        address: String,
        /// The longest that is read.
        limit: usize,
    },
    /// Bytes that are no text.
    #[error("{0}")]
    NotUtf8(String),
}

impl From<NotUtf8> for SocketError {
    fn from(error: NotUtf8) -> Self {
        SocketError::NotUtf8(error.to_string())
    }
}

/// Connects anew whenever the connection is closed.
#[derive(Clone, Copy, Debug)]
pub enum Reconnecting {}

/// Ends when the connection is closed.
#[derive(Clone, Copy, Debug)]
pub enum UntilClosed {}

/// Lines of text from the TCP server at `address` (`host:port`); items are `&str`, without the line ending.
///
/// One subtask connects. When the server is away or closes the connection, it is connected to again, after 100 ms at
/// first and at most 10 s later on; so the source never ends, unless [`until_closed`](SocketText::until_closed) says
/// so. What a socket has delivered it cannot deliver again: after a failure of the job, lines are missing.
///
/// ```
/// use flow_runtime::connectors::socket::socket_text;
/// let lines = socket_text("localhost:9999").max_retries(20);
/// ```
pub fn socket_text(address: impl Into<String>) -> SocketText {
    SocketText { address: address.into(), max_retries: u32::MAX, mode: PhantomData }
}

/// The source [`socket_text`].
pub struct SocketText<M = Reconnecting> {
    address: String,
    max_retries: u32,
    mode: PhantomData<fn() -> M>,
}

impl<M> SocketText<M> {
    /// Fails the job after `n` attempts to connect again without a byte received in between; without it, the source
    /// tries for ever.
    #[must_use]
    pub fn max_retries(mut self, n: u32) -> Self {
        self.max_retries = n;
        self
    }
}

impl SocketText {
    /// Ends when the server closes the connection.
    #[must_use]
    pub fn until_closed(self) -> SocketText<UntilClosed> {
        SocketText { address: self.address, max_retries: self.max_retries, mode: PhantomData }
    }
}

impl<M> fmt::Debug for SocketText<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketText").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Whether a closed connection is the end.
pub trait OnClose: 'static {
    /// It is.
    const ENDS: bool;
}

impl OnClose for Reconnecting {
    const ENDS: bool = false;
}

impl OnClose for UntilClosed {
    const ENDS: bool = true;
}

/// The server; a socket has no position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketSplit {
    address: String,
}

impl Split for SocketSplit {
    fn id(&self) -> String {
        let mut id = String::new();
        self.write_id(&mut id);
        id
    }

    fn write_id(&self, to: &mut String) {
        to.push_str(&self.address);
    }

    fn position(&self) -> String {
        "now".to_owned()
    }
}

impl<M: OnClose> Source for SocketText<M> {
    type Split = SocketSplit;
    type Batch = TextBatch;
    type Reader = SocketReader;

    async fn discover(&self, _: bool) -> Result<Vec<SocketSplit>, BoxError> {
        Ok(vec![SocketSplit { address: self.address.clone() }])
    }

    async fn open(&self, _: SourceContext, mut splits: Vec<SocketSplit>) -> Result<SocketReader, BoxError> {
        // What a checkpoint remembers may be the address of an earlier configuration.
        let address = splits.pop().map(|_| self.address.clone());
        Ok(SocketReader {
            name: address.as_deref().unwrap_or_default().into(),
            address,
            ends: M::ENDS,
            max_retries: self.max_retries,
            link: Link::Away { attempts: 0, next: Instant::now() },
            received: Vec::new(),
            scanned: 0,
            lines: 0,
            bytes: 0,
        })
    }
}

impl Bounded for SocketText<UntilClosed> {}

/// Reads lines from a connection.
///
/// Every byte received is in `received` before anything is waited for again, so that nothing is lost when the future
/// of a fetch is dropped.
pub struct SocketReader {
    name: Arc<str>,
    /// `None` when another subtask connects, and at the end.
    address: Option<String>,
    ends: bool,
    max_retries: u32,
    link: Link,
    received: Vec<u8>,
    /// How many of the received bytes hold no line ending.
    scanned: usize,
    /// What was handed out, for messages.
    lines: u64,
    bytes: u64,
}

enum Link {
    /// Until the next attempt.
    Away { attempts: u32, next: Instant },
    /// Kept here and not in the future of a fetch, which may be dropped too often to ever get through.
    Connecting { attempts: u32, stream: Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>> },
    /// Connected, after so many attempts without a byte received.
    Up { attempts: u32, stream: TcpStream },
}

impl SocketReader {
    /// Makes the first `bytes` of what was received the lines of `batch`.
    fn hand_out(&mut self, bytes: usize, batch: &mut TextBatch) -> Result<(), SocketError> {
        let origin = Origin { name: self.name.clone(), offset: self.bytes, line: Some(self.lines + 1) };
        batch.fill(origin, &self.received[..bytes])?;
        self.received.drain(..bytes);
        self.scanned = self.received.len();
        self.bytes += bytes as u64;
        self.lines += batch.len() as u64;
        Ok(())
    }

    /// Up to where there are whole lines in what was received.
    fn whole_lines(&mut self) -> Option<usize> {
        let newline = memchr::memrchr(b'\n', &self.received[self.scanned..]);
        match newline {
            Some(newline) => Some(self.scanned + newline + 1),
            None => {
                self.scanned = self.received.len();
                None
            }
        }
    }

    /// Puts off the next attempt to connect.
    fn retry(&mut self, address: &str, attempts: u32, cause: io::Error) -> Result<(), SocketError> {
        if attempts >= self.max_retries {
            return Err(SocketError::Away {
                address: address.to_owned(),
                attempts: attempts.saturating_add(1),
                cause,
            });
        }
        let wait = LONGEST_WAIT.min(FIRST_WAIT * 2u32.pow(attempts.min(10)));
        tracing::warn!("`{address}` cannot be read: {cause}; connecting again in {wait:?}");
        self.link = Link::Away { attempts: attempts.saturating_add(1), next: Instant::now() + wait };
        Ok(())
    }

    /// Waits for bytes. `Ok(0)` when the connection was closed.
    async fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<usize> {
        let mut total = 0;
        received.reserve(64 * 1024);
        let mut read = stream.read_buf(received).await?;
        // What else is there already makes the batch larger.
        while read > 0 {
            total += read;
            if total >= BATCH_BYTES {
                break;
            }
            received.reserve(64 * 1024);
            read = match stream.try_read_buf(received) {
                Ok(read) => read,
                // An end or an error comes again with the next call.
                Err(_) => break,
            };
        }
        Ok(total)
    }
}

impl fmt::Debug for SocketReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SocketReader")
            .field("address", &self.address)
            .field("lines", &self.lines)
            .finish_non_exhaustive()
    }
}

impl SourceReader for SocketReader {
    type Split = SocketSplit;
    type Batch = TextBatch;

    fn batch(&self) -> TextBatch {
        TextBatch::default()
    }

    async fn fetch(&mut self, fetched: &mut Fetched<TextBatch, SocketSplit>) -> Result<Progress, BoxError> {
        fetched.batch.clear();
        let Some(address) = self.address.clone() else { return Ok(Progress::Finished) };
        loop {
            if let Some(bytes) = self.whole_lines() {
                self.hand_out(bytes, &mut fetched.batch)?;
                return Ok(Progress::More);
            }
            if self.received.len() > MAX_LINE {
                return Err(SocketError::LineTooLong { address, limit: MAX_LINE }.into());
            }
            match &mut self.link {
                Link::Away { attempts, next } => {
                    let attempts = *attempts;
                    sleep_until(*next).await;
                    let stream = Box::pin(TcpStream::connect(address.clone()));
                    self.link = Link::Connecting { attempts, stream };
                }
                Link::Connecting { attempts, stream } => {
                    let attempts = *attempts;
                    match stream.await {
                        Ok(stream) => {
                            tracing::info!("connected to `{address}`");
                            self.link = Link::Up { attempts, stream };
                        }
                        Err(cause) => self.retry(&address, attempts, cause)?,
                    }
                }
                Link::Up { attempts, stream } => {
                    match SocketReader::receive(stream, &mut self.received).await {
                        Ok(0) => {
                            let attempts = *attempts;
                            // The last line may have no ending.
                            self.hand_out(self.received.len(), &mut fetched.batch)?;
                            if self.ends {
                                self.address = None;
                                return Ok(Progress::Finished);
                            }
                            let cause = io::Error::new(
                                io::ErrorKind::UnexpectedEof,
                                "the server closed the connection",
                            );
                            self.retry(&address, attempts, cause)?;
                            if fetched.batch.len() > 0 {
                                return Ok(Progress::More);
                            }
                        }
                        Ok(_) => *attempts = 0,
                        Err(cause) if self.ends => return Err(SocketError::Broken { address, cause }.into()),
                        Err(cause) => {
                            let attempts = *attempts;
                            // A line that was cut off is no line.
                            self.received.clear();
                            self.scanned = 0;
                            self.retry(&address, attempts, cause)?;
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
