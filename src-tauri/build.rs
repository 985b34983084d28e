//! Turns `tauri.conf.json`, the capabilities and the built page into what the window's program embeds.

use std::path::Path;
use std::process::ExitCode;

use tauri_build::{AppManifest, Attributes};

fn main() -> ExitCode {
    // The page is embedded when this package is compiled, and nothing else would notice a new one.
    println!("cargo::rerun-if-changed=ui/dist");
    println!("cargo::rerun-if-changed=src-tauri/capabilities");
    println!("cargo::rerun-if-changed=src-tauri/permissions");
    if !Path::new("ui/dist/index.html").exists() {
        println!(
            "cargo::error=the window embeds the page of ui/, which is not built yet: run `make ui` first"
        );
        return ExitCode::FAILURE;
    }
    // A command that no permission names cannot be called from the page.
    let attributes = Attributes::new()
        .capabilities_path_pattern("./src-tauri/capabilities/*.json")
        .app_manifest(AppManifest::new().permissions_path_pattern("./src-tauri/permissions/*.toml"));
    match tauri_build::try_build(attributes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error={error:#}");
            ExitCode::FAILURE
        }
    }
}
