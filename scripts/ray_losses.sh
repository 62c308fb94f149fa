#!/bin/bash
# Jobs on a Ray cluster that loses machines and drivers: Ray Core in an environment of its own above .venv, whose tests would meet its
# warnings otherwise. `ray_losses.sh install` only installs it, while something else compiles. The tests are bounded in time.
# GRISTMILL_SKIP_RAY=1 skips them, and so does a registry that does not answer; both say so in one line.
set -euo pipefail
cd "$(dirname "$0")/.."
skip() {
  echo "skipped: tests on Ray: $1"
  exit 0
}
sites() { "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

[[ -z ${GRISTMILL_SKIP_RAY:-} ]] || skip "GRISTMILL_SKIP_RAY is set"
above=.venv/ray
if [[ ! -e $above/ready ]]; then
  .venv/bin/python -m venv --without-pip --clear "$above"
  echo "import site; site.addsitedir('$(sites .venv/bin/python)')" >"$(sites "$above/bin/python")/below.pth"
  if ! said=$(.venv/bin/pip --python "$above/bin/python" install --quiet --disable-pip-version-check --no-compile \
    --timeout 20 --retries 1 "ray==2.60.*" 2>&1); then
    skip "Ray cannot be installed: $(tail -n 1 <<<"$said")"
  fi
  touch "$above/ready"
fi
[[ ${1:-} != install ]] || exit 0

# A folder of its own: pytest clears the one that all share of earlier runs, which can take longer than these tests.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
said=$scratch/said
rc=0 seconds=${GRISTMILL_RAY_SECONDS:-180}
RAY_USAGE_STATS_ENABLED=0 timeout --signal INT --kill-after 20 "$seconds" "$above/bin/python" -m pytest \
  --basetemp "$scratch/made" --durations 5 tests/test_ray_losses.py -k "pack and (lost or killed)" >"$said" 2>&1 || rc=$?
cat "$said"
# Ray gives a node 30 seconds to start, which no option changes.
if ((rc == 1)) && grep -Eq "^E .*(node timed out during startup|Timed out (after|while) .*node)" "$said"; then
  skip "no node of Ray started within 30 seconds"
fi
# 124 and 137 say that the time was over. On an idle machine something hung then.
if ((rc == 124 || rc == 137)) && awk -v cores="$(getconf _NPROCESSORS_ONLN)" '{ exit $1 <= 2 * cores }' /proc/loadavg; then
  skip "this machine is so busy that they took longer than $seconds seconds"
fi
exit $rc
