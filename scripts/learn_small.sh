#!/usr/bin/env bash
# Learning to explore on two CPU cores, end to end: data from a scripted teacher, SFT on MAP trajectories and on ACT traces of the
# same instances at the same number of tokens, evaluation of base, ACT and MAP models, then GRPO from the MAP model.
# Hours. Every command resumes: after an interruption issue the same line again. Usage: scripts/learn_small.sh OUT [PHASE...]
set -euo pipefail

out=$1
shift
phases=${*:-data sft export eval grpo}
agentexp=${AGENTEXP:-agentexp}
tokens=${TOKENS:-600000}   # of all kinds, per model: about an hour of two idle cores
games=${GAMES:-100}        # held-out games per world, model and paradigm
# As the data were made: compact prompts, exploring without the goal, no list of actions, maps written by rule.
same="paradigm.style=compact paradigm.show_admissible=false"
map="$same paradigm.goal_visible=false paradigm.stage1=false paradigm.extractor=rules"

run() { "$agentexp" "$@" output_root="$out" | tee /dev/stderr | tail -n 1; }

data() {
  runs=()
  for world in alfworld textcraft; do
    # null: the mapping steps of an evaluation
    runs+=("$(run eval +experiment=map2k_small env=$world env.limit=374 paradigm.mapping_steps=null)")
    runs+=("$(run eval +experiment=act_small env=$world env.limit=374)")
  done
  "$agentexp" collect "${runs[@]}" --out "$out/data" --stages explore,act --min-coverage 0 --match tokens
}

sft() {
  for kind in map act; do
    run train-sft trainer.data.path="$out/data/$kind" base=smollm2 trainer.lr=2e-4 trainer.global_batch=4 \
      trainer.token_budget="$tokens" trainer.budget_counts=all trainer.max_len=4096 trainer.held_out=0.03 \
      trainer.save_every=10 trainer.eval_every=40 > "$out/$kind.folder"
  done
}

export_models() {
  "$agentexp" export-model smollm2 --gguf "$out/base.gguf" --dtype q8_0
  for kind in map act; do
    "$agentexp" export-model "$(tail -n 1 "$out/$kind.folder")/model" --gguf "$out/$kind.gguf" --dtype q8_0
  done
}

evaluate() {
  for world in alfworld textcraft; do
    for kind in base act map; do
      for paradigm in react comap map; do
        settings=$same
        [ $paradigm = map ] && settings=$map
        # shellcheck disable=SC2086
        run eval env=$world env.limit="$games" paradigm=$paradigm $settings model=embedded model.path="$out/$kind.gguf" \
          model.decode=generate model.max_tokens=96 model.label="smollm2-$kind"
      done
    done
  done
  "$agentexp" report runs "$out"
}

grpo() {
  for variant in explore_only task_only interleaved; do
    run train-grpo +experiment=grpo_${variant}_small env=textcraft base.path="$(tail -n 1 "$out/map.folder")/model"
  done
}

mkdir -p "$out"
for phase in $phases; do
  case $phase in
    data | sft | grpo) $phase ;;
    export) export_models ;;
    eval) evaluate ;;
    *) echo "There is no phase $phase; choose from data, sft, export, eval, grpo." >&2 && exit 2 ;;
  esac
done
