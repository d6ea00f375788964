"""Files of trials: the stored ones, and downloads with verified checksums."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
import warnings
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, Optional, Union
from urllib.parse import quote

from berth import models
from berth._errors import BerthError, BerthWarning, FilesError, temporary
from berth._transport import Pauses, Transport, path

if TYPE_CHECKING:
    from berth._trial import Trial

# Seconds to wait for the files of a trial that has ended: a worker looks every 5 s.
STORE_TIMEOUT = 60.0
STORE_PAUSE = 0.5

# How often a download is tried that gets no further.
TRIES = 6
CHUNK = 1 << 18

# Temporary names that a thread of this program writes to.
_writing: set[Path] = set()
_writing_lock = threading.Lock()


def stored(transport: Transport, trial: Trial, attempt: Optional[int], timeout: float) -> models.FileList:
    """Returns the stored files of a trial's attempt, all pages in one, once storing has ended."""
    deadline = time.monotonic() + timeout
    while True:
        found = listed(transport, trial.id, attempt)
        if found.state != "pending" or not trial.ended or time.monotonic() >= deadline:
            break
        time.sleep(STORE_PAUSE)
    about = f"files of attempt {found.attempt} of trial {trial.number}"
    if found.state in ("pending", "removed", "off") and (trial.ended or found.state != "pending"):
        raise FilesError(f"{about} are {_why(found)}")
    if found.state == "lost":
        if not found.data:
            raise FilesError(f"{about} are {_why(found)}")
        warnings.warn(f"{about}: some are {_why(found)}", BerthWarning, stacklevel=3)
    if found.left_out:
        some = "; ".join(f"{item.path}: {item.reason}" for item in found.left_out_files[:5])
        warnings.warn(f"{about}: {found.left_out} left out: {some}", BerthWarning, stacklevel=3)
    return found


def listed(transport: Transport, trial_id: str, attempt: Optional[int]) -> models.FileList:
    """Reads all pages of the list of files."""
    pages = transport.pages(models.FileList, path("trials", trial_id, "files"), {"attempt": attempt})
    first = next(pages)
    for page in pages:
        first.data.extend(page.data)
    first.next_cursor = None
    return first


def _why(found: models.FileList) -> str:
    return {"off": "not stored", "pending": "not stored yet"}.get(found.state, found.state) + (
        f": {found.problem}" if found.problem else ""
    )


def download(
    transport: Transport,
    trial_id: str,
    found: models.FileList,
    directory: Union[str, os.PathLike[str]],
    paths: Sequence[str],
) -> Path:
    """Downloads files below a directory and returns its path, or the path of the one named file."""
    files, names = chosen(found, paths)
    root = Path(directory)
    root.mkdir(parents=True, exist_ok=True)
    for file in files:
        _Download(transport, trial_id, found.attempt, file, root).run()
    return root / names[0] if len(names) == 1 else root


def chosen(found: models.FileList, paths: Sequence[str]) -> tuple[list[models.File], list[str]]:
    """Returns the files that are named, by themselves or by a directory above them, and the names."""
    if not found.data:
        raise FilesError(f"attempt {found.attempt} wrote no file to /trial/out that is stored")
    if not paths:
        return found.data, []
    names, wanted = [], set()
    for name in paths:
        clean = str(PurePosixPath(name[len("/trial/out/") :] if name.startswith("/trial/out/") else name))
        here = {file.path for file in found.data if file.path == clean or file.path.startswith(clean + "/")}
        if not here:
            some = ", ".join(file.path for file in found.data[:10])
            raise FilesError(f"attempt {found.attempt} has no stored file {name!r}; it has {some}")
        names.append(clean)
        wanted |= here
    return [file for file in found.data if file.path in wanted], names


