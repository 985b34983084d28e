//! `taskbell-desktop`: the window. It opens the page of `ui/` and answers its one question, which version this is.
//!
//! A shell only: no SQL, no HTTP, no protocol. Following tasks is the engine's work, which this version
//! starts from the `taskbell` command line.

#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod window;

use std::process::ExitCode;

use tauri::{AppHandle, Wry};

fn main() -> ExitCode {
    if let Some(reason) = window::no_display() {
        eprintln!("taskbell-desktop: {reason}");
        return ExitCode::FAILURE;
    }
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("taskbell-desktop: failed to open the window: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> tauri::Result<()> {
    let app = tauri::Builder::<Wry>::new()
        .invoke_handler(tauri::generate_handler![app_version])
        .build(tauri::generate_context!())?;
    window::open(app.handle())?;
    app.run(|_app, _event| ());
    Ok(())
}

/// The version of this program, as its package states it.
#[tauri::command]
fn app_version(app: AppHandle) -> String {
    app.package_info().version.to_string()
}
