"""Tables in Parquet: schemas, writers, partial reads, ordering of late items.

Flow: parquet, item_order, selection
"""
