"""`strandline fsck`: what is stored in objects, compared with what is known about them.

`command` has the options and decides what is compared, `remote` compares remote storage with the metadata that
`remote_sources` reads, `report` prints. The comparisons themselves are in `diskless` and `remote`.
"""
