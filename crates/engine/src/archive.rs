//! Files packed into one, for what leaves Taskbell as a whole.

use std::io::{Cursor, Write as _};

use zip::write::{SimpleFileOptions, ZipWriter};

use crate::error::EngineError;

/// A zip archive of these files, in this order. The caller has made every name one that leads nowhere.
///
/// # Errors
/// When it would be larger than a zip archive can be.
pub fn pack<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Vec<u8>, EngineError> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, octets) in files {
        let written = archive.start_file(name, SimpleFileOptions::default()).map_err(std::io::Error::from);
        written.and_then(|()| archive.write_all(octets)).map_err(|error| failed(&error))?;
    }
    Ok(archive.finish().map_err(|error| failed(&error.into()))?.into_inner())
}

fn failed(error: &std::io::Error) -> EngineError {
    EngineError::new("not_packed", format!("failed to pack the files into one: {error}"))
}
