// Trades the sign-in nonce of the address for a session, and takes it out of the address at once.
"use strict";

const state = document.getElementById("state");
const nonce = new URLSearchParams(location.hash.slice(1)).get("login");
if (nonce) history.replaceState(null, "", location.pathname);

async function call(path, options) {
  const answer = await fetch("/api/v1/" + path, { credentials: "same-origin", ...options });
  if (answer.status === 204) return null;
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error.message);
  return body;
}

async function show() {
  if (nonce) {
    const headers = { "Content-Type": "application/json" };
    await call("session", { method: "POST", headers, body: JSON.stringify({ nonce }) });
    state.textContent = "Signed in.";
  }
}

show().catch((error) => {
  state.textContent = error.message;
});
