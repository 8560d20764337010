"""How files are written: whole or not at all."""

import os
import subprocess
import sys

import pytest

from saccade.files import UnwrittenError, part, write_whole, written


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"one")
    with pytest.raises(ZeroDivisionError), written(path) as beside:
        beside.write_bytes(path.read_bytes() * (1 // 0))
    with (
        pytest.raises(UnwrittenError, match=r"file: cannot be written \(No space left on device\); what"),
        written(path),
    ):
        raise OSError(28, "No space left on device")
    with pytest.raises(FileNotFoundError), written(path) as beside:  # which is not about what is written
        beside.write_bytes((tmp_path / "gone").read_bytes())
    with pytest.raises(UnwrittenError, match="Is a directory"):
        write_whole(tmp_path, b"two")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_beside_a_file_is_gone_with_the_next(tmp_path):
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    own, other, alive = (
        tmp_path / f"{name}.part" for name in (f"a[b.{done.pid}", f"c.{done.pid}", f"a[b.{os.getppid()}")
    )
    for path in (own, other, alive):
        path.write_text("half")
    write_whole(tmp_path / "a[b", b"whole")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["a[b", other.name, alive.name])
    assert part("x") == f"x.{os.getpid()}.part"
