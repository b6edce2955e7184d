use std::fs;

use proptest::prelude::*;

use crate::checkpoint::{CheckpointError, Damage, PartFile, envelope, tests::*};

/// A small manifest and its file.
fn sealed() -> (Manifest, Vec<u8>) {
    let mut manifest = Manifest::new("job", CheckpointId(7), 128);
    manifest.operators.push(operator("s", "sum"));
    let file = PartFile { path: "chk-0000000007/s-0.part".into(), bytes: 3, crc: 0xdead_beef };
    manifest.states.push(StatePart { uid: "s".into(), subtask: 0, files: vec![file] });
    let file = envelope::seal_manifest("m", &manifest).unwrap().to_vec();
    (manifest, file)
}

fn part(payload: &'static [u8]) -> Vec<u8> {
    part_of(envelope::PLAIN, payload)
}

fn part_of(format: u32, payload: &'static [u8]) -> Vec<u8> {
    let header = envelope::part_header(format, payload, envelope::part_crc(format, payload));
    [&header[..], payload].concat()
}

fn open(part: &[u8]) -> Result<Bytes, CheckpointError> {
    envelope::open_part("p", &Bytes::copy_from_slice(part)).map(|part| part.payload)
}

#[test]
fn what_is_sealed_opens() {
    let (manifest, file) = sealed();
    assert_eq!(envelope::open_manifest("m", &file).unwrap(), manifest);
    for payload in [&b""[..], b"x", b"some state"] {
        assert_eq!(open(&part(payload)).unwrap(), payload);
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (_, manifest) = sealed();
    for bit in 0..manifest.len() * 8 {
        let mut file = manifest.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        assert!(envelope::open_manifest("m", &file).is_err(), "bit {bit} of a manifest");
    }
    for format in [envelope::PLAIN, envelope::ZSTD] {
        let part = part_of(format, b"some state");
        for bit in 0..part.len() * 8 {
            let mut file = part.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&file).is_err(), "bit {bit} of a part of format {format}");
        }
    }
}

#[test]
fn every_truncation_and_every_addition_is_noticed() {
    let (_, manifest) = sealed();
    let part = part(b"some state");
    for length in 0..manifest.len() {
        assert!(envelope::open_manifest("m", &manifest[..length]).is_err(), "{length} bytes of a manifest");
    }
    for length in 0..part.len() {
        let error = open(&part[..length]).unwrap_err().to_string();
        assert!(error.contains("is truncated"), "{length} bytes of a part: {error}");
    }
    for extra in [&b"\0"[..], b"\n", b"more"] {
        assert!(envelope::open_manifest("m", &[&manifest[..], extra].concat()).is_err());
        assert!(open(&[&part[..], extra].concat()).is_err());
    }
}

#[test]
fn another_format_is_not_called_damaged() {
    let (_, file) = sealed();
    let text = String::from_utf8(file).unwrap();
    for (format, found, advice) in
        [("flow-checkpoint 3 ", 3, "or a newer one"), ("flow-checkpoint 1 ", 1, "--fresh")]
    {
        let other = text.replacen("flow-checkpoint 2 ", format, 1);
        let error = envelope::open_manifest("m", other.as_bytes()).unwrap_err();
        let expected =
            |e: &_| matches!(e, CheckpointError::Format { found: f, supported: 2, .. } if *f == found);
        assert!(expected(&error) && error.to_string().contains(advice), "{error}");
    }
    let mut later = part(b"state");
    later[8] = 3;
    assert!(matches!(open(&later).unwrap_err(), CheckpointError::Format { found: 3, supported: 2, .. }));
}

#[test]
fn one_format_is_never_taken_for_the_other() {
    for (from, to) in [(envelope::PLAIN, envelope::ZSTD), (envelope::ZSTD, envelope::PLAIN)] {
        let mut file = part_of(from, b"state");
        file[8] = u8::try_from(to).unwrap();
        assert!(matches!(open(&file), Err(CheckpointError::Damaged { damage: Damage::Checksum, .. })));
    }
}

