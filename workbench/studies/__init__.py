"""Studies, one file each, in a folder for each family; found by file name."""
