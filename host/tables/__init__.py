"""Tables in Parquet: schemas, writers, reading a part, late items in order.

Flow: store, order, selection
"""
