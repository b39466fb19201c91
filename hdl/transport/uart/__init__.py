"""UART link: line, packets, requests, and the link made of them.

Flow: line, escape, byte_crc, requests, server, link
"""
