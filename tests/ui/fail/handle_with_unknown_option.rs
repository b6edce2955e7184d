use flow::TransactionHandle;

#[derive(TransactionHandle)]
#[handle(versoin = 2)]
struct Prepared {
    gid: String,
}

fn main() {
    let _: Option<Prepared> = None;
}
