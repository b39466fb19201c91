"""Tables in Parquet: schemas, writers, partial reads, ordering of late items.

Flow: row_groups, payload_dictionary, encoding, parquet_file, parquet, item_order, selection, windowed_merge
"""
