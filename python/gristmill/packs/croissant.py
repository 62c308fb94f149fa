"""What is known of a pack -> Croissant 1.1 of MLCommons, the metadata that catalogues of data sets read."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gristmill.packs.about import FRAMES, GAMES, About, Column, StoredFile
from gristmill.packs.packed import LineageStep

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"

#: The context of the standard, and that of PROV for how the data came to be.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "prov": "http://www.w3.org/ns/prov#",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

#: Media types by the end of a name. A pack's own files have no registered one.
_MEDIA = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".db": "application/vnd.sqlite3",
}

_NUMBERS = {"i": "Int", "u": "UInt", "f": "Float"}


def croissant(about: About) -> dict[str, Any]:
    """The document: files with their hashes, tables `frames` and `games` with their columns, and jobs as provenance.

    With Parquet files of the tables the columns are read from these, by any program that reads Croissant. Without
    them they name the pack's own files, which `gristmill.open` reads.
    """
    words = about.words
    found: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": about.name,
        "description": words.description or summary(about),
        "keywords": ["gristmill", about.kind],
    }
    if words.license is not None:
        found["license"] = words.license if "://" in words.license else f"https://spdx.org/licenses/{words.license}"
    if words.creators:
        found["creator"] = [{"@type": "sc:Person", "name": name} for name in words.creators]
    said = {"url": words.url, "citeAs": words.citation, "version": words.version, "datePublished": words.published}
    found |= {name: value for name, value in said.items() if value is not None}
    found["distribution"] = [_file(file, words.url) for file in about.files]
    frames, games = {"fileObject": {"@id": FRAMES}}, {"fileObject": {"@id": GAMES}}
    if not about.has_tables:
        found["distribution"].append(_stored(about))
        frames, games = {"fileSet": {"@id": "stored-frames"}}, {"fileObject": {"@id": "metadata.db"}}
    found["recordSet"] = [_table("frames", about.frame_columns, frames, f"{about.of[0]}, a record each", "frame")]
    if about.game_columns:
        found["recordSet"].append(_table("games", about.game_columns, games, f"the {about.of[1]}, a record each", "id"))
        for column in found["recordSet"][0]["field"]:
            if column["@id"] == "frames/game_id":
                column["references"] = {"field": {"@id": "games/id"}}
    if about.lineage:
        found["prov:wasGeneratedBy"] = [_activity(step) for step in about.lineage]
    return found


def summary(about: About) -> str:
    """One sentence on the data."""
    what, groups = about.of
    return f"{about.frames} {what} from {about.games} {groups}, as a pack of gristmill."


def _file(file: StoredFile, url: str | None) -> dict[str, Any]:
    media = next((media for end, media in _MEDIA.items() if file.name.endswith(end)), "application/octet-stream")
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name if url is None else f"{url.rstrip('/')}/{file.name}",
        "contentSize": f"{file.size} B",
        "encodingFormat": media,
        "sha256": file.sha256,
    }


def _stored(about: About) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": "stored-frames",
        "name": "stored-frames",
        "description": "The files that hold the frames, in a form of gristmill: gristmill.open reads the folder.",
        "encodingFormat": "application/octet-stream",
        "includes": sorted({re.sub(r"\d+", "*", name) for name in about.data_files}),
    }


def _table(name: str, columns: list[Column], source: dict[str, Any], about: str, key: str) -> dict[str, Any]:
    found: dict[str, Any] = {"@type": "cr:RecordSet", "@id": name, "name": name, "description": about}
    if any(column.name == key for column in columns):
        found |= {"key": {"@id": f"{name}/{key}"}}
    return found | {"field": [_field(f"{name}/{column.name}", column.name, column.dtype, source) for column in columns]}


def _field(at: str, column: str, dtype: np.dtype[Any], source: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"@type": "cr:Field", "@id": at, "name": at}
    base, shape = dtype.base, dtype.shape
    if base.kind == "c":
        base, shape = np.dtype(f"f{base.itemsize // 2}"), (*shape, 2)
    if base.names is None:
        found["dataType"] = data_type(base)
    else:
        inner = [(f"{at}/{name}", f"{column}.{name}", base[name]) for name in base.names]
        found["subField"] = [_field(*one, source) for one in inner]
    found["source"] = {**source, "extract": {"column": column}}
    if shape:
        found |= {"isArray": True, "arrayShape": ",".join(map(str, shape))}
    return found


def data_type(base: np.dtype[Any]) -> str:
    """The type of Croissant for a NumPy type of one number or text; bytes are text there."""
    if base.kind in _NUMBERS:
        return f"cr:{_NUMBERS[base.kind]}{8 * base.itemsize}"
    return "sc:Boolean" if base.kind == "b" else "sc:Text"


def _activity(step: LineageStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@type": "prov:Activity",
        "name": step.job,
        "prov:wasAssociatedWith": {"@type": "prov:SoftwareAgent", "name": step.writer},
    }
    if step.options:
        found["description"] = ", ".join(f"{name}={value}" for name, value in step.options.items())
    used: list[dict[str, Any]] = [{"@type": "prov:Entity", **_entity(step.sources)}] if step.sources else []
    used += [
        {"@type": "prov:Entity", "prov:wasGeneratedBy": [_activity(one) for one in before]}
        for before in step.made_from
        if before
    ]
    return found | ({"prov:used": used} if used else {})


def _entity(sources: dict[str, Any]) -> dict[str, str]:
    """The games that a job took from files."""
    name = str(sources.get("name", "files"))
    rest = {key: value for key, value in sources.items() if key != "name" and not isinstance(value, list | dict)}
    return {"name": name, "description": ", ".join(f"{key}={value}" for key, value in rest.items())}
