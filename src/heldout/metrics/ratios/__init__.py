"""One metric of the confusion matrix a file."""
