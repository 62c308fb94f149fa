"""What stands together in a batch: constructors of pairs and of single steps over trajectories.

pairs = gm.pairs.TemporalOffset("dynamics", temporal_offset=3).over(gm.open("demos.tar.zst"))
len(pairs), pairs[[0, 5]].context

No pair crosses the end of a trajectory, but those that a function of one's own makes (`Generated`).
"""

from gristmill.pairs.constructor import At, Constructor, PairBatch, PairSet, Rows
from gristmill.pairs.generated import Generated
from gristmill.pairs.jigsaw import Jigsaw
from gristmill.pairs.prepare import Prepare
from gristmill.pairs.steps import BC, DQN, GAIL, StepBatch, Steps
from gristmill.pairs.temporal import FrameStack, Identity, Reverse, TemporalOffset, UniformOffset, Windows
from gristmill.pairs.trajectories import Columns, Trajectories

__all__ = [
    "BC",
    "DQN",
    "GAIL",
    "At",
    "Columns",
    "Constructor",
    "FrameStack",
    "Generated",
    "Identity",
    "Jigsaw",
    "PairBatch",
    "PairSet",
    "Prepare",
    "Reverse",
    "Rows",
    "StepBatch",
    "Steps",
    "TemporalOffset",
    "Trajectories",
    "UniformOffset",
    "Windows",
]
