use std::path::Path;

use crate::checkpoint::{
    CheckpointError, CheckpointId, Store,
    location::{Location, create_dir, split_checkpoint, without_credentials},
    tests::complete,
};

fn local(path: &str) -> Location {
    Location::Local(path.into())
}

#[test]
fn paths_and_urls() {
    for (url, expected) in [
        ("checkpoints", local("checkpoints")),
        ("./a b/c", local("./a b/c")),
        ("/var/lib/job", local("/var/lib/job")),
        ("a%20b", local("a%20b")),
        ("file:///var/lib/job", local("/var/lib/job")),
        ("FILE://localhost/a%20b/%C3%BC", local("/a b/ü")),
        ("s3://bucket", Location::S3 { bucket: "bucket".into(), prefix: String::new() }),
        ("s3://bucket/a/b/", Location::S3 { bucket: "bucket".into(), prefix: "a/b".into() }),
    ] {
        assert_eq!(Location::parse(url).unwrap(), expected, "{url}");
    }
}

#[test]
fn what_is_no_place_is_refused_with_a_remedy_and_without_secrets() {
    for (url, remedy) in [
        ("", "name a directory"),
        ("file://relative", "file:///"),
        ("file:///a%zz", "%"),
        ("s3:///prefix", "s3://bucket/prefix"),
        ("s3://key:secret@bucket/x", "AWS_"),
        ("s3://bucket/x?token=secret", "AWS_"),
        ("hdfs://me:secret@host/x", "file:///"),
    ] {
        let error = Location::parse(url).unwrap_err();
        assert!(matches!(error, CheckpointError::Location { .. }) && !error.restartable());
        let error = error.to_string();
        assert!(error.contains(remedy) && !error.contains("secret"), "{url}: {error}");
    }
    assert_eq!(without_credentials("s3://k:s@b/p?x=1#y"), "s3://b/p");
    assert_eq!(without_credentials("plain@path"), "plain@path");
}

#[cfg(not(feature = "s3"))]
#[test]
fn s3_names_its_feature() {
    let error = Store::open("s3://bucket/x").unwrap_err().to_string();
    assert!(error.contains("feature `s3`"), "{error}");
}

#[test]
fn a_checkpoint_is_split_from_its_store() {
    let chk = |id| Some(CheckpointId(id));
    for (url, expected) in [
        ("dir", ("dir", None)),
        ("dir/", ("dir", None)),
        ("/", ("/", None)),
        ("", ("", None)),
        ("dir/chk-12", ("dir", chk(12))),
        ("dir/chk-0000000012/", ("dir", chk(12))),
        ("dir/chk-0000000012/manifest", ("dir", chk(12))),
        ("chk-12", (".", chk(12))),
        ("/chk-12", ("/", chk(12))),
        ("dir/chk-", ("dir/chk-", None)),
        ("dir/chk-+1", ("dir/chk-+1", None)),
        ("dir/my-chk-1", ("dir/my-chk-1", None)),
        ("file:///a/chk-1", ("file:///a", chk(1))),
        ("s3://bucket/chk-0000000001", ("s3://bucket", chk(1))),
        ("s3://bucket/a/chk-1/manifest", ("s3://bucket/a", chk(1))),
    ] {
        assert_eq!(split_checkpoint(url), expected, "{url}");
    }
}

#[tokio::test]
async fn opening_a_checkpoint_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    let url = path.to_str().unwrap();
    assert!(matches!(Store::open_checkpoint(url), Err(CheckpointError::NoneFound { .. })));
    assert!(!path.exists());

    let store = Store::open(url).unwrap();
    assert_eq!(Path::new(store.location()), path.canonicalize().unwrap());
    complete(&store, 12).await;
    let (store, id) = Store::open_checkpoint(&format!("{url}/chk-12")).unwrap();
    assert_eq!((id, store.manifests().await.unwrap().len()), (Some(CheckpointId(12)), 1));
}

#[test]
fn a_directory_may_exist_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("a/b/c");
    create_dir(&deep).unwrap();
    create_dir(&deep).unwrap();
    assert!(deep.is_dir());
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert!(create_dir(&dir.path().join("file")).is_err());
    let error = Store::open(dir.path().join("file/x").to_str().unwrap()).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }), "{error}");
}
