"""What a pack of each kind opens as, and which encoder fits it: one row for each kind of whole games."""

from __future__ import annotations

from typing import Any, NamedTuple

from gristmill import _gristmill
from gristmill.chess import Tensors
from gristmill.packs.games import Games
from gristmill.packs.trajectories import Fields, Trajectories


class Kind(NamedTuple):
    """How Python has one kind."""

    #: What its packs open as.
    opens: type[Games]
    #: What says which tensors there are.
    encoder: type[Tensors] | type[Fields]
    #: How configurations call its encoder; none where that has the name of the kind.
    config: str | None
    #: What its games are, and what to give.
    told: str


#: The kinds whose packs are more than games and fields.
KINDS = {
    "chess": Kind(Games, Tensors, "chess", "games of chess take gristmill.chess.Tensors"),
    "demo": Kind(Trajectories, Fields, "fields", "trajectories take gristmill.Fields"),
    "records": Kind(Games, Fields, "fields", "games of records take gristmill.Fields"),
}


def kind_of(form: str) -> Kind:
    """The row of the kind of this name; any other kind has games, and tensors by name."""
    return KINDS.get(form) or Kind(Games, Fields, None, f"games of {form} take gristmill.Fields")


def opened(pack: _gristmill.Selection) -> Games:
    """All of a pack of whole games."""
    return kind_of(pack.form).opens(pack)


def encoder_config(games: Games, encoder: object) -> dict[str, Any]:
    """What a configuration says of the encoder of games; it has to be of the kind that fits."""
    kind = kind_of(games.kind)
    if encoder is None:
        return {"encoder": kind.config or games.kind}
    if not isinstance(encoder, kind.encoder):
        raise TypeError(f"{kind.told}; leave the encoder out, found {encoder!r}")
    return {"encoder": kind.config or games.kind, "tensors": list(encoder.names)}
