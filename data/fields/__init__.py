"""Fields on a grid, in one format whatever they are: generated flows, public files, a user's own data.

`data.fields.reader.open_fields(path)` opens a file of any known format as `Fields`. The format itself is documented
and written in `data.fields.file`; every foreign format has a file of its own here and an entry in `reader.FORMATS`.
What the shape of the domain implies is asked of its geometry (`data.fields.geometry`).
"""
