// As our own page tells its first frame.
requestAnimationFrame(() => requestAnimationFrame(() => window.__TAURI_INTERNALS__.invoke("page_shows")));
