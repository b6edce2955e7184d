use std::time::Instant;

use flow::TransactionHandle;

#[derive(TransactionHandle)]
enum Pending {
    Since(Instant),
}

fn main() {
    let _: Option<Pending> = None;
}
