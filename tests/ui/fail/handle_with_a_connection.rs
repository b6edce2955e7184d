use std::net::TcpStream;

use flow::TransactionHandle;

#[derive(TransactionHandle)]
struct Prepared {
    gid: String,
    connection: TcpStream,
}

fn main() {
    let _: Option<Prepared> = None;
}
