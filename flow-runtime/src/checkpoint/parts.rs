//! Writing and reading the parts of a checkpoint.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt, WriteMultipart, path::Path};

use super::{
    CheckpointError, CheckpointId, Compression, Damage, PartFile, Store, compression, envelope, store::folder,
};
use crate::failpoint::{Point, may_fail};

/// Object stores take up to 5 GB in one request; well below that several requests at once are also faster.
const LARGE: usize = 64 << 20;
const CHUNK: usize = 16 << 20;
const UPLOADS: usize = 4;

impl Store {
    /// Writes a part of the checkpoint that will be `id`. `name` says for people what it is, such as
    /// `words.sum-0`; the name of the file is made unique.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn put_part(
        &self,
        id: CheckpointId,
        name: &str,
        payload: Bytes,
    ) -> Result<PartFile, CheckpointError> {
        self.put(self.new_path(id, name), envelope::PLAIN, payload).await
    }

    /// As [`put_part`](Self::put_part), compressed on the way; [`get_part`](Self::get_part) gives it back as it was.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn put_compressed(
        &self,
        id: CheckpointId,
        name: &str,
        payload: Bytes,
        compression: Compression,
    ) -> Result<PartFile, CheckpointError> {
        self.pack_and_put(self.new_path(id, name), payload, compression).await
    }

    /// As [`put_compressed`](Self::put_compressed), for a part that only a later checkpoint will name: it stays until it
    /// is [released](Self::release).
    pub(super) async fn put_held(
        &self,
        id: CheckpointId,
        name: &str,
        payload: Bytes,
        compression: Compression,
    ) -> Result<PartFile, CheckpointError> {
        let path = self.new_path(id, name);
        self.inner.held.hold(&path);
        let written = self.pack_and_put(path.clone(), payload, compression).await;
        if written.is_err() {
            self.release(&path, CheckpointId(0));
        }
        written
    }

    fn new_path(&self, id: CheckpointId, name: &str) -> String {
        // Unique across the subtasks of this run, and across runs: a run that was thought dead and is still
        // writing must not touch the files of the next.
        let number = self.inner.written.fetch_add(1, Ordering::Relaxed);
        format!("{}/{}.{:016x}-{number}.part", folder(id), file_name(name), self.inner.run)
    }

    async fn pack_and_put(
        &self,
        path: String,
        payload: Bytes,
        compression: Compression,
    ) -> Result<PartFile, CheckpointError> {
        match compression {
            Compression::None => self.put(path, envelope::PLAIN, payload).await,
            Compression::Zstd => {
                let work = move || compression::compress(&payload);
                let payload = self.blocking("compress", path.clone(), work).await?;
                self.put(path, envelope::ZSTD, payload).await
            }
        }
    }

    async fn put(&self, path: String, format: u32, payload: Bytes) -> Result<PartFile, CheckpointError> {
        let crc = envelope::part_crc(format, &payload);
        let header = envelope::part_header(format, &payload, crc);
        let bytes = payload.len() as u64;
        let at = self.path(&path)?;
        may_fail(Point::PutPart).map_err(|e| CheckpointError::io("write", &path, e))?;
        let written = if self.inner.local.is_none() && payload.len() > LARGE {
            upload(&self.inner.objects, &at, [header, payload]).await
        } else {
            self.inner.objects.put(&at, [header, payload].into_iter().collect()).await.map(drop)
        };
        written.map_err(|e| CheckpointError::io("write", &path, e))?;
        Ok(PartFile { path, bytes, crc })
    }

    /// Reads a part and verifies all of it.
    ///
    /// # Errors
    /// When the store refuses, or the part is not what was written.
    pub async fn get_part(&self, part: &PartFile) -> Result<Bytes, CheckpointError> {
        let missing = || CheckpointError::damaged(&part.path, Damage::Missing);
        let file = self.read(&part.path).await?.ok_or_else(missing)?;
        let found = envelope::open_part(&part.path, &file)?;
        if found.payload.len() as u64 != part.bytes || found.crc != part.crc {
            return Err(CheckpointError::damaged(&part.path, Damage::Replaced));
        }
        if found.format == envelope::PLAIN {
            return Ok(found.payload);
        }
        compression::decompress(&found.payload)
            .map_err(|e| CheckpointError::damaged(&part.path, Damage::Content(e.to_string())))
    }

    /// `None` when there is no such file.
    pub(super) async fn read(&self, path: &str) -> Result<Option<Bytes>, CheckpointError> {
        let failed = |e| CheckpointError::io("read", path, e);
        match self.inner.objects.get(&self.path(path)?).await {
            Ok(file) => file.bytes().await.map(Some).map_err(failed),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }
}

/// Writes a large object in several requests.
async fn upload(objects: &dyn ObjectStore, at: &Path, content: [Bytes; 2]) -> object_store::Result<()> {
    let mut upload = WriteMultipart::new_with_chunk_size(objects.put_multipart(at).await?, CHUNK);
    for mut bytes in content {
        while !bytes.is_empty() {
            if let Err(e) = upload.wait_for_capacity(UPLOADS).await {
                // What went up is paid for until it is given up; the first error is the one to tell.
                let _ = upload.abort().await;
                return Err(e);
            }
            upload.put(bytes.split_to(bytes.len().min(CHUNK)));
        }
    }
    upload.finish().await.map(drop)
}

/// Uids may hold anything; file names must not.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    name.chars().take(100).map(plain).collect()
}
