"""What happens in a loader -> Python's `logging`, under the name `gristmill`.

Only a call that takes batches logs, never a thread: so nothing is logged at the exit of the interpreter, and each
worker logs in its own process.
"""

from __future__ import annotations

import json
import logging

from gristmill import _gristmill

#: What the package says.
LOGGER = logging.getLogger("gristmill")

_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

#: At most this many messages of one kind are passed on.
_MOST = 20

#: Events of this kind are raised by the call that takes the batch.
_RAISED = "failed"


class Hearing:
    """Passes on the events of one loader: each message once, at most 20 of each kind."""

    def __init__(self) -> None:
        self._heard = 0
        self._said: dict[str, set[str]] = {}

    def hear(self, engine: _gristmill.Loader) -> None:
        """Says what happened since the last call."""
        newest = engine.newest_event()
        if newest <= self._heard:
            return
        events = json.loads(engine.events(self._heard))
        self._heard = newest
        for event in events:
            kind, stage = event["kind"], event.get("stage")
            said = self._said.setdefault(kind, set())
            text = event["message"] if stage is None else f"stage `{stage}`: {event['message']}"
            if text in said or len(said) > _MOST:
                continue
            said.add(text)
            if len(said) > _MOST:
                text = f"more of the kind `{kind}` follow, and are counted in metrics()"
            level = logging.DEBUG if kind == _RAISED else _LEVELS.get(event["level"], logging.WARNING)
            LOGGER.log(level, "%s: %s", kind, text, extra={"gristmill": event})
