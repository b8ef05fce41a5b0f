"""A verification server from afar, with the words of a `Session`.

server = heldout.client.Server("https://evaluate.example.org", token)
server.dataset("readmissions").ask(q.Auc(epsilon="1/2"), model="model.onnx")
"""

from heldout.client.server import Evaluation, Quoted, RemoteDataset, Server

__all__ = ["Evaluation", "Quoted", "RemoteDataset", "Server"]
