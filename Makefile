# Each target sets up what it needs; nothing has to be installed first but
# Python 3.11 or newer.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
READY   = $(VENV)/.ready

export HF_HUB_OFFLINE = 1

.PHONY: demo up test lint protos train-demo eval-demo bench clean

demo: $(READY)        ## start the mesh, send one request of each task, stop it
	$(BIN)/braid demo

up: $(READY)          ## start the mesh and leave it running
	$(BIN)/braid up

test: $(READY)        ## run every test
	$(BIN)/python -m pytest --numprocesses 2

# Certificates and scaled objects are of kinds that Kubernetes itself does not have.
KUBERNETES = $(shell find deploy/kubernetes -name '*.yaml' ! -name kustomization.yaml \
               ! -name 'certificate*.yaml' ! -name scaled-objects.yaml)

lint: $(READY)        ## check style, types, protos and what deploys
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against '.git#ref=HEAD,subdir=protos'
	$(BIN)/yamllint --strict deploy
	$(BIN)/hadolint deploy/images/Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec deploy/compose/compose.yaml
	$(BIN)/kubernetes-validate --strict --quiet $(KUBERNETES)

protos: $(READY)      ## generate the stubs anew
	$(BIN)/python -m protos.generate

train-demo: $(READY)  ## train the demo pair anew (about three hours on two cores)
	$(BIN)/python -m deploy.models train

eval-demo: $(READY)   ## print the demo pair's quality on the golden sets
	$(BIN)/python -m deploy.models served

bench: $(READY)       ## print every benchmark's ratios
	$(BIN)/python -m tests.benchmarks

# torch comes first and pinned: a later resolver would take a build for GPUs. torchao and
# accelerate lie apart: beside the others every worker's start would import them.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[worker,s3,up,dev]'
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps --target $(VENV)/int8 torchao
	$(BIN)/pip install --quiet --constraint constraints.txt --no-deps --target $(VENV)/tensor-parallel accelerate
	@touch $@

clean:                ## remove what the other targets made
	rm -rf $(VENV) .braid .mypy_cache .ruff_cache .pytest_cache .hypothesis
