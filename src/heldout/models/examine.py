"""What a keeper says of a model: plain data, made in the sandbox."""

from typing import Any

from heldout.models.graph import Unreadable, read, retargeted
from heldout.models.verify import verify

__all__ = ["examine"]


def examine(content: bytes, *, output: str | None) -> tuple[dict[str, Any], bytes]:
    """The verdict as JSON data, and the model to run: the proven one, or the file's."""
    try:
        graph = read(content, output=output)
    except Unreadable as error:
        return {"unreadable": str(error)}, b""
    proof = verify(graph)
    return {
        "inputs": [[each.name, each.kind, each.width, each.rank] for each in graph.inputs],
        "problems": [[each.node, each.why, each.mend] for each in proof.problems],
        "score": graph.score,
        "width": proof.width if proof.row_wise else graph.width or 1,
        "classes": list(graph.classes),
        "loads": True,
    }, proof.content or retargeted(content, graph.score)
