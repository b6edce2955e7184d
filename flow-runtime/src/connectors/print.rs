//! Records on standard output.

mod form;

use std::{fmt, io, mem};

use serde::Serialize;

use super::text::BATCH_BYTES;
use crate::{
    checkpoint::CheckpointId,
    error::BoxError,
    sink::{
        CommitError, Committed, Recovered, Sink, SinkBuffer, SinkCommitter, SinkContext, SinkWriter, Write,
    },
};

/// Prints each record on a line of its own: strings as they are, tuples as `(to,1)`, structs as `Word{text=to, n=1}`.
/// When several subtasks print, each line begins with the number of its subtask: `2> (to,1)`.
///
/// ```
/// use flow_runtime::connectors::print::print;
/// let sink = print();
/// let log = print().stderr();
/// ```
#[must_use]
pub fn print() -> Print {
    Print { stream: Stream::Stdout }
}

/// The sink [`print()`].
#[derive(Clone, Copy, Debug)]
pub struct Print {
    stream: Stream,
}

#[derive(Clone, Copy, Debug)]
enum Stream {
    Stdout,
    Stderr,
}

impl Print {
    /// Prints to standard error instead.
    #[must_use]
    pub fn stderr(mut self) -> Self {
        self.stream = Stream::Stderr;
        self
    }
}

impl Stream {
    fn print(self, text: &[u8]) -> Result<(), PrintError> {
        let (name, printed) = match self {
            Stream::Stdout => ("standard output", write_all(io::stdout().lock(), text)),
            Stream::Stderr => ("standard error", write_all(io::stderr().lock(), text)),
        };
        printed.map_err(|cause| match cause.kind() {
            io::ErrorKind::BrokenPipe => PrintError::Closed { name },
            _ => PrintError::Failed { name, cause },
        })
    }
}

fn write_all(mut out: impl io::Write, text: &[u8]) -> io::Result<()> {
    out.write_all(text)?;
    out.flush()
}

/// Why nothing could be printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrintError {
    /// Nobody reads it any more.
    #[error("{name} is closed: the program that read it has ended")]
    Closed {
        /// Which of the two.
        name: &'static str,
    },
    /// The operating system refused.
    #[error("cannot write to {name}: {cause}")]
    Failed {
        /// Which of the two.
        name: &'static str,
        /// Why.
        cause: io::Error,
    },
}

impl Sink for Print {
    type Buffer = PrintBuffer;
    type Handle = ();
    type Writer = PrintWriter;
    type Committer = NothingToCommit;

    fn buffer(&self, cx: &SinkContext) -> PrintBuffer {
        let prefix = if cx.parallelism > 1 { format!("{}> ", cx.subtask + 1) } else { String::new() };
        PrintBuffer { prefix, text: Vec::new(), records: 0 }
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<()>>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn open(&self, _: &SinkContext) -> Result<(PrintWriter, NothingToCommit), BoxError> {
        Ok((PrintWriter { stream: self.stream }, NothingToCommit))
    }
}

/// Lines to be printed.
pub struct PrintBuffer {
    prefix: String,
    text: Vec<u8>,
    records: usize,
}

impl fmt::Debug for PrintBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrintBuffer").field("records", &self.records).finish_non_exhaustive()
    }
}

impl SinkBuffer for PrintBuffer {
    fn len(&self) -> usize {
        self.records
    }

    fn is_full(&self) -> bool {
        self.text.len() >= BATCH_BYTES
    }

    fn clear(&mut self) {
        self.text.clear();
        self.records = 0;
    }
}

impl<T: Serialize> Write<T> for PrintBuffer {
    fn write(&mut self, record: T) -> Result<(), BoxError> {
        let start = self.text.len();
        self.text.extend_from_slice(self.prefix.as_bytes());
        if let Err(error) = form::write(&record, &mut self.text) {
            self.text.truncate(start);
            return Err(error.into());
        }
        self.text.push(b'\n');
        self.records += 1;
        Ok(())
    }
}

/// Prints buffers, each at once, so that the lines of several subtasks do not mix.
#[derive(Debug)]
pub struct PrintWriter {
    stream: Stream,
}

impl SinkWriter for PrintWriter {
    type Buffer = PrintBuffer;
    type Handle = ();

    async fn write(&mut self, buffer: &mut PrintBuffer) -> Result<(), BoxError> {
        let (stream, text) = (self.stream, mem::take(&mut buffer.text));
        // Whoever reads the output may be slow.
        let printed = tokio::task::spawn_blocking(move || stream.print(&text).map(|()| text));
        buffer.text = printed.await??;
        Ok(())
    }

    async fn pre_commit(&mut self, _: CheckpointId) -> Result<Option<()>, BoxError> {
        Ok(None)
    }
}

/// The committer of a sink without transactions.
#[derive(Clone, Copy, Debug)]
pub struct NothingToCommit;

impl SinkCommitter for NothingToCommit {
    type Handle = ();

    async fn commit(&mut self, _: CheckpointId, (): &()) -> Result<Committed, CommitError> {
        Ok(Committed::Already)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cx(parallelism: usize) -> SinkContext {
        SinkContext { subtask: parallelism - 1, parallelism, attempt: 1, ..SinkContext::new("job", "print") }
    }

    #[tokio::test]
    async fn several_subtasks_are_told_apart() {
        let mut buffer = print().buffer(&cx(1));
        buffer.write(("to", 1)).unwrap();
        buffer.write("be").unwrap();
        assert_eq!((buffer.text.as_slice(), buffer.len()), (&b"(to,1)\nbe\n"[..], 2));
        let mut buffer = print().buffer(&cx(3));
        buffer.write((String::from("to"), 1)).unwrap();
        assert_eq!(buffer.text, b"3> (to,1)\n");
        let (mut writer, _) = print().stderr().open(&cx(3)).await.unwrap();
        writer.write(&mut buffer).await.unwrap();
        buffer.clear();
        assert!(buffer.is_empty() && buffer.text.capacity() > 0);
    }
}
