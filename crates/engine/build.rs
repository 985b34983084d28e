//! Lists the built page (`ui/dist`), so that the program carries it. Where it was not built, the small page that
//! stands in `src/api/page` is served in its place, and nothing here fails.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"));
    let dist = root.join("../../ui/dist");
    println!("cargo::rerun-if-changed={}", dist.display());

    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist.canonicalize()?, "", &mut files)?;
    }
    if !files.iter().any(|(path, _)| path == "/index.html") {
        files.clear();
    }
    files.sort();
    let mut list = String::from("&[\n");
    for (path, file) in &files {
        let path = if path == "/index.html" { "/" } else { path };
        // Writing to a String cannot fail.
        let _ = writeln!(list, "    Asset {{ path: {path:?}, body: include_bytes!({file:?}) }},");
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the output folder"));
    fs::write(out.join("built_page.rs"), list)
}

/// All files under `folder`, by the path that a browser asks for. Hidden ones are none of the page's.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}/{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.push((path, entry.path()));
        }
    }
    Ok(())
}
