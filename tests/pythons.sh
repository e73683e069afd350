#!/usr/bin/env bash
# Run the suite on every Python from 3.11 on that this machine has; the newest last.
set -eu
cd "$(dirname "$0")/.."
found=0
for version in 3.11 3.12 3.13 3.14; do
    python=$(command -v "python$version" || ls -d "$HOME"/.pyenv/versions/"$version".*/bin/python 2>/dev/null | tail -n 1 || true)
    [ -n "$python" ] && "$python" -c 'import venv' 2>/dev/null || { echo "python$version: not on this machine"; continue; }
    found=$((found + 1))
    env=".venvs/$version"
    [ -d "$env" ] || "$python" -m venv "$env"
    "$env/bin/python" -m pip install -q --upgrade 'pip>=25.1'
    "$env/bin/python" -m pip install -q -e . --group test --group sdk --group neighbours
    echo "== python$version"
    "$env/bin/python" -m pytest -n auto --dist worksteal
done
[ "$found" -gt 0 ]
