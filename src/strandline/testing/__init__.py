"""Doubles that tests control: clocks, and object stores and a metadata topic that fail on demand.

Production never imports this package.
"""
