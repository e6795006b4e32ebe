.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench generate clean

# What to hand to pytest: make test ARGS="tests/core -k fan_in"
ARGS ?=

help:  ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-10s %s\n", $$1, $$2 }'

setup:  ## make .venv and install the project into it
	@scripts/bootstrap

demo: setup  ## run the ticket example, with no server and no key
	@.venv/bin/python -m examples.tickets

test: setup  ## run the tests; ARGS="tests/core -k fan_in" runs some
	@.venv/bin/python -m pytest $(ARGS)

check: setup  ## lint, types, floors, contract: all that needs no run
	@scripts/check

bench: setup  ## measure
	@.venv/bin/python -m tests.benchmarks

generate: setup  ## write the generated code anew after a change of protos/
	@scripts/generate

clean:  ## remove caches and build output; .venv stays
	@rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
