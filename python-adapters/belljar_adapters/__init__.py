# SPDX-License-Identifier: Apache-2.0
"""Drop-in replacements for the sandboxes of four frameworks: the same names, on Belljar's engine. See docs/adapters.md.

Import them as belljar.adapters.NAME: that package takes its modules from this folder.
"""
