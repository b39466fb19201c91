"""Tables in Parquet: schemas, writers, reading a part, late items in order.

Flow: parquet, item_order, selection
"""
