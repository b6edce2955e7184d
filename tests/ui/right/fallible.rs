//! Closures that may fail, by `?` and by a policy; `?` about options in `filter_map`.
#![deny(warnings)]
use flow::{BoxError, file, pipeline};

fn field(line: &str, n: usize) -> Result<&str, BoxError> {
    line.split(',').nth(n).ok_or_else(|| format!("no field {n}").into())
}

#[pipeline(on_error = skip)]
fn p(limit: usize) {
    let fields = source(file::text("in"))
        .map(|line| {
            let key = field(line, 0)?;
            Ok((key, field(line, 1)?))
        })
        .filter(|(key, value)| {
            let short = key.len() + value.parse::<usize>()? < limit;
            Ok(short)
        })
        .on_error(fail);
    let values = fields
        .flat_map(|(_, value)| Ok([value.parse::<u64>()?, 1]))
        .inspect(|value| {
            if *value > 9 {
                return Err("too large".into());
            }
            Ok(())
        })
        .on_error(skip);
    values.key_by(|value| value % 2).sum(|value| Ok(u32::try_from(*value)?)).sink(file::to_tsv("sums"));
    fields.filter_map(|(key, value)| Some(key.strip_prefix(value)?.len())).sink(file::to_lines("options"));
    fields.filter_map(|(key, _)| Ok(key.parse::<u64>()?.checked_sub(1))).sink(file::to_lines("both"));
}

#[test]
fn compiles() {
    let _ = p(3);
}
