# SPDX-License-Identifier: Apache-2.0
"""Belljar beside everything else, in one interleaved run: ./dev bench.

measures/ has one module for each measure, hosts/ the Python programs and programs/ the C programs that do the measuring
where this process must not be in the way. Everything else is their common ground.
"""
