"""Private rows where they live, who they belong to, and what is public about them."""

from heldout.data.dataset import Dataset

__all__ = ["Dataset"]
