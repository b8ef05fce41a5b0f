"""Private rows where they live, who they belong to, and what is public about them."""

from heldout.data.dataset import Dataset
from heldout.data.table import PrivateTable

__all__ = ["Dataset", "PrivateTable"]
