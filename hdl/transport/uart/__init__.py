"""A serial line: bytes, packets, requests, and the link made of them.

Flow: uart, escape, byte_crc, uart_requests, uart_server, uart_link
"""
