use flow::TransactionHandle;

#[derive(TransactionHandle)]
#[handle(version = 2, from = u64)]
struct Prepared {
    gid: String,
}

impl From<u64> for Prepared {
    fn from(number: u64) -> Self {
        Prepared { gid: number.to_string() }
    }
}

fn main() {
    let _ = Prepared::from(1);
}
