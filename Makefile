# Two commands matter: `make run` and `make test`. Both install what they need on Debian 12 with Rust and Node.

# Outside of the clone, so that a fresh one finds the dependencies already built.
export CARGO_TARGET_DIR ?= $(HOME)/.cache/taskbell/target

.DEFAULT_GOAL := help
.PHONY: help run test test-long package fmt lint bench setup ui

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# A debug build: it is there in half the time of a release build, `make test` shares it, and a demo of one
# task gives a faster program nothing to do. Without a display no window is built.
run: ## Start the app with a demo task; without a display, the engine and its page
	@scripts/setup run
	@npm --prefix ui run --silent build -- --logLevel warn
	@cargo build --locked --quiet -p taskbell $${DISPLAY:+-p taskbell-desktop} $${WAYLAND_DISPLAY:+-p taskbell-desktop}
	@scripts/run

test: ## Every check: Rust, the page, the real window
	@scripts/setup test
	@scripts/test

test-long: ## The same with the long tests, and the Debian package installed in a system of its own
	@TASKBELL_LONG=1 scripts/setup test
	@TASKBELL_LONG=1 scripts/test

package: ## The Debian package of both programs, release build
	@scripts/setup package
	@npm --prefix ui run --silent build -- --logLevel warn
	@cargo build --locked --release -p taskbell -p taskbell-desktop --bins
	@scripts/package

fmt: ## Format Rust and the page
	@scripts/setup run
	cargo fmt --all
	npm --prefix ui run --silent format

lint: ui ## Formatting, clippy and types, with warnings as errors
	@scripts/lint

bench: ui ## Side-by-side measurements, release build
	@scripts/setup bench
	cargo build --locked --release -p taskbell -p taskbell-desktop --bins --example minimal-window
	cargo run --locked --release -p taskbell-benches

setup: ## Install what running and testing need
	@scripts/setup test

# The window and the headless engine embed what this builds.
ui: ## Build the page
	@scripts/setup run
	npm --prefix ui run --silent build
