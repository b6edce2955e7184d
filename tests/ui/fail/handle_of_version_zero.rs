use flow::TransactionHandle;

#[derive(TransactionHandle)]
#[handle(version = 0)]
struct Prepared {
    gid: String,
}

fn main() {
    let _: Option<Prepared> = None;
}
