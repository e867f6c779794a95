"""The tiering pipeline: conversion beside a plain copy, rows of the control plane, reads before it and after it.

Each part is a group of the benchmark of its own (`--only tiering` is all of them), on brokers of ours with objects and
remote segments in directories of this machine, and Spark on two cores of it.
"""
