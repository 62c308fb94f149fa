"""The exceptions that gristmill raises. Faults of the operating system are plain `OSError` subclasses."""

from __future__ import annotations


class GristmillError(Exception):
    """Base of every exception of this package, but for those of the operating system."""


class ConfigError(GristmillError, ValueError):
    """A configuration that cannot run; nothing was started."""

    def __init__(
        self,
        message: str,
        *,
        stage: str | None = None,
        field: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        #: Name of the stage at fault, if it is one stage.
        self.stage = stage
        #: Name of the field at fault, if it is one field.
        self.field = field
        #: Line of the text that was read, from 1, if it was a text.
        self.line = line
        #: Column of that line in characters, from 1.
        self.column = column


class FormatError(GristmillError, ValueError):
    """Bytes that were refused, and where they are."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "corrupt",
        source: str | None = None,
        member: str | None = None,
        chunk: int | None = None,
        frame: int | None = None,
        offset: int | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        #: The cause in a word: `truncated`, `corrupt`, `wrong_size`, `unknown_version`, `too_large`, ...
        self.kind = kind
        #: Path or key of the file.
        self.source = source
        #: Name of the member inside a container.
        self.member = member
        #: Index of the chunk within the source.
        self.chunk = chunk
        #: Index of the frame within the chunk.
        self.frame = frame
        #: Byte offset within the member, else within the file.
        self.offset = offset
        #: Line of a text, from 1.
        self.line = line
        #: Column of that line in bytes, from 1.
        self.column = column


class EncoderError(GristmillError, TypeError):
    """An encoder that needs what the rows do not have; the message says which encoders fit."""


class StageError(GristmillError, RuntimeError):
    """A stage cannot continue, for example because every chunk of its pool is bad."""

    def __init__(self, message: str, *, stage: str | None = None) -> None:
        super().__init__(message)
        #: Name of the stage.
        self.stage = stage


class SharesError(GristmillError, RuntimeError):
    """Shares of a job failed; the others are done, and nothing was committed."""

    def __init__(self, message: str, *, failed: dict[str, str]) -> None:
        super().__init__(message)
        #: Why each failed, by the share as `17/400`.
        self.failed = failed


class AliasError(GristmillError, LookupError):
    """No output of the loader has this alias."""


class StateError(GristmillError, ValueError):
    """A saved state does not fit this configuration or these files."""


class StoppedError(GristmillError, RuntimeError):
    """The loader was stopped."""


class ForkedError(GristmillError, RuntimeError):
    """The loader was made in another process, of which this one is a fork: its threads do not exist here."""


class MissingPackageError(GristmillError, ImportError):
    """Something optional is not installed; the message says which extra brings it, or why none can."""


class EndOfStream(GristmillError, EOFError):  # noqa: N818  (an event more than an error)
    """The stream has ended. Iteration ends by itself; only `get_next` raises this."""
