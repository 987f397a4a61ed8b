# SPDX-License-Identifier: Apache-2.0
"""What the black-box suites share: starting belljar, checking what it says, and counting what it leaves behind."""
