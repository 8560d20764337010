"""`saccade demo`, all of it: a minute of training, which is why it stands alone."""

import json
import subprocess
import sys


def test_the_demo_reads_dates_of_days_it_never_saw(tmp_path):
    command = [sys.executable, "-m", "saccade"]
    ran = subprocess.run([*command, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "2019년 5월 3일 금요일 → 2019-05-03" in ran.stdout
    assert ran.stdout.count("∎") == 6  # three heatmaps, each with both ends
    page = (tmp_path / "saccade-demo" / "glances.html").read_text()
    assert page.count("<table>") == 3
    ran = subprocess.run(
        [*command, "evaluate", "saccade-demo", "dates", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(ran.stdout)["exact"] >= 99  # 99.4 to 99.6 where it was tried
