"""Questions about ranked lists: the rows of each unit are one list."""
