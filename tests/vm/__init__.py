# SPDX-License-Identifier: Apache-2.0
"""A virtual machine with another kernel, for what this host's kernel and cgroups cannot show."""
