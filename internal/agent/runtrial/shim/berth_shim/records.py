"""Appends records to the file that Berth reads, one JSON object a line.

The file is the shim's own. A script may open the metrics file with "w", keep it open,
or read it back: a line of ours in there would change what the script does.
"""

import os
import sys

_FILE = "TRIAL_SHIM_FILE"
_MAIN = "TRIAL_SHIM_MAIN"  # process id of the main process; its workers inherit it

_path = None
_pid = None


def open_for_main():
    """Reports whether Berth wants reports and this is a main process: one that no
    other Python of the trial started. It opens no file yet."""
    global _path, _pid

    _path = os.environ.get(_FILE)
    pid = os.getpid()
    if not _path or os.environ.get(_MAIN, str(pid)) != str(pid):
        return False

    os.environ[_MAIN] = str(pid)
    _pid = pid

    return True


def is_main():
    """Reports whether this process reports: a forked one does not."""
    return _pid is not None and os.getpid() == _pid


def hello():
    """Says that the shim works. It imports no json: most programs never need it."""
    _append('{"type":"hello","v":1,"pid":%d,"python":"%d.%d.%d"}' % ((_pid,) + tuple(sys.version_info[:3])))


def write(record):
    """Appends a record, if this is the main process."""
    if not is_main():
        return

    import json

    _append(json.dumps(record))


def _append(line):
    # One write at the end of the file, opened anew: the script may have removed it.
    file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    try:
        data = (line + "\n").encode()
        if os.write(file, data) != len(data):
            raise OSError("the record is cut off")
    finally:
        os.close(file)
