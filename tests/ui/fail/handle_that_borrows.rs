use flow::TransactionHandle;

#[derive(TransactionHandle)]
struct Prepared<'a> {
    gid: &'a str,
}

fn main() {
    let _: Option<Prepared<'static>> = None;
}
