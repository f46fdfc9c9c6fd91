# Landeck: what a person types. Each target says what it does; the work is done by cargo and xtask,
# with tools that scripts/bootstrap.sh finds or installs.

PREFIX ?= /usr/local
DESTDIR ?=
SUITES ?=
FIGURES ?=
PLACE = --prefix "$(PREFIX)" $(if $(DESTDIR),--destdir "$(DESTDIR)")

.DEFAULT_GOAL := help
.PHONY: help run build test soak bench book install uninstall tidy

help: ## Show this list
	@echo "make TARGET, where TARGET is one of:"
	@sed -n 's/^\([a-z]*\):.*## /  \1|/p' Makefile | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo "run and test install missing tools themselves (apt-get, rustup; as root or with sudo)."

run: ## Build everything and run an MPI program in C on 4 processes, checked against 1 (HOSTS=2 for two hosts)
	@scripts/bootstrap.sh run scripts/run.sh

test: ## Run every test suite (SUITES="tests tidy" for some of them)
	@scripts/bootstrap.sh test cargo xtask test $(SUITES)

soak: ## Run the long form of every suite: thousands of kills, minutes of fuzzing, aarch64
	@scripts/bootstrap.sh soak cargo xtask test --soak $(SUITES)

bench: ## Measure ours beside the peers, built in bench-peers/ (FIGURES="..." for some)
	@scripts/bootstrap.sh run cargo run --release --package landeck-bench --bin landeck-bench -- $(FIGURES:%=--figure %)

book: ## Build the book of the documents in target/book/html (installs mdbook with cargo if it is missing)
	@scripts/bootstrap.sh run cargo xtask book

build: ## Build what is installed
	@scripts/bootstrap.sh run cargo xtask build

install: ## Build and install into PREFIX (/usr/local), below DESTDIR if that is set
	@scripts/install.sh install --as-built $(PLACE)

uninstall: ## Remove what was installed into PREFIX, below DESTDIR if that is set
	@scripts/install.sh uninstall $(PLACE)

tidy: ## Check the rules of the house
	@scripts/bootstrap.sh run cargo xtask tidy
