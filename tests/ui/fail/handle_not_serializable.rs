#[path = "../support/halves.rs"]
mod halves;
use {flow::{BoxError, file::*, sink::*}, halves::*, std::net::TcpStream};

struct Socket;

impl Sink for Socket {
    type Buffer = FileBuffer<Lines>;
    type Handle = TcpStream;
    type Writer = Writer<TcpStream>;
    type Committer = Committer<TcpStream>;

    fn buffer(&self, _: &SinkContext) -> FileBuffer<Lines> {
        unimplemented!()
    }

    async fn recover(&self, _: &SinkContext, _: Vec<Recovered<TcpStream>>) -> Result<(), BoxError> {
        unimplemented!()
    }

    async fn open(&self, _: &SinkContext) -> Result<(Writer<TcpStream>, Committer<TcpStream>), BoxError> {
        unimplemented!()
    }
}

fn main() {
    let _ = Socket;
}
