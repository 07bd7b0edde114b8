"""SKM-TEA, raw-data track: the layout on disk, its scans and its splits."""
