use flow::TransactionHandle;

#[derive(TransactionHandle)]
#[handle(from = String)]
struct Prepared {
    gid: String,
}

fn main() {
    let _: Option<Prepared> = None;
}