#[test]
fn a_manifest_can_be_read_by_a_person() {
    let (mut manifest, _) = sealed();
    let split = SplitState { id: "events-3".into(), position: "offset 17".into(), data: vec![0, 171, 255] };
    manifest.sources.push(SourcePart { uid: "in".into(), subtask: 0, splits: vec![split] });
    let text = String::from_utf8(envelope::seal_manifest("m", &manifest).unwrap().to_vec()).unwrap();
    for line in [r#""job": "job","#, r#""id": 7,"#, r#""position": "offset 17","#, r#""data": "00abff""#] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert_eq!(envelope::open_manifest("m", text.as_bytes()).unwrap(), manifest);
}

#[test]
fn splits_that_are_no_hexadecimal_are_refused() {
    let split = |data: &str| format!(r#"{{"id": "a", "position": "0", "data": "{data}"}}"#);
    let read = |data: &str| serde_json::from_str::<SplitState>(&split(data));
    assert_eq!(read("0aFF").unwrap().data, [10, 255]);
    for wrong in ["0", "0g", "é0", "+1"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn a_part_says_what_is_wrong_with_it() {
    let (dir, store) = directory();
    let id = CheckpointId(1);
    let part = store.put_part(id, "sum-0", Bytes::from_static(b"some state")).await.unwrap();
    let other = store.put_part(id, "other", Bytes::from_static(b"some stuff")).await.unwrap();
    let file = file_like(dir.path(), "sum-0");
    let sound = fs::read(&file).unwrap();
    let damage = async || match store.get_part(&part).await {
        Err(CheckpointError::Damaged { path, damage }) if path == part.path => damage,
        other => panic!("{other:?}"),
    };

    fs::write(&file, &sound[..30]).unwrap();
    assert_eq!(damage().await, Damage::Length { expected: 34, found: 30 });
    fs::write(&file, [&sound[..33], b"!"].concat()).unwrap();
    assert_eq!(damage().await, Damage::Checksum);
    fs::write(&file, b"a text that somebody left here").unwrap();
    assert_eq!(damage().await, Damage::Magic);
    fs::copy(file_like(dir.path(), "other"), &file).unwrap();
    assert_eq!(damage().await, Damage::Replaced);
    fs::remove_file(&file).unwrap();
    assert_eq!(damage().await, Damage::Missing);
    fs::write(&file, &sound).unwrap();
    assert_eq!(store.get_part(&part).await.unwrap(), "some state");
    assert_eq!(store.get_part(&other).await.unwrap(), "some stuff");
}

#[tokio::test]
async fn a_manifest_cannot_lead_out_of_the_store() {
    let (dir, store) = directory();
    fs::write(dir.path().parent().unwrap().join("flow-outside.part"), part(b"x")).unwrap();
    let crc = envelope::part_crc(envelope::PLAIN, b"x");
    for path in ["../flow-outside.part", "a/../../flow-outside.part", ""] {
        let part = PartFile { path: path.into(), bytes: 1, crc };
        let error = store.get_part(&part).await.unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. } | CheckpointError::Io { .. }), "{error}");
    }
    fs::remove_file(dir.path().parent().unwrap().join("flow-outside.part")).unwrap();
}

proptest! {
    #[test]
    fn random_bytes_are_no_file(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(envelope::open_manifest("m", &bytes).is_err());
        prop_assert!(open(&bytes).is_err());
    }

    #[test]
    fn a_damaged_line_is_no_manifest(line in "flow-checkpoint [ -~]{0,40}\n?[ -~]{0,20}") {
        prop_assert!(envelope::open_manifest("m", line.as_bytes()).is_err());
    }

    #[test]
    fn replaced_bytes_are_noticed(at in any::<prop::sample::Index>(), bytes in proptest::collection::vec(any::<u8>(), 1..8)) {
        let (manifest, sound) = sealed();
        let mut file = sound.clone();
        let at = at.index(file.len());
        file.splice(at..(at + bytes.len()).min(sound.len()), bytes);
        match envelope::open_manifest("m", &file) {
            Ok(read) => prop_assert!(file == sound && read == manifest),
            Err(_) => prop_assert!(file != sound),
        }
    }
}
