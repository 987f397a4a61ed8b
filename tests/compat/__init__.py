# SPDX-License-Identifier: Apache-2.0
"""Everyday programs that must work in a default jar as they do outside."""
