"""Is privatized data still the data? A classifier tries to tell the two apart.

`separability` reads the ground truth without noise: its numbers are for the custodian only.
`private_separability` is the version for publication, through the one door.
"""
