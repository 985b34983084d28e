//! What a window costs at least: Tauri with the features of ours, one static page, nothing behind it.
//!
//! It says `painted` on standard error once its page has drawn a frame, and ends when its window is closed.
//! An example of the window's package, so that both are built from the same crates with the same features.

use tauri::{WebviewUrl, WebviewWindowBuilder, Wry};

#[tauri::command]
fn page_shows() {
    eprintln!("painted");
}

fn main() -> tauri::Result<()> {
    let app = tauri::Builder::<Wry>::new()
        .invoke_handler(tauri::generate_handler![page_shows])
        .build(tauri::generate_context!("benches/minimal-window/tauri.conf.json"))?;
    WebviewWindowBuilder::new(&app, "main", WebviewUrl::App("index.html".into()))
        .title("Minimal")
        .inner_size(1100.0, 720.0)
        .build()?;
    app.run(|_, _| ());
    Ok(())
}
