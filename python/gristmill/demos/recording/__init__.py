"""What agents do in environments -> a folder of episodes that survives a kill, and demonstrations out of it."""

from gristmill.demos.recording.wrapping import record

__all__ = ["record"]
