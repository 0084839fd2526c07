#!/bin/sh
# Evaluate with promptfoo, once one system and once both. It writes the files promptfoo_*.
#     sh make/promptfoo_run.sh
export PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 PROMPTFOO_DISABLE_REMOTE_GENERATION=1
PROMPTFOO_CONFIG_DIR=$(mktemp -d)
export PROMPTFOO_CONFIG_DIR
cd "$(dirname "$0")/.." || exit 1
promptfoo=${PROMPTFOO:-npx promptfoo}
name=promptfoo_$($promptfoo --version 2>/dev/null | tail -n 1)
run="$promptfoo eval -c make/promptfooconfig.yaml --no-cache --no-table"
$run --filter-providers strong -o "${name}_eval.json" -o "${name}_eval.jsonl" -o "${name}_eval.csv"
$run -o "${name}_two_systems.csv"
python3 make/relative.py "${name}"_*
rm -r "$PROMPTFOO_CONFIG_DIR"