class _Download:
    """One file on its way."""

    def __init__(self, transport: Transport, trial_id: str, attempt: int, file: models.File, root: Path) -> None:
        self.transport = transport
        self.at = path("trials", trial_id, "files") + "/" + quote(file.path)  # some proxies refuse %2F
        self.attempt = attempt
        self.file = file
        self.target = inside(root, file.path)
        self.part = self.target.parent / f".berth-{file.sha256[:16]}.part"

    def run(self) -> None:
        """Writes the file under a temporary name, and renames it once it is whole."""
        if self.there():
            return
        self.target.parent.mkdir(parents=True, exist_ok=True)
        shared = self.part
        with _writing_lock:
            alone = shared not in _writing
            _writing.add(shared)
        if alone:
            try:
                self.write()
            finally:
                with _writing_lock:
                    _writing.discard(shared)
            return
        # Another thread fetches the same file: this one writes to a name of its own, and does not continue
        # that.
        self.part = shared.with_name(f"{shared.stem}-{uuid.uuid4().hex[:8]}.part")
        try:
            self.write()
        finally:
            self.part.unlink(missing_ok=True)

    def write(self) -> None:
        if self.part.is_symlink() or (self.part.is_file() and self.part.stat().st_size > self.file.bytes):
            self.part.unlink()
        self.part.touch()
        with self.part.open("r+b") as out:
            got = self.receive(out)
        if got != self.file.sha256:
            self.part.unlink()
            raise FilesError(
                f"the file {self.file.path!r} was received with the checksum {got} and not {self.file.sha256}; "
                "it was thrown away: try again, and if it stays so look at the store"
            )
        self.part.replace(self.target)

    def there(self) -> bool:
        """Reports whether the file exists with the right checksum. A link does not count."""
        if self.target.is_symlink() or not self.target.is_file() or self.target.stat().st_size != self.file.bytes:
            return False
        with self.target.open("rb") as file:
            return _sha256(file).hexdigest() == self.file.sha256

    def receive(self, out: BinaryIO) -> str:
        """Receives the missing bytes, over as many connections as it takes, and returns the checksum of the file."""
        digest = _sha256(out)
        tries, pauses = 0, Pauses()
        while (at := out.tell()) < self.file.bytes:
            failed: Optional[BerthError] = None
            try:
                self.once(out, digest, at)
            except BerthError as error:
                failed = error
            if out.tell() > at:
                tries = 0
                pauses.reset()
                if failed is None:
                    continue
            again = failed is None or temporary(failed)
            failed = failed or FilesError(f"the server sends nothing of {self.file.path!r} from byte {at:,} on")
            tries += 1
            if not again or tries >= TRIES:
                raise failed
            time.sleep(pauses.next(failed))
        return str(digest.hexdigest())

    def once(self, out: BinaryIO, digest: hashlib._Hash, at: int) -> None:
        headers = {"Accept-Encoding": "identity"}
        if at > 0:
            headers.update({"Range": f"bytes={at}-", "If-Range": f'"{self.file.sha256}"'})
        with self.transport.stream(self.at, params={"attempt": self.attempt}, headers=headers) as response:
            if at > 0 and response.status_code != 206:
                raise FilesError(
                    f"the server does not send {self.file.path!r} from where it was cut; remove {str(self.part)!r}"
                )
            for chunk in response.iter_raw():
                if out.tell() + len(chunk) > self.file.bytes:
                    raise FilesError(f"the server sends more of {self.file.path!r} than its {self.file.bytes:,} bytes")
                out.write(chunk)
                digest.update(chunk)


def _sha256(file: BinaryIO) -> hashlib._Hash:
    """Reads a file to its end."""
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest


def inside(root: Path, name: str) -> Path:
    """Returns where a file goes. No name and no link leads outside the directory."""
    parts = PurePosixPath(name).parts
    parent = root.joinpath(*parts[:-1]).resolve()
    bad = (
        not parts or PurePosixPath(name).is_absolute() or ".." in parts or (os.name == "nt" and set(name) & set("\\:"))
    )
    if bad or not parent.is_relative_to(root.resolve()):
        raise FilesError(f"the server names a file {name!r} outside the directory; it is not downloaded")
    return parent / parts[-1]
