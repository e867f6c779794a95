"""Doubles that tests control: clocks, and object stores that fail on demand.

Production never imports this package.
"""
